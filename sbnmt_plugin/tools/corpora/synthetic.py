"""Language pairs that a script makes up: what the toys' scripts have in common."""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from sbnmt_plugin.tools.text import write_lines

CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
LANGUAGES = ("src", "tgt")
Language = TypeVar("Language")


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    """A parser that shows a script's docstring as it is written."""
    return argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def invented_stems(generator: random.Random) -> list[str]:
    """All syllables, in a random order: each begins a word of one meaning."""
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
    """What a toy's prepare.py does: training, validation and test set, in a folder.

    No two of a split, or of two splits, have the same source, but for ``pairs``.

    Args:
        doc: the script's, for --help.
        sizes: lines, by split.
        invent: a language, by --seed.
        sentence: its texts: source, target, and what stands beside them.
        beside: endings of what stands beside the test set's texts.
        pairs: a sentence's training lines, where it is translated several times.
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
