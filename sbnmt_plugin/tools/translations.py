"""Translations by the number of their sentence, as commands have written them."""

from __future__ import annotations

import logging
import os
import re
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

from sbnmt_plugin.tools.text import (
    Lines,
    as_written,
    each_line,
    read_lines,
    refuse_reserved,
)

logger = logging.getLogger(__name__)
TRANSLATED = re.compile(
    r"Translated ([\d,]+) sentences \(([\d,]+) tokens\) in ([\d.]+)s "
    r"\(([\d.]+) sentences/s, ([\d.]+) tokens/s\)"
)


def each_translation(
    path: str | os.PathLike[str], count: int
) -> Iterator[tuple[int, str]]:
    """Yield number and text of translations by ``sbnmt translate`` or ``sbnmt rerank``.

    Args:
        count: sentences of the source.

    Raises:
        ValueError: an id that is out of range, doubled or not a number.
    """
    seen = bytearray(count)
    for number, line in enumerate(each_line(path), start=1):
        parts = line.split("\t")
        if len(parts) != 3 or not parts[0].isdigit():
            raise ValueError(
                f"{path}, line {number}, must be id<TAB>score<TAB>text as "
                f"sbnmt translate writes it, but is {line[:60]!r}"
            )
        index = int(parts[0])
        if index >= count or seen[index]:
            problem = f"is ≥ {count} lines" if index >= count else "appears twice"
            raise ValueError(
                f"{path}, line {number}: id {index} {problem}: it belongs to another "
                "source, translate again"
            )
        seen[index] = True
        yield index, parts[2]


def read_translations(path: str | os.PathLike[str], count: int) -> dict[int, str]:
    """Return all texts of a file by their numbers: see :func:`each_translation`."""
    return dict(each_translation(path, count))


class Translations:
    """Translations of a file to train on, read when they are asked for.

    An empty one is none: it would teach to write nothing.

    Memory holds the place of each: 16 bytes a sentence.

    Args:
        path, count: as for :func:`each_translation`.

    Raises:
        ValueError: as there, or a text has a reserved symbol.
    """

    def __init__(self, path: str | os.PathLike[str], count: int) -> None:
        self.places, empty = array("q", [-1]) * count, 0
        for place, (index, text) in enumerate(each_translation(path, count)):
            refuse_reserved(path, [text], place + 1)
            if text.strip():
                self.places[index] = place
            else:
                empty += 1
        if empty:
            logger.warning("%s has %d empty lines, not translated", path, empty)
        self.lines = Lines(path)

    def __contains__(self, index: int) -> bool:
        return self.places[index] >= 0

    def __getitem__(self, index: int) -> str:
        text: str = self.lines[self.places[index]].split("\t")[2]
        return text


def read_generated(path: str | os.PathLike[str]) -> dict[int, str]:
    """Return the best hypothesis of each sentence in fairseq-generate's output.

    Args:
        path: generate-SUBSET.txt, or the folder (--results-path) that holds one.

    Raises:
        FileNotFoundError: there is none, or more than one.
        ValueError: it has no hypotheses.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(path.glob("generate-*.txt"))
        if len(files) != 1:
            raise FileNotFoundError(
                f"{path} must hold one generate-*.txt, but holds {len(files)}: give "
                "fairseq-generate's --results-path, or the file itself"
            )
        path = files[0]
    found: dict[int, str] = {}
    with as_written(path, "decode again"):
        for line in read_lines(path):
            if line.startswith("H-"):
                name, _, text = line.split("\t", 2)
                found.setdefault(int(name[2:]), text)  # the best of a list is first
    if not found:
        raise ValueError(
            f"{path} must have fairseq-generate's lines H-…, but has none: decode "
            "without --quiet"
        )
    return found


def read_generate_log(lines: Iterable[str]) -> dict[str, float] | None:
    """Return the numbers of the last "Translated N sentences" of a log, or None.

    Returns:
        sentences, tokens, seconds, sentences/s and tokens/s.
    """
    names = ("sentences", "tokens", "seconds", "sentences/s", "tokens/s")
    result = None
    for line in lines:
        if found := TRANSLATED.search(line):
            values = (float(text.replace(",", "")) for text in found.groups())
            result = dict(zip(names, values))
    return result
