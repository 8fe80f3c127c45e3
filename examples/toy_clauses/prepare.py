#!/usr/bin/env python3
"""Write a synthetic language pair in which each direction has several open choices.

    prepare.py --output TEXT [--seed 1]

As examples/toy, in clauses: a source sentence is a marker and two, four or six clauses
of four or five distinct words, divided by commas; its translation keeps their order.  A
target word is the stem of its source word and one of three endings, which agree within
a clause: ending = (neighbour's ending + class of the word) mod 3, where the class is a
hidden property of the word.  The marker says which neighbour counts:

    left      the one before, in all clauses: easy when writing from the left, a running
              sum over the rest of the clause when writing from the right
    right     the one after: the other way round
    both      the one before in the first half of the clauses, the one after in the
              others: one, two or three clauses stay open to each direction, which may
              choose one of three beginnings for each, until the directions meet
"""

from __future__ import annotations

import random

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.synthetic import invented_stems, write_corpus

ENDINGS = ("o", "in", "u")
MARKERS = {"left": "li", "right": "ri", "both": "bo"}
WORDS = 30
CLAUSES = (2, 4, 6)
LENGTHS = (4, 5)
COMMA = ","
SIZES = {"train": 6000, "valid": 200, "test": 600}
Word = tuple[str, str, int]  # of the source, stem of the target, class


def invent_words(generator: random.Random) -> list[Word]:
    """Every word of the language."""
    stems = invented_stems(generator)
    return [
        (stems[2 * i] + "a", stems[2 * i + 1], i % len(ENDINGS)) for i in range(WORDS)
    ]


def clause(words: list[Word], forwards: bool) -> list[str]:
    """Its translation, whose endings add up forwards or backwards."""
    found, ending = [], 0
    for _, stem, number in words if forwards else reversed(words):
        ending = (ending + number) % len(ENDINGS)
        found.append(stem + ENDINGS[ending])
    return found if forwards else found[::-1]


def sentence(generator: random.Random, words: list[Word]) -> tuple[str, str]:
    """A source sentence and its translation."""
    kind = generator.choice(sorted(MARKERS))
    count = generator.choice(CLAUSES)
    forwards = {"left": count, "right": 0, "both": count // 2}[kind]
    rest = generator.sample(words, WORDS)
    source, target = [kind], [MARKERS[kind]]
    for place in range(count):
        size = generator.choice(LENGTHS)
        chosen, rest = rest[:size], rest[size:]
        comma = [COMMA] * (place < count - 1)
        source += [*(word[0] for word in chosen), *comma]
        target += [*clause(chosen, place < forwards), *comma]
    return " ".join(source), " ".join(target)


def main() -> None:
    write_corpus(__doc__, SIZES, invent_words, sentence)


if __name__ == "__main__":
    run(main)
