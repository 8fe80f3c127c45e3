"""Anybody's bitext made into the text of a recipe: held out, cleaned and tokenised."""

from __future__ import annotations

import hashlib
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from sbnmt_plugin.symbols import RESERVED
from sbnmt_plugin.tools.published import Corpus, Limits, Preparation, options
from sbnmt_plugin.tools.raw_data import Part, Row, existing, lines_of, rows_of
from sbnmt_plugin.tools.scoring import WITHOUT_BLANKS, tokeniser_for, tokeniser_of
from sbnmt_plugin.tools.subwords import MARK
from sbnmt_plugin.tools.tokens import SAMPLE, changed_lines, composed, language_code

LEAST, MOST = 1000, 2000  # lines that are held out of a large bitext
SHARE = 10  # at most one line in so many is held out for validation, and one for test
SEED = 1
WORTH = 2  # percent of lines that do not come back from tokens: pieces do better
LIMITS = Limits(longest=250)
RAW_LIMITS = Limits(longest=1000, word=1, raw=True)  # four characters a word
NO_WORD = re.compile(r"[\W_]+")  # what casing and tokenisers may change, beside letters


def part_of(split: str, source: str, target: str) -> Part:
    """Return the files of a set."""
    remedy = (
        "put one sentence a line there, plain or as .gz, line by line the translations "
        f"of {split} in the other language"
    )
    return Part(f"{split}.{source}", (f"{split}.{target}",), remedy=remedy)


def count_lines(data: Path, source: str, target: str) -> int:
    """Return the number of lines of the training text.

    Raises:
        FileNotFoundError, ValueError: a side is missing, has other lines, or is no
            whole UTF-8 text.
    """
    files = part_of("train", source, target).files(data)
    return sum(1 for _ in rows_of(files))


def check_code(data: Path, source: str, target: str) -> None:
    """Check that the code of a target tells whether BLEU finds words between blanks.

    Raises:
        ValueError: its script has none, which the code does not tell.
    """
    path = part_of("train", source, target).files(data)[1]
    right = tokeniser_for([[*islice(lines_of(path), SAMPLE)]])
    if tokeniser_of(target) != right != "13a":
        raise ValueError(
            f"--target must be one of {', '.join(WITHOUT_BLANKS)} for {path}, whose "
            f"script has no blanks, but is {target}: take the right one, which has to "
            "be the ending of the files too"
        )


def unlike(
    data: Path, source: str, target: str, rules: str, lowercase: bool
) -> list[str]:
    """Say how many target lines do not come back from their tokens, if any."""
    path = part_of("train", source, target).files(data)[1]
    changed, tried = changed_lines([*islice(lines_of(path), SAMPLE)], rules, lowercase)
    if not changed:
        return []
    share = 100 * len(changed) / tried
    said = f"{share:.1f} % of {tried:,} lines of {path.name} differ when detokenised"
    advice = f" (above {WORTH} %): take --subwords sentencepiece, which changes none"
    return [f"{said}{advice * (share > WORTH)}."]


def alone(rows: Iterator[Row]) -> tuple[list[int], int]:
    """Return the places of pairs neither side of which another has, and their number.

    Sides that differ in case, blanks or punctuation count as the same.  The number is
    that of all pairs.
    """
    texts = (NO_WORD.sub("", composed(x).casefold()) for row in rows for x in row)
    sides = (hashlib.blake2b(x.encode(), digest_size=8) for x in texts)
    numbers = (int.from_bytes(side.digest(), "big") for side in sides)
    hashes = np.fromiter(numbers, np.uint64).reshape(-1, 2)
    once = np.ones(len(hashes), bool)
    for column in hashes.T:
        _, of, counts = np.unique(column, return_inverse=True, return_counts=True)
        once &= counts[of] == 1
    return np.flatnonzero(once).tolist(), len(once)


def choose(rows: Iterator[Row], splits: list[str]) -> dict[int, str]:
    """Choose the pairs of a training text that are held out.

    Args:
        splits: the sets that are made of them.

    Returns:
        Place of a pair -> its set.

    Raises:
        ValueError: the text has too few.
    """
    places, count = alone(rows)
    each = min(MOST, max(LEAST, count // 100), max(1, count // SHARE))
    if len(places) < (wanted := len(splits) * each):
        raise ValueError(
            f"--data must have {wanted} pairs of lines that stand in train once, to "
            f"hold them out for {' and '.join(splits)}, but has {len(places)}: give "
            f"files of {' and '.join(splits)}"
        )
    found = random.Random(SEED).sample(places, wanted)
    return {place: splits[i % len(splits)] for i, place in enumerate(found)}


@dataclass
class BitextPreparation(Preparation):
    """Writes the text that ``sbnmt recipe`` expects, of anybody's bitext.

    Attributes:
        held: place of a training pair -> the set that it is held out for.
    """

    held: dict[int, str] = field(default_factory=dict)

    def rows(self, split: str, part: Part) -> Iterator[Row]:
        """Yield the raw lines of a set, held out of train where it has no files."""
        numbered = enumerate(super().rows(split, part))
        own = split if split in self.held.values() else None
        if split != "train" and own is None:
            return (row for _, row in numbered)
        return (row for place, row in numbered if self.held.get(place) == own)

    def problem(self, split: str, row: Row) -> str:
        """Return the reason for which a row is left out, of any set."""
        words = {word for side in row for word in side.split()}
        cut = not self.corpus.limits.raw and any(x.endswith(MARK) for x in words)
        if cut or words.intersection(RESERVED):
            return f"with a reserved word, such as </s>, or one that ends in {MARK}"
        return super().problem("train", row)


def prepare(description: str) -> None:
    """Do the work of the recipe's prepare.py.

    Args:
        description: its text for --help.

    Raises:
        FileNotFoundError, ValueError: files are missing, or are no text; the bitext is
            too small; with the file.
    """
    parser = options(description)
    add = parser.add_argument
    add("--source", required=True, help="language, and ending of its files")
    add("--target", required=True, help="language, and ending of its files")
    add("--no-tokenise", action="store_true", help="tokens stand between blanks")
    add("--raw", action="store_true", help="leave text as it is, for sentencepiece")
    characters = "languages of which every ideograph is a token"
    add("--characters", nargs="+", default=[], metavar="LANGUAGE", help=characters)
    args = parser.parse_args()
    languages = args.source, args.target
    plain = args.no_tokenise or args.raw
    rules = {name: "none" if plain else name for name in languages}
    rules |= dict.fromkeys(args.characters, "characters")
    for language in rules.values():
        language_code(language)
    parts = {x: part_of(x, *languages) for x in ("train", "valid", "test")}
    lacking = [
        x for x in parts if not any(existing(args.data / f"{x}.{y}") for y in languages)
    ]
    train = parts["train"].files(args.data)
    held = choose(rows_of(train, args.first), lacking) if lacking else {}
    parts |= dict.fromkeys(lacking, parts["train"])
    for split in lacking:
        print(f"{split}: pairs that stand in train once are held out", file=sys.stderr)
    corpus = Corpus(
        *languages,
        train=(parts["train"],),
        valid=parts["valid"],
        test=(parts["test"],),
        limits=RAW_LIMITS if args.raw else LIMITS,
        rules=(rules[args.source], rules[args.target]),
    )
    BitextPreparation(corpus, args, held=held).run()
