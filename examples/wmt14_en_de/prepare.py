#!/usr/bin/env python3
"""Clean and tokenise WMT14 English -> German.

    prepare.py --data RAW --output TEXT [--first N]

RAW is where the archives were unpacked.  Training: Europarl v7, Common Crawl, News
Commentary v9; validation: newstest2013; test: newstest2014, all 3,003 sentences.
"""

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.published import Corpus, Part, prepare

WMT13 = "https://www.statmt.org/wmt13"
WMT14 = "https://www.statmt.org/wmt14"


def pair(url: str, path: str) -> Part:
    """A part whose files differ in the language at the end of the name."""
    return Part(f"{path}.en", (f"{path}.de",), f"fetch {url}, and unpack it in --data")


TRAINING = "training-parallel"
TEST = "test-full/newstest2014-deen"
CORPUS = Corpus(
    source="en",
    target="de",
    train=(
        pair(f"{WMT13}/{TRAINING}-europarl-v7.tgz", "training/europarl-v7.de-en"),
        pair(f"{WMT13}/{TRAINING}-commoncrawl.tgz", "commoncrawl.de-en"),
        pair(f"{WMT14}/{TRAINING}-nc-v9.tgz", "training/news-commentary-v9.de-en"),
    ),
    valid=pair(f"{WMT14}/dev.tgz", "dev/newstest2013"),
    test=(
        Part(
            f"{TEST}-src.en.sgm",
            (f"{TEST}-ref.de.sgm",),
            f"fetch {WMT14}/test-full.tgz, and unpack it in --data",
        ),
    ),
)

if __name__ == "__main__":
    run(lambda: prepare(__doc__, CORPUS))
