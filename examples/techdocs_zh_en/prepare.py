#!/usr/bin/env python3
"""Segment and tokenise the technical documentation, Chinese -> English.

    prepare.py --data RAW --output TEXT [--lowercase] [--first N]

RAW holds train.zh, train.en, valid.zh, valid.en, test.zh and test.en, plain or as .gz,
one sentence a line.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from published import Corpus, Part, prepare
from texts import run


def part(split: str) -> Part:
    return Part(f"{split}.zh", (f"{split}.en",))


CORPUS = Corpus(
    source="zh",
    target="en",
    train=(part("train"),),
    valid=part("valid"),
    test=(part("test"),),
)

if __name__ == "__main__":
    run(lambda: prepare(__doc__, __file__, CORPUS))
