#!/usr/bin/env python3
"""Write a synthetic language pair in which each direction knows half of the answer.

    prepare.py --output TEXT [--seed 1]

A source sentence is a marker and some distinct words; its translation keeps their
order.  A target word is the stem of its source word and one of three endings.  Endings
agree with a neighbour: ending = (neighbour's ending + class of the word) mod 3, where
the class is a hidden property of the word.  The marker says which neighbour counts:

    left      the one before: easy when writing from the left, a running sum over
              the whole rest of the sentence when writing from the right
    right     the one after: the other way round
    both      the one before in the first half, the one after in the second: neither
              direction can write all of it alone, but each meets in the middle what
              the other has written
"""

from __future__ import annotations

import random

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.synthetic import invented_stems, write_corpus

ENDINGS = ("o", "in", "u")
MARKERS = {"left": "li", "right": "ri", "both": "bo"}
WORDS = 30
LENGTHS = range(6, 12)
SIZES = {"train": 6000, "valid": 200, "test": 300}


def invent_words(generator: random.Random) -> list[tuple[str, str, int]]:
    """(source word, target stem, class) of every word of the language."""
    stems = invented_stems(generator)
    return [
        (stems[2 * i] + "a", stems[2 * i + 1], i % len(ENDINGS)) for i in range(WORDS)
    ]


def endings(classes: list[int], kind: str) -> list[int]:
    """Ending of every word, from its class and its neighbour's ending."""
    count = len(classes)
    middle = {"left": count, "right": 0, "both": count // 2}[kind]
    chosen = [0] * count
    previous = 0
    for i in range(middle):
        previous = chosen[i] = (previous + classes[i]) % len(ENDINGS)
    following = 0
    for i in reversed(range(middle, count)):
        following = chosen[i] = (following + classes[i]) % len(ENDINGS)
    return chosen


def sentence(
    generator: random.Random, words: list[tuple[str, str, int]]
) -> tuple[str, str]:
    """A source sentence and its translation."""
    kind = generator.choice(sorted(MARKERS))
    chosen = generator.sample(words, generator.choice(LENGTHS))
    forms = endings([word[2] for word in chosen], kind)
    source = " ".join([kind, *(word[0] for word in chosen)])
    target = " ".join(
        [MARKERS[kind], *(word[1] + ENDINGS[form] for word, form in zip(chosen, forms))]
    )
    return source, target


def main() -> None:
    write_corpus(__doc__, SIZES, invent_words, sentence)


if __name__ == "__main__":
    run(main)
