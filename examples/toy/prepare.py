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

import argparse
import random
from pathlib import Path

from sbnmt_plugin.tools.command import run
from sbnmt_plugin.tools.text import write_lines

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
ENDINGS = ("o", "in", "u")
MARKERS = {"left": "li", "right": "ri", "both": "bo"}
WORDS = 30
LENGTHS = range(6, 12)
SIZES = {"train": 6000, "valid": 200, "test": 300}


def invent_words(generator: random.Random) -> list[tuple[str, str, int]]:
    """(source word, target stem, class) of every word of the language."""
    stems = [c + v + d for c in CONSONANTS for v in VOWELS for d in CONSONANTS]
    generator.shuffle(stems)
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    generator = random.Random(args.seed)
    words = invent_words(generator)
    seen: set[str] = set()
    for split, size in SIZES.items():
        pairs = []
        while len(pairs) < size:
            pair = sentence(generator, words)
            if pair[0] not in seen:
                seen.add(pair[0])
                pairs.append(pair)
        for place, language in enumerate(("src", "tgt")):
            path = Path(args.output, f"{split}.{language}")
            write_lines(path, (pair[place] for pair in pairs))


if __name__ == "__main__":
    run(main)
