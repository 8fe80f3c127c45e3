#!/usr/bin/env python3
"""Segment and tokenise the technical documentation, Chinese -> English.

    prepare.py --data RAW --output TEXT [--lowercase] [--first N]

RAW holds train.zh, train.en, valid.zh, valid.en, test.zh and test.en, plain or as .gz,
one sentence a line.
"""

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.published import Corpus, Part, prepare


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
