#!/usr/bin/env python3
"""Tokenise the raw Multi30k files of a folder.

    prepare.py --data FOLDER --output TEXT [--lowercase]

FOLDER holds train.en, train.de, valid.en, valid.de, test2016.en and test2016.de, as
in data/task1/raw of the repository multi30k/dataset on GitHub, gunzipped.  If it also
holds test2017, coco2017 or test2018, the test set is all of them behind each other.

Writes {train,valid,test}.{en,de}, the references before tokenising,
{valid,test}.ref.{en,de}, and the lengths of the test sets, test.sets.  With --lowercase
all of it is lower-cased.  A row's score is the mean of the sets.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.text import read_parallel, write_lines
from sbnmt_plugin.tools.tokens import tokenise

LANGUAGES = ("en", "de")
FURTHER = ("test2017", "coco2017", "test2018")


def test_sets(data: Path) -> list[str]:
    """test2016, and those of the others that are there.

    Raises:
        FileNotFoundError: one of the two files of a set is missing.
    """
    found = ["test2016"]
    for name in FURTHER:
        files = [data / f"{name}.{language}" for language in LANGUAGES]
        there = [path for path in files if path.exists()]
        for path in files if there else ():
            if path not in there:
                raise FileNotFoundError(
                    f"{path} must be there as {there[0]} is: add it, or remove that"
                )
        found += [name] * bool(there)
    return found


def read(data: Path, names: list[str]) -> dict[str, list[list[str]]]:
    """Texts of both languages, by set.

    Raises:
        FileNotFoundError, ValueError: a file is missing, or has another length than
            its twin.
    """
    return {
        name: read_parallel(*(data / f"{name}.{language}" for language in LANGUAGES))
        for name in names
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder of the raw files")
    parser.add_argument("--output", required=True, help="folder to write")
    parser.add_argument("--lowercase", action="store_true")
    args = parser.parse_args()
    data, output = Path(args.data), Path(args.output)
    names = {"train": ["train"], "valid": ["valid"], "test": test_sets(data)}
    splits = {split: read(data, sets) for split, sets in names.items()}
    sizes = {name: len(texts[0]) for name, texts in splits["test"].items()}
    told = ", ".join(f"{name} ({size} sentences)" for name, size in sizes.items())
    print(f"test sets: {told}", file=sys.stderr)
    write_lines(output / "test.sets", (f"{name}\t{n}" for name, n in sizes.items()))
    for split, sets in splits.items():
        both = [[line for texts in sets.values() for line in texts[i]] for i in (0, 1)]
        for language, lines in zip(LANGUAGES, both):  # either may be written
            if split != "train":
                references = (
                    line.lower() if args.lowercase else line for line in lines
                )
                write_lines(output / f"{split}.ref.{language}", references)
        for language, lines in zip(LANGUAGES, both):
            tokens = tokenise(lines, language, args.lowercase)
            write_lines(output / f"{split}.{language}", tokens)


if __name__ == "__main__":
    run(main)
