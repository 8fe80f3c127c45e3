#!/usr/bin/env python3
"""Write a synthetic language pair that can be said in four styles.

    prepare.py --output TEXT [--seed 1]

A source sentence is four to eight of 200 words, and does not show a style.  Each is
translated five times: twice in the first style, once in each of the others.  A word has
a phrase of one or two words for every style; of half of the words the last three styles
have the same.  So the first style is the most frequent of all sentences, but not of
these words: who chooses word by word mixes styles.  Besides, a word of the one hidden
class that stands before one of the other changes places with it.

Validation and test set have every sentence once; the test set has a reference a style.
The styles can be read off the words' last letters, which no model sees: its tokens are
whole words.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.synthetic import invented_stems, write_corpus

STYLES = ("e", "io", "iu", "iy")  # how their words end; "i" are those in common
TIMES = (2, 1, 1, 1)  # each is there, of every training sentence
WORDS = 200
LENGTHS = range(4, 9)  # words of a source sentence
SIZES = {"train": 4000, "valid": 100, "test": 300}


class Word(NamedTuple):
    """What there is to know of a source word."""

    text: str
    phrases: tuple[str, ...]  # one a style
    trails: bool  # its hidden class


def invent_words(generator: random.Random) -> list[Word]:
    """The language."""
    stems = invented_stems(generator)
    forms = {
        ending: iter([stem + ending for stem in generator.sample(stems, len(stems))])
        for ending in "eiouy"
    }

    def phrase(ending: str) -> str:
        return " ".join(next(forms[ending]) for _ in range(generator.choice((1, 2))))

    words = []
    for number, stem in enumerate(stems[:WORDS]):
        common = phrase("i")
        own = [phrase(style[-1]) for style in STYLES]
        phrases = (own[0], common, common, common) if number % 2 else tuple(own)
        words.append(Word(stem + "a", phrases, generator.random() < 0.5))
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


def sentence(generator: random.Random, language: list[Word]) -> list[str]:
    """A source sentence and its translations, one a style."""
    words = generator.choices(language, k=generator.choice(LENGTHS))
    texts = [
        " ".join(word.phrases[style] for word in reordered(words))
        for style in range(len(STYLES))
    ]
    return [" ".join(word.text for word in words), *texts]


def pairs(row: Sequence[str]) -> list[Sequence[str]]:
    """A sentence's training pairs."""
    source, *texts = row
    return [(source, t) for t, many in zip(texts, TIMES) for _ in range(many)]


def main() -> None:
    further = [f"tgt.{number}" for number in range(2, len(STYLES) + 1)]
    write_corpus(__doc__, SIZES, invent_words, sentence, further, pairs)


if __name__ == "__main__":
    run(main)
