#!/usr/bin/env python3
"""Write a synthetic language pair that is as easy one way as the other.

    prepare.py --output TEXT [--seed 1]

A source sentence is one to four pairs of an adjective and a noun; its translation has
every pair the other way round, and the adjective ends as the hidden class of its noun
wants.  So each text says all of the other, word for word, and either way something is
to be found out: the ending, which the source does not show, or the stem without it.
"""

from __future__ import annotations

import random

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.synthetic import invented_stems, write_corpus

ENDINGS = ("o", "in", "u")
NOUNS, ADJECTIVES = 24, 16
PAIRS = range(1, 5)
SIZES = {"train": 6000, "valid": 200, "test": 300}
Noun = tuple[str, str, int]
Adjective = tuple[str, str]


def invent_words(generator: random.Random) -> tuple[list[Noun], list[Adjective]]:
    """(source noun, target noun, class) and (source adjective, target stem)."""
    stems = iter(invented_stems(generator))
    nouns = [
        (next(stems) + "a", next(stems) + "i", i % len(ENDINGS)) for i in range(NOUNS)
    ]
    return nouns, [(next(stems) + "e", next(stems)) for _ in range(ADJECTIVES)]


def sentence(
    generator: random.Random, words: tuple[list[Noun], list[Adjective]]
) -> tuple[str, str]:
    """A source sentence and its translation."""
    nouns, adjectives = words
    source, target = [], []
    for _ in range(generator.choice(PAIRS)):
        noun, other, kind = generator.choice(nouns)
        adjective, stem = generator.choice(adjectives)
        source += [adjective, noun]
        target += [other, stem + ENDINGS[kind]]
    return " ".join(source), " ".join(target)


def main() -> None:
    write_corpus(__doc__, SIZES, invent_words, sentence)


if __name__ == "__main__":
    run(main)
