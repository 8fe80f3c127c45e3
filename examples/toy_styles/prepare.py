#!/usr/bin/env python3
"""Write a synthetic language pair that can be said in two styles.

    prepare.py --output TEXT [--seed 1]

A source sentence is six to ten of 300 words.  Every word has two translations of one or
two words, one a style, and a coin, which the source does not show, picks the style of a
whole sentence.  A word of the one hidden class that stands before a word of the other
changes places with it.  The test set has a second reference: the other style.

A style can be read off a target word's last letter, which no model sees: its tokens are
whole words.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.synthetic import invented_stems, write_corpus

STYLES = ("ei", "ou")  # how target words of each end
WORDS = 300
LENGTHS = range(6, 11)  # words of a source sentence
SIZES = {"train": 3000, "valid": 100, "test": 500}


class Word(NamedTuple):
    """What there is to know of a source word."""

    text: str
    phrases: tuple[str, str]  # one a style
    trails: bool  # its hidden class


def invent_words(generator: random.Random) -> list[Word]:
    """The language."""
    stems = invented_stems(generator)
    forms = []
    for endings in STYLES:
        own = [stem + ending for stem in stems for ending in endings]
        generator.shuffle(own)
        forms.append(iter(own))
    words = []
    for stem in stems[:WORDS]:
        one, other = (
            " ".join(next(form) for _ in range(generator.choice((1, 2))))
            for form in forms
        )
        words.append(Word(stem + "a", (one, other), generator.random() < 0.5))
    return words


def reordered(words: list[Word]) -> list[Word]:
    """From the left: a trailing word goes behind its neighbour that leads."""
    found, left = [], list(words)
    while left:
        swap = len(left) > 1 and left[0].trails and not left[1].trails
        size = 1 + swap
        found += left[:size][::-1]
        left = left[size:]
    return found


def sentence(generator: random.Random, language: list[Word]) -> tuple[str, str, str]:
    """A source sentence, its translation, and that in the other style."""
    words = generator.choices(language, k=generator.choice(LENGTHS))
    style = generator.randrange(len(STYLES))
    texts = [
        " ".join(word.phrases[each] for word in reordered(words))
        for each in (style, 1 - style)
    ]
    return " ".join(word.text for word in words), texts[0], texts[1]


def main() -> None:
    write_corpus(__doc__, SIZES, invent_words, sentence, beside=("tgt.2",))


if __name__ == "__main__":
    run(main)
