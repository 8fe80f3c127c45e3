"""Fake raw data, laid out exactly as the real files that the recipes read.

Each ``lay_out_…(folder)`` writes a few hundred sentences and returns the folder, which
is then a recipe's ``--data``.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path

TRAIN, HELD_OUT = 90, 12  # sentences of a training corpus, of a validation or test set
WORDS = {
    "en": "house dog tree road city book river train winter letter",
    "de": "Haus Hund Baum Straße Stadt Buch Fluss Zug Winter Brief",
    "ru": "дом собака дерево дорога город книга река поезд зима письмо",
    "zh": "房子 狗 树 道路 城市 书 河流 火车 冬天 信",
}
NOUNS = {language: words.split() for language, words in WORDS.items()}
FULL_STOP = {"zh": "。"}


def rows(languages: str, count: int, seed: int) -> list[tuple[str, ...]]:
    """Sentences of some words, translated word by word."""
    generator = random.Random(seed)
    found = []
    for _ in range(count):
        words = generator.choices(range(len(NOUNS["en"])), k=generator.randint(3, 7))
        row = []
        for language in languages.split():
            blank = "" if language == "zh" else " "
            text = blank.join(NOUNS[language][word] for word in words)
            row.append(text[0].upper() + text[1:] + FULL_STOP.get(language, "."))
        found.append(tuple(row))
    return found


def plain(lines) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def sgml(lines, name: str, kind: str, language: str) -> bytes:
    """As the organisers of WMT write their news tests."""
    text = [f'<{kind} setid="{name}" srclang="any" trglang="{language}">']
    for document in range(0, len(lines), 5):
        text.append(f'<doc sysid="ref" docid="{name}.{document}" genre="news">')
        text.append("<p>")
        for number, line in enumerate(lines[document : document + 5], start=1):
            text.append(f'<seg id="{number}">{line}</seg>')
        text += ["</p>", "</doc>"]
    return plain([*text, f"</{kind}>"])


def put(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def put_all(folder: Path, members: dict[str, bytes]) -> None:
    for name, content in members.items():
        put(folder / name, content)


def pair(path: str, languages: str, count: int, seed: int) -> dict[str, bytes]:
    """PATH.xx and PATH.yy."""
    columns = zip(*rows(languages, count, seed))
    names = [f"{path}.{language}" for language in languages.split()]
    return {name: plain(lines) for name, lines in zip(names, columns)}


def news(path: str, name: str, languages: str, seed: int) -> dict[str, bytes]:
    """PATH-src.xx.sgm and PATH-ref.yy.sgm."""
    source, target = languages.split()
    texts, references = zip(*rows(languages, HELD_OUT, seed))
    return {
        f"{path}-src.{source}.sgm": sgml(texts, name, "srcset", "any"),
        f"{path}-ref.{target}.sgm": sgml(references, name, "refset", target),
    }


def lay_out_wmt14(folder: Path) -> Path:
    """What the archives of WMT14 English-German hold."""
    training = ("training/europarl-v7", "commoncrawl", "training/news-commentary-v9")
    for seed, name in enumerate(training):
        put_all(folder, pair(f"{name}.de-en", "de en", TRAIN, seed))
    put_all(folder, pair("commoncrawl.ru-en", "ru en", TRAIN, 3))  # which is not asked
    put_all(folder, pair("dev/newstest2013", "de en", HELD_OUT, 5))
    put_all(folder, news("test-full/newstest2014-deen", "newstest2014", "en de", 6))
    return folder


def lay_out_wmt18(folder: Path) -> Path:
    """What the archives of WMT18 Russian-English hold, and the Yandex corpus."""
    commentary = "training-parallel-nc-v13/news-commentary-v13.ru-en"
    crawls = ("paracrawl-release1.en-ru.zipporah0-dedup-clean", "commoncrawl.ru-en")
    for seed, name in enumerate((*crawls, commentary, "corpus.en_ru.1m")):
        put_all(folder, pair(name, "en ru", TRAIN, seed))
    for year in (2017, 2018):
        name = f"newstest{year}"
        put_all(folder, news(f"test/{name}-ruen", name, "ru en", year))
    return folder


def lay_out_nist(folder: Path) -> Path:
    """Text that a user has extracted from LDC's corpora and NIST's test sets."""
    corpora = "2000T50 2002T01 2002E18 2003E07 2003E14 2003T17 2004T07"
    for seed, name in enumerate(corpora.split()):
        put_all(folder, pair(f"train/LDC{name}", "zh en", TRAIN, seed))
    for seed, year in enumerate(range(2, 7), start=100):
        texts, references = zip(*rows("zh en", HELD_OUT + year, seed))
        put(folder / f"test/MT0{year}.zh", plain(texts))
        for number in range(4):
            other = [f"{line[:-1]} {number}." for line in references]
            put(folder / f"test/MT0{year}.ref{number}", plain(other))
    return folder


def lay_out_techdocs(folder: Path) -> Path:
    """Gzipped training text, plain validation and test sets."""
    sizes = {"train": 2 * TRAIN, "valid": HELD_OUT, "test": HELD_OUT}
    for seed, (split, size) in enumerate(sizes.items()):
        for path, content in pair(split, "zh en", size, seed).items():
            if split == "train":
                put(folder / f"{path}.gz", gzip.compress(content))
            else:
                put(folder / path, content)
    return folder


LAY_OUT = {
    "techdocs_zh_en": lay_out_techdocs,
    "wmt14_en_de": lay_out_wmt14,
    "wmt18_ru_en": lay_out_wmt18,
    "nist_zh_en": lay_out_nist,
}


WORDS = ["a", "little", "dog", "runs", "over", "the", "green", "hill", "sees", "one"]


def sentences(count, start=0):
    """Lines of a pretended language, no two alike, and their translations."""
    source, target = [], []
    for number in range(start, start + count):
        found = [WORDS[(number * 7 + i * i) % len(WORDS)] for i in range(4)]
        source.append(" ".join([*found, f"n{number}", "."]))
        target.append(" ".join([*(x[::-1] for x in found), f"m{number}", "."]))
    return source, target


def raw_sentences(folder, source, target, split="train"):
    """Write a set of a raw bitext; return the folder."""
    put(folder / f"{split}.en", plain(source))
    put(folder / f"{split}.de", plain(target))
    return folder
