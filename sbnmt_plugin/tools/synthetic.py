"""Made-up language pairs: the common parts of the toys' scripts."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from sbnmt_plugin.tools.command import parser as parser_of
from sbnmt_plugin.tools.text import write_lines

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
LANGUAGES = ("src", "tgt")
__all__ = ["LANGUAGES", "invented_stems", "parser_of", "write_corpus"]  # of scripts
Language = TypeVar("Language")


def invented_stems(generator: random.Random) -> list[str]:
    """Return all syllables, in a random order: each begins a word of one meaning."""
    stems = [c + v + d for c in CONSONANTS for v in VOWELS for d in CONSONANTS]
    generator.shuffle(stems)
    return stems


def write_corpus(
    doc: str | None,
    sizes: dict[str, int],
    invent: Callable[[random.Random], Language],
    sentence: Callable[[random.Random, Language], Sequence[str]],
    beside: Sequence[str] = (),
    pairs: Callable[[Sequence[str]], list[Sequence[str]]] = lambda row: [row],
) -> None:
    """Do the work of a toy's prepare.py: write training, validation and test set.

    No two lines have the same source, but for those of ``pairs``.

    Args:
        doc: the script's text for --help.
        sizes: lines, by split.
        invent: makes a language, by --seed.
        sentence: makes a sentence's texts: source, target, and those beside them.
        beside: endings of the files beside the test set's texts.
        pairs: gives a sentence's training lines, where it is translated several times.
    """
    parser = parser_of(doc)
    parser.add_argument("--output", required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    generator = random.Random(args.seed)
    language = invent(generator)
    seen: set[str] = set()
    for split, size in sizes.items():
        rows: list[Sequence[str]] = []
        while len(rows) < size:
            row = sentence(generator, language)
            if row[0] not in seen:
                seen.add(row[0])
                rows += pairs(row) if split == "train" else [row]
        extra = beside if split == "test" else ()
        names = (*LANGUAGES, *extra)
        for name in (*extra, *LANGUAGES):  # the target last: with it a split is whole
            path, place = Path(args.output, f"{split}.{name}"), names.index(name)
            write_lines(path, (row[place] for row in rows))
