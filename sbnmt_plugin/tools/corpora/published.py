"""Published corpora made into the text of a recipe: cleaned and tokenised.

A recipe's prepare.py declares a :class:`Corpus` and calls :func:`prepare`.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.corpora.raw_data import (
    Archive,
    Part,
    Raw,
    Row,
    rows_of,
    tokenised,
)
from sbnmt_plugin.tools.progress import progress
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
    """

    longest: int = 80
    ratio: float = 9.0
    word: int = 1000

    def keep(self, pair: Row) -> bool:
        """Return whether a tokenised pair stays."""
        words = [side.split() for side in pair]
        least, most = sorted(map(len, words))
        return (
            least > 0
            and most <= self.longest
            and most <= self.ratio * least
            and all(len(word) <= self.word for side in words for word in side)
        )


@dataclass(frozen=True)
class Corpus:
    """The parts of a recipe's text."""

    source: str
    target: str
    train: tuple[Part, ...]
    valid: Part
    test: tuple[Part, ...]
    limits: Limits = Limits()


@dataclass
class Preparation:
    """Writes the text that ``sbnmt recipe`` expects, as a command line asks."""

    corpus: Corpus
    raw: Raw
    args: argparse.Namespace

    def wanted(self, row: Row) -> bool:
        """Return whether a tokenised row's first target is as long as is asked for."""
        least, most = self.args.words or (0, math.inf)
        return least <= len(row[1].split()) <= most

    def tokenised(self, rows: Iterable[Row], references: int = 1) -> Iterator[Row]:
        languages = (self.corpus.source, *[self.corpus.target] * references)
        return tokenised(rows, languages, self.args.lowercase, self.args.workers)

    def train(self) -> None:
        """Write the training set: the clean pairs of all parts."""
        found = [self.raw.find(part) for part in self.corpus.train]
        rows = chain.from_iterable(rows_of(paths, self.args.first) for paths in found)
        read = kept = 0
        prefix = self.args.output / "train"
        with (
            new_file(f"{prefix}.{self.corpus.source}") as source,
            new_file(f"{prefix}.{self.corpus.target}") as target,
        ):
            for pair in progress(self.tokenised(rows), unit="pair", leave=False):
                read += 1
                if self.wanted(pair) and self.corpus.limits.keep(pair):
                    kept += 1
                    source.write(pair[0] + "\n")
                    target.write(pair[1] + "\n")
        print(f"train: {kept} of {read} sentence pairs kept", file=sys.stderr)

    def held_out(self, split: str, parts: tuple[Part, ...]) -> None:
        """Write a validation or test set; the file that marks it as done comes last."""
        pairs: list[tuple[Row, Row]] = []  # as published, tokenised
        sizes = []
        for part in parts:
            rows = [*rows_of(self.raw.find(part), self.args.first)]
            both = zip(rows, self.tokenised(rows, len(rows[0]) - 1))
            kept = [pair for pair in both if self.wanted(pair[1])]
            pairs += kept
            sizes.append(f"{part.name or split}\t{len(kept)}")
        if not pairs:
            raise ValueError(
                "--words {} {} must leave sentences, but {} has none of such a "
                "length".format(*self.args.words, split)
            )
        print(f"{split}: {len(pairs)} sentences", file=sys.stderr)
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


def parse(description: str, public: bool) -> argparse.Namespace:
    """Read the command line of a prepare.py."""
    parser = command.parser(description)
    add, number = parser.add_argument, command.at_least(1)
    add("--data", type=Path, required=True, help="folder of the raw files")
    add("--output", type=Path, required=True, help="folder to write")
    add("--lowercase", action="store_true")
    add("--first", action=number, help="lines to read of each file")
    add(
        "--words",
        type=int,
        nargs=2,
        metavar=("MIN", "MAX"),
        help="keep sentences, of all sets, whose (first) target has so many tokens",
    )
    add("--workers", action=number, default=os.cpu_count())
    if public:
        add("--download", action="store_true", help="fetch archives that are missing")
    args = parser.parse_args()
    least, most = args.words or (1, 1)
    if not 1 <= least <= most:
        raise ValueError(
            f"--words must be 1 ≤ MIN ≤ MAX, but are {least} {most} instead"
        )
    return args


def prepare(description: str, _script: str, corpus: Corpus) -> None:
    """Do the work of a recipe's prepare.py.

    Args:
        description: its text for --help.
        _script: its path, which every prepare.py gives; nothing depends on it.
        corpus: the corpus to prepare.
    """
    parts = (*corpus.train, corpus.valid, *corpus.test)
    public = any(part.archive for part in parts)
    args = parse(description, public)
    raw = Raw(args.data, public and args.download)
    for part in parts:  # a missing file is told before hours of work
        raw.find(part)
    preparation = Preparation(corpus, raw, args)
    preparation.train()
    preparation.held_out("valid", (corpus.valid,))
    preparation.held_out("test", corpus.test)
