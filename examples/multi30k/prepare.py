#!/usr/bin/env python3
"""Tokenise the raw Multi30k files of a folder.

    prepare.py --data FOLDER --output TEXT [--lowercase]

FOLDER holds train.en, train.de, valid.en, valid.de, test2016.en and test2016.de, as
in data/task1/raw of the repository multi30k/dataset on GitHub, gunzipped.  Writes
{train,valid,test}.{en,de} and the untouched references {valid,test}.ref.de.

Further test sets that FOLDER holds, test2017, coco2017 and test2018, follow test2016 in
test.{en,de}; test.sets lists their lengths, and a row's score is the mean of the sets.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.text import read_parallel, write_lines
from sbnmt_plugin.tools.tokens import tokenise

LANGUAGES = ("en", "de")
FURTHER = ("test2017", "coco2017", "test2018")


def test_sets(data: Path) -> list[str]:
    """test2016 and those that are there, too; half of one is none, and an error."""
    return ["test2016", *(name for name in FURTHER if any(data.glob(f"{name}.*")))]


def read(data: Path, names: list[str]) -> tuple[list[list[str]], list[str]]:
    """Texts of both languages, sets behind each other, and ``NAME<tab>LENGTH`` of each.

    Raises:
        FileNotFoundError, ValueError: a file is missing, or shorter than its twin.
    """
    texts: list[list[str]] = [[], []]
    sizes = []
    for name in names:
        found = read_parallel(*(data / f"{name}.{language}" for language in LANGUAGES))
        sizes.append(f"{name}\t{len(found[0])}")
        for text, lines in zip(texts, found):
            text += lines
    return texts, sizes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder of the raw files")
    parser.add_argument("--output", required=True, help="folder to write")
    parser.add_argument("--lowercase", action="store_true")
    args = parser.parse_args()
    data, output = Path(args.data), Path(args.output)
    splits = {"train": ["train"], "valid": ["valid"], "test": test_sets(data)}
    for split, names in splits.items():
        texts, sizes = read(data, names)
        if len(names) > 1:
            write_lines(output / f"{split}.sets", sizes)
        for language, lines in zip(LANGUAGES, texts):  # either may be written
            if split != "train":
                reference = (
                    [line.lower() for line in lines] if args.lowercase else lines
                )
                write_lines(output / f"{split}.ref.{language}", reference)
        for language, lines in zip(LANGUAGES, texts):
            tokens = tokenise(lines, language, args.lowercase)
            write_lines(output / f"{split}.{language}", tokens)


if __name__ == "__main__":
    run(main)
