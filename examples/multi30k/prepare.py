#!/usr/bin/env python3
"""Tokenise the raw Multi30k files of a folder.

    prepare.py --data FOLDER --output TEXT [--lowercase]

FOLDER holds train.en, train.de, valid.en, valid.de, test2016.en and test2016.de, as
in data/task1/raw of the repository multi30k/dataset on GitHub, gunzipped.  Writes
{train,valid,test}.{en,de} and the untouched references {valid,test}.ref.de.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.text import read_parallel, write_lines
from sbnmt_plugin.tools.tokens import tokenise

FILES = {"train": "train", "valid": "valid", "test": "test2016"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, help="folder of the raw files")
    parser.add_argument("--output", required=True, help="folder to write")
    parser.add_argument("--lowercase", action="store_true")
    args = parser.parse_args()
    data, output = Path(args.data), Path(args.output)
    for split, name in FILES.items():
        texts = read_parallel(data / f"{name}.en", data / f"{name}.de")
        if split != "train":
            for language, reference in zip(
                ("en", "de"), texts
            ):  # either may be written
                if args.lowercase:
                    reference = [line.lower() for line in reference]
                write_lines(output / f"{split}.ref.{language}", reference)
        for language, lines in zip(("en", "de"), texts):
            tokens = tokenise(lines, language, args.lowercase)
            write_lines(output / f"{split}.{language}", tokens)


if __name__ == "__main__":
    run(main)
