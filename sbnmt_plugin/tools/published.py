"""Published corpora made into the text of a recipe: cleaned and tokenised.

A recipe's prepare.py declares a :class:`Corpus` and calls :func:`prepare`.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import tee
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
        rules: names by which :mod:`tokens` knows the rules of source and target, where
            they are not the endings of the files.
    """

    source: str
    target: str
    train: tuple[Part, ...]
    valid: Part
    test: tuple[Part, ...]
    limits: Limits = Limits()
    rules: Row = ()


@dataclass
class Preparation:
    """Writes the text that ``sbnmt recipe`` expects, as a command line asks."""

    corpus: Corpus
    args: argparse.Namespace

    def rows(self, split: str, part: Part) -> Iterator[Row]:
        """Yield the raw lines of a part of a set."""
        return rows_of(part.files(self.args.data), self.args.first)

    def problem(self, split: str, row: Row) -> str:
        """Return the reason for which a tokenised row is left out, "" if it stays."""
        least, most = self.args.words or (0, math.inf)
        if not least <= len(row[1].split()) <= most:
            return "not as long as --words asks for"
        return self.corpus.limits.problem(row) if split == "train" else ""

    def write(self, split: str, parts: tuple[Part, ...]) -> None:
        """Write a set: tokenised text and, but for training, references as they were.

        The target, by which a set is known to be whole, appears last.

        Raises:
            ValueError: no sentence is left.
        """
        corpus = self.corpus
        source, target = corpus.rules or (corpus.source, corpus.target)
        args, references = self.args, len(parts[0].targets)
        languages = source, *[target] * references
        targets = [corpus.target]
        targets += [f"{targets[0]}.{number}" for number in range(2, references + 1)]
        given = [] if split == "train" else [f"ref.{name}" for name in targets]
        names = [*targets, corpus.source, *given]
        sizes: Counter[str] = Counter()
        left_out: Counter[str] = Counter()  # reasons
        with contextlib.ExitStack() as stack:  # what is opened first appears last
            paths = [args.output / f"{split}.{name}" for name in names]
            files = [stack.enter_context(new_file(path)) for path in paths]
            for part in parts:
                raw, rows = tee(self.rows(split, part))
                made = tokenised(rows, languages, args.lowercase, args.workers)
                for row, before in zip(progress(made, unit="line", leave=False), raw):
                    if reason := self.problem(split, row):
                        left_out[reason] += 1
                        continue
                    sizes[part.name or split] += 1
                    for file, text in zip(files, (*row[1:], row[0], *before[1:])):
                        file.write(text + "\n")
            kept = sizes.total()
            count = f"{kept:,} of {kept + left_out.total():,} sentences"
            print(f"{split}: {count}", file=sys.stderr)
            for reason, number in left_out.most_common():
                print(f"{split}: {number:,} left out, {reason}", file=sys.stderr)
            if not kept:
                raise ValueError(
                    f"{split} of --data {args.data} must have a sentence, but all were "
                    "left out: give others"
                )
            if split == "test":
                listed = (f"{name}\t{size}" for name, size in sizes.items())
                write_lines(args.output / "test.sets", listed)

    def run(self) -> None:
        """Write all sets, the test set last; a missing file is told at once."""
        corpus = self.corpus
        for part in (*corpus.train, corpus.valid, *corpus.test):
            part.files(self.args.data)
        self.write("train", corpus.train)
        self.write("valid", (corpus.valid,))
        self.write("test", corpus.test)


def options(description: str) -> argparse.ArgumentParser:
    """Return the parser of a prepare.py's command line."""
    parser = command.parser(description)
    add, number = parser.add_argument, command.AtLeastOne
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
