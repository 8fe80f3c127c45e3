#!/usr/bin/env python3
"""Segment, clean and tokenise LDC's and NIST's Chinese -> English.

    prepare.py --data RAW --output TEXT [--lowercase] [--first N]

The data is licensed: RAW holds plain UTF-8 text (or .gz), one sentence a line, that
you have extracted from your copies: train/LDC….zh and .en for each corpus, and
test/MT02.zh with its references test/MT02.ref0 … test/MT02.ref3, and so on to MT06.
"""

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.published import Corpus, Part, prepare

# as footnote 4 of the paper lists them
LDC = (
    "LDC2000T50",
    "LDC2002T01",
    "LDC2002E18",
    "LDC2003E07",
    "LDC2003E14",
    "LDC2003T17",
    "LDC2004T07",
)
REFERENCES = 4
REMEDY = (
    "extract it from your copy of the corpus as plain UTF-8 text, one sentence a line "
    "(see examples/nist_zh_en/README.md for the whole layout)"
)


def training(name: str) -> Part:
    return Part(f"train/{name}.zh", (f"train/{name}.en",), remedy=REMEDY)


def evaluation(name: str) -> Part:
    references = tuple(f"test/{name}.ref{i}" for i in range(REFERENCES))
    return Part(f"test/{name}.zh", references, remedy=REMEDY, name=name)


CORPUS = Corpus(
    source="zh",
    target="en",
    train=tuple(map(training, LDC)),
    valid=evaluation("MT02"),
    test=tuple(map(evaluation, ("MT03", "MT04", "MT05", "MT06"))),
)

if __name__ == "__main__":
    run(lambda: prepare(__doc__, __file__, CORPUS))
