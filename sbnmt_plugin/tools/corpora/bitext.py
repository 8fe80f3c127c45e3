"""Anybody's bitext made into the text of a recipe: held out, cleaned and tokenised.

The texts are read several times as streams, so they may be larger than the memory.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from sbnmt_plugin.symbols import RESERVED
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.corpora.raw_data import Row, lines_of, rows_of, tokenised
from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.text import write_lines
from sbnmt_plugin.tools.tokens import language_code
from sbnmt_plugin.tools.unfinished import new_file

LEAST, MOST = 1000, 2000  # lines that are held out of a large bitext
SHARE = 10  # at most one line in so many is held out for validation, and one for test
FEWEST = 50  # lines, of which something can be made at all
LONGEST = 250  # words of a sentence
RATIO = 9  # words of the longer side for one of the shorter
SPACED = 20  # characters for one blank, in text that has blanks between words
CANDIDATES = 3  # for one line that is held out, as some stand in the text again


def find(data: Path, split: str, language: str) -> Path | None:
    """Return a side of the raw text, plain or packed, if it is there."""
    paths = data / f"{split}.{language}", data / f"{split}.{language}.gz"
    return next((path for path in paths if path.is_file()), None)


def sides(data: Path, split: str, languages: Row) -> list[Path]:
    """Return both sides of a split of the raw text, none where it has no such split.

    Raises:
        FileNotFoundError: one is missing, and is not both of validation or test set.
    """
    found = [find(data, split, language) for language in languages]
    there = [path for path in found if path is not None]
    if len(there) == 2 or (not there and split != "train"):
        return there
    missing = languages[found.index(None)]
    raise FileNotFoundError(
        f"{data / split}.{missing} does not exist: put one sentence a line there, as "
        f"plain text or as .gz, line by line the translation of {split}."
        f"{next(name for name in languages if name != missing)}"
    )


def count_lines(data: Path, languages: Row) -> int:
    """Return the number of lines of the training text.

    Raises:
        FileNotFoundError, ValueError: a side is missing, or is no whole UTF-8 text.
    """
    return sum(1 for _ in lines_of(sides(data, "train", languages)[0]))


def words(line: str) -> int:
    """Return the number of words; without blanks two characters count as one."""
    count = len(line.split())
    return count if count * SPACED >= len(line) else len(line) // 2


def problem(pair: Row) -> str:
    """Return the reason for which a tokenised pair is left out, "" for none."""
    least, most = sorted(map(words, pair))
    if not all(pair):
        return "empty"
    if most > LONGEST:
        return f"longer than {LONGEST} words"
    if most > RATIO * least:
        return f"more than {RATIO} times as long as its translation"
    if any(set(RESERVED).intersection(side.split()) for side in pair):
        return "with a symbol that is reserved, such as </s>"
    return ""


def choose(paths: list[Path], splits: list[str], seed: int) -> dict[int, str]:
    """Choose the lines of a training text that are held out.

    Neither side of them stands anywhere else in the text.

    Args:
        splits: the sets that are made of them.

    Returns:
        Place of a line -> its set.

    Raises:
        ValueError: the text is too small.
    """
    if not splits:
        return {}
    count = sum(1 for _ in rows_of(paths))
    wanted = min(MOST, max(LEAST, count // 100), count // SHARE)
    order = random.Random(seed)
    most = min(count, CANDIDATES * wanted * len(splits))
    places = order.sample(range(count), most)
    chosen = dict.fromkeys(places, ("", ""))
    for place, pair in enumerate(rows_of(paths)):
        if place in chosen:
            chosen[place] = (pair[0], pair[1])
    seen = [Counter(pair[side] for pair in chosen.values()) for side in (0, 1)]
    for counter in seen:
        counter.subtract(dict(counter))
    for pair in rows_of(paths):
        for counter, text in zip(seen, pair):
            if text in counter:
                counter[text] += 1
    once = [
        place
        for place in places
        if all(chosen[place]) and all(c[x] == 1 for c, x in zip(seen, chosen[place]))
    ][: wanted * len(splits)]
    if len(once) < len(splits):
        raise ValueError(
            f"{paths[0]} must have lines to hold out for {' and '.join(splits)}, but "
            "has none that stands there once alone: give the files of "
            f"{' and '.join(splits)}"
        )
    return {place: splits[i % len(splits)] for i, place in enumerate(once)}


class Preparation:
    """Writes the text that ``sbnmt recipe`` expects, as a command line asks."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.languages = args, (args.source, args.target)
        plain = {name: "none" if args.no_tokenise else name for name in self.languages}
        plain |= dict.fromkeys(args.characters, "characters")
        self.rules = tuple(plain[name] for name in self.languages)

    def run(self) -> None:
        """Write all sets, the test set last, and say how many pairs they have."""
        given = {
            split: sides(self.args.data, split, self.languages)
            for split in ("train", "valid", "test")
        }
        lacking = [split for split, paths in given.items() if not paths]
        held = choose(given["train"], lacking, self.args.seed)
        for split, paths in given.items():
            if paths and split != "train":
                self.write(split, rows_of(paths))
                continue
            numbered = enumerate(rows_of(given["train"]))
            own = None if paths else split  # of a line that is of no other set
            self.write(split, (row for i, row in numbered if held.get(i) == own))
            if not paths:
                told(
                    f"{split}: {self.args.data} has no {split}.{self.args.source}, so "
                    f"these are lines of train (seed {self.args.seed}), none of which "
                    "stands there twice; they are not trained on"
                )

    def write(self, split: str, rows: Iterable[Row]) -> None:
        """Write a set; of validation and test also the target as it was."""
        args, left_out = self.args, Counter[str]()
        prefix, (source, target) = args.output / split, self.languages
        kept = 0
        references: list[str] = []
        with (
            new_file(f"{prefix}.{source}") as first,
            new_file(f"{prefix}.{target}") as second,
        ):
            for raw, pair in progress(self.both(rows), unit="pair", leave=False):
                if reason := problem(pair):
                    left_out[reason] += 1
                    continue
                kept += 1
                first.write(pair[0] + "\n")
                second.write(pair[1] + "\n")
                if split != "train":
                    references.append(raw[1])
            if split != "train":
                write_lines(f"{prefix}.ref.{target}", references)
        told(f"{split}: {kept:,} pairs of sentences")
        for reason, count in left_out.most_common():
            told(f"{split}: {count:,} left out, {reason}")
        if kept < (FEWEST * 4 // 5 if split == "train" else 1):
            raise ValueError(
                f"{args.data}: {split} must have pairs to train on or to translate, "
                f"but has {kept}: give {FEWEST} lines or more of text"
            )

    def both(self, rows: Iterable[Row]) -> Iterator[tuple[Row, Row]]:
        """Yield each pair as it is, and tokenised."""
        waiting: deque[Row] = deque()

        def noted() -> Iterator[Row]:
            for row in rows:
                waiting.append(row)
                yield row

        args = self.args
        pairs = tokenised(noted(), self.rules, args.lowercase, args.workers)
        for pair in pairs:
            yield waiting.popleft(), pair


def told(line: str) -> None:
    print(line, file=sys.stderr)


def prepare(description: str) -> None:
    """Do the work of the recipe's prepare.py.

    Args:
        description: its text for --help.

    Raises:
        FileNotFoundError, ValueError: files are missing, or are no text; the bitext is
            too small; with the file.
    """
    parser = command.parser(description)
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder of the raw text")
    add("--output", type=Path, required=True, help="folder to write")
    add("--source", required=True, help="language, and ending of its files")
    add("--target", required=True, help="language, and ending of its files")
    add("--lowercase", action="store_true")
    add("--no-tokenise", action="store_true", help="tokens stand between blanks")
    add(
        "--characters",
        nargs="+",
        default=[],
        metavar="LANGUAGE",
        help="languages of which every ideograph is a token",
    )
    add("--seed", type=int, default=1, help="of the lines that are held out")
    add("--workers", action=command.at_least(1), default=os.cpu_count())
    args = parser.parse_args()
    preparation = Preparation(args)
    for language in preparation.rules:
        language_code(language)
    preparation.run()
