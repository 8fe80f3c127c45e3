"""Published corpora made into the text of a recipe: cleaned and tokenised.

A recipe's prepare.py declares a :class:`Corpus` and calls :func:`prepare`.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.raw_data import Archive, Part, Row, rows_of, tokenised
from sbnmt_plugin.tools.text import write_lines
from sbnmt_plugin.tools.unfinished import new_file

__all__ = ["Archive", "Corpus", "Limits", "Part", "prepare"]  # of a prepare.py


@dataclass(frozen=True)
class Limits:
    """Limits of a training pair, as in Moses's clean-corpus-n.

    Attributes:
        longest: most tokens of either side; an empty side is never kept.
        ratio: most tokens of the longer side for one of the shorter.
        word: most characters of a token.
        raw: sentences are raw text, whose characters count as tokens.
    """

    longest: int = 80
    ratio: float = 9.0
    word: int = 1000
    raw: bool = False

    def problem(self, pair: Row) -> str:
        """Return the reason for which a tokenised pair is left out, "" if it stays."""
        words = [[*side] if self.raw else side.split() for side in pair]
        least, most = sorted(map(len, words))
        if not least:
            return "empty"
        if most > self.longest:
            return f"longer than {self.longest} {'characters' if self.raw else 'words'}"
        if most > self.ratio * least:
            return f"more than {self.ratio:g} times as long as the translation"
        if any(len(word) > self.word for side in words for word in side):
            return f"with a word longer than {self.word} characters"
        return ""


@dataclass(frozen=True)
class Corpus:
    """The parts of a recipe's text.

    Attributes:
        rules: see :attr:`languages`, where the endings of the files are others.
    """

    source: str
    target: str
    train: tuple[Part, ...]
    valid: Part
    test: tuple[Part, ...]
    limits: Limits = Limits()
    rules: Row = ()

    @property
    def languages(self) -> Row:
        """The names by which :mod:`tokens` knows the rules of source and target."""
        return self.rules or (self.source, self.target)


@dataclass
class Preparation:
    """Writes the text that ``sbnmt recipe`` expects, as a command line asks."""

    corpus: Corpus
    args: argparse.Namespace
    left_out: Counter[str] = field(default_factory=Counter)  # reasons, of one set

    def rows(self, split: str, part: Part) -> Iterator[Row]:
        """Yield the raw lines of a part of a set."""
        return rows_of(part.files(self.args.data), self.args.first)

    def problem(self, split: str, row: Row) -> str:
        """Return the reason for which a tokenised row is left out, "" if it stays."""
        least, most = self.args.words or (0, math.inf)
        if not least <= len(row[1].split()) <= most:
            return "not as long as --words asks for"
        return self.corpus.limits.problem(row) if split == "train" else ""

    def keeps(self, split: str, row: Row) -> bool:
        """Return whether a tokenised row stays; the others are counted by reason."""
        reason = self.problem(split, row)
        self.left_out.update([reason] if reason else [])
        return not reason

    def tell(self, split: str, text: str) -> None:
        """Tell the size of a set, and what was left out of it."""
        print(f"{split}: {text}", file=sys.stderr)
        for reason, count in self.left_out.most_common():
            print(f"{split}: {count:,} left out, {reason}", file=sys.stderr)
        self.left_out.clear()

    def tokenised(self, rows: Iterable[Row], references: int = 1) -> Iterator[Row]:
        source, target = self.corpus.languages
        languages = (source, *[target] * references)
        return tokenised(rows, languages, self.args.lowercase, self.args.workers)

    def train(self) -> None:
        """Write the training set: the clean pairs of all parts."""
        rows = chain.from_iterable(self.rows("train", x) for x in self.corpus.train)
        read = kept = 0
        prefix = self.args.output / "train"
        with (
            new_file(f"{prefix}.{self.corpus.source}") as source,
            new_file(f"{prefix}.{self.corpus.target}") as target,
        ):
            for pair in progress(self.tokenised(rows), unit="pair", leave=False):
                read += 1
                if self.keeps("train", pair):
                    kept += 1
                    source.write(pair[0] + "\n")
                    target.write(pair[1] + "\n")
        self.tell("train", f"{kept} of {read} sentence pairs kept")

    def held_out(self, split: str, parts: tuple[Part, ...]) -> None:
        """Write a validation or test set; the file that marks it as done comes last."""
        pairs: list[tuple[Row, Row]] = []  # as published, tokenised
        sizes = []
        for part in parts:
            rows = [*self.rows(split, part)]
            both = zip(rows, self.tokenised(rows, len(rows[0]) - 1))
            kept = [pair for pair in both if self.keeps(split, pair[1])]
            pairs += kept
            sizes.append(f"{part.name or split}\t{len(kept)}")
        self.tell(split, f"{len(pairs)} sentences")
        if not pairs:
            raise ValueError(f"{split} must have a sentence, but all were left out")
        if split == "test":
            write_lines(self.args.output / "test.sets", sizes)
        raw, tokens = zip(*pairs)
        columns = {self.corpus.source: (tokens, 0)}
        for place in reversed(range(1, len(raw[0]))):
            end = self.corpus.target + (f".{place}" if place > 1 else "")
            columns |= {f"ref.{end}": (raw, place), end: (tokens, place)}
        for end, (column, place) in columns.items():
            path = self.args.output / f"{split}.{end}"
            write_lines(path, (row[place] for row in column))

    def run(self) -> None:
        """Write all sets, the test set last; a missing file is told at once."""
        corpus = self.corpus
        for part in (*corpus.train, corpus.valid, *corpus.test):
            part.files(self.args.data)
        self.train()
        self.held_out("valid", (corpus.valid,))
        self.held_out("test", corpus.test)


def options(description: str) -> argparse.ArgumentParser:
    """Return the parser of a prepare.py's command line."""
    parser = command.parser(description)
    add, number = parser.add_argument, command.at_least(1)
    add("--data", type=Path, required=True, help="folder of the raw files")
    add("--output", type=Path, required=True, help="folder to write")
    add("--lowercase", action="store_true")
    add("--first", action=number, help="lines to read of each file")
    words = "keep sentences, of all sets, whose (first) target has so many tokens"
    add("--words", type=int, nargs=2, metavar=("MIN", "MAX"), help=words)
    add("--workers", action=number, default=os.cpu_count())
    return parser


def prepare(description: str, _script: str, corpus: Corpus) -> None:
    """Do the work of a recipe's prepare.py.

    Args:
        description: its text for --help.
        _script: its path, which every prepare.py gives; nothing depends on it.
        corpus: the corpus to prepare.
    """
    Preparation(corpus, options(description).parse_args()).run()
