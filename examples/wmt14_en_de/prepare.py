#!/usr/bin/env python3
"""Clean and tokenise WMT14 English -> German.

    prepare.py --data RAW --output TEXT [--first N]

RAW is where the archives were unpacked.  Training: Europarl v7, Common Crawl, News
Commentary v9; validation: newstest2013; test: newstest2014, all 3,003 sentences.
"""

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.published import Archive, Corpus, Part, prepare

WMT13 = "https://www.statmt.org/wmt13"
WMT14 = "https://www.statmt.org/wmt14"


def pair(archive: str, url: str, path: str) -> Part:
    """A part whose files differ in the language at the end of the name."""
    source, target = f"{path}.en", f"{path}.de"
    return Part(source, (target,), Archive(archive, f"{url}/{archive}"))


TEST = "test-full/newstest2014-deen"
CORPUS = Corpus(
    source="en",
    target="de",
    train=(
        pair("training-parallel-europarl-v7.tgz", WMT13, "training/europarl-v7.de-en"),
        pair("training-parallel-commoncrawl.tgz", WMT13, "commoncrawl.de-en"),
        pair("training-parallel-nc-v9.tgz", WMT14, "training/news-commentary-v9.de-en"),
    ),
    valid=pair("dev.tgz", WMT14, "dev/newstest2013"),
    test=(
        Part(
            f"{TEST}-src.en.sgm",
            (f"{TEST}-ref.de.sgm",),
            Archive("test-full.tgz", f"{WMT14}/test-full.tgz"),
        ),
    ),
)

if __name__ == "__main__":
    run(lambda: prepare(__doc__, __file__, CORPUS))
