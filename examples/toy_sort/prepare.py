#!/usr/bin/env python3
"""Write a synthetic language pair in which a translation has to count.

    prepare.py --output TEXT [--seed 1]

A source sentence is 6 to 14 words, drawn with replacement from four of thirty; its
translation has the same words in the order of a hidden ranking, each as often as it
stands there.  A word of the ranking's odd places becomes two target words, any other
one.  To write the next word one must know which copies have been used up.

Beside the texts stands test.links: which source word each target word is of, the k-th
copy in the one of the k-th copy in the other, as pairs SOURCE-TARGET.
"""

from __future__ import annotations

import random

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.synthetic import invented_stems, write_corpus

WORDS = 30
KINDS = 4  # of words in a sentence
LENGTHS = range(6, 15)
SIZES = {"train": 6000, "valid": 200, "test": 500}
Word = tuple[str, list[str]]


def invent_words(generator: random.Random) -> list[Word]:
    """(source word, its target words), in the order of the ranking."""
    stems = invented_stems(generator)
    return [
        (
            stems[2 * i] + "a",
            [stems[2 * i + 1] + end for end in ("o", "in")[: 1 + i % 2]],
        )
        for i in range(WORDS)
    ]


def sentence(generator: random.Random, words: list[Word]) -> tuple[str, str, str]:
    """A source sentence, its translation, and its links."""
    kinds = generator.sample(range(len(words)), KINDS)
    chosen = generator.choices(kinds, k=generator.choice(LENGTHS))
    target: list[str] = []
    links = []
    # sorting keeps the order of equals: the k-th copy stays the k-th
    for place, word in sorted(enumerate(chosen), key=lambda pair: pair[1]):
        for part in words[word][1]:
            links.append((place, len(target)))
            target.append(part)
    source = " ".join(words[word][0] for word in chosen)
    pairs = " ".join(f"{i}-{j}" for i, j in sorted(links))
    return source, " ".join(target), pairs


def main() -> None:
    write_corpus(__doc__, SIZES, invent_words, sentence, beside=["links"])


if __name__ == "__main__":
    run(main)
