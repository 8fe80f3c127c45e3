#!/usr/bin/env python3
"""Clean and tokenise WMT18 Russian -> English.

    prepare.py --data RAW --output TEXT [--first N]

RAW is where the archives were unpacked.  Training: ParaCrawl, Common Crawl, News
Commentary v13, and the Yandex corpus, which Yandex gives out on request; validation:
newstest2017; test: newstest2018.
"""

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.published import Archive, Corpus, Part, prepare

WMT13 = "https://www.statmt.org/wmt13"
WMT17 = "https://data.statmt.org/wmt17/translation-task"
WMT18 = "https://data.statmt.org/wmt18/translation-task"
PARACRAWL = "https://s3.amazonaws.com/web-language-models/paracrawl/release1"
PARACRAWL_NAME = "paracrawl-release1.en-ru.zipporah0-dedup-clean"
YANDEX = (
    "ask for 1mcorpus.zip at https://translate.yandex.ru/corpus?lang=en and unpack "
    "corpus.en_ru.1m.ru and corpus.en_ru.1m.en into this folder"
)


def pair(archive: str, url: str, path: str) -> Part:
    """A part whose files differ in the language at the end of the name."""
    source, target = f"{path}.ru", f"{path}.en"
    return Part(source, (target,), Archive(archive, f"{url}/{archive}"))


def news(year: int, url: str) -> Part:
    """A newstest; its archive is called test.tgz in every year."""
    path = f"test/newstest{year}-ruen"
    archive = Archive(f"test{year}.tgz", f"{url}/test.tgz")
    return Part(f"{path}-src.ru.sgm", (f"{path}-ref.en.sgm",), archive)


NEWS = "training-parallel-nc-v13"
CORPUS = Corpus(
    source="ru",
    target="en",
    train=(
        pair(f"{PARACRAWL_NAME}.tgz", PARACRAWL, PARACRAWL_NAME),
        pair("training-parallel-commoncrawl.tgz", WMT13, "commoncrawl.ru-en"),
        pair(f"{NEWS}.tgz", WMT18, f"{NEWS}/news-commentary-v13.ru-en"),
        Part("corpus.en_ru.1m.ru", ("corpus.en_ru.1m.en",), remedy=YANDEX),
    ),
    valid=news(2017, WMT17),
    test=(news(2018, WMT18),),
)

if __name__ == "__main__":
    run(lambda: prepare(__doc__, __file__, CORPUS))
