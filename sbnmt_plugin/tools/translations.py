"""Translations by the number of their sentence, as commands have written them."""

from __future__ import annotations

import logging
import os
import re
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path

from sbnmt_plugin.lines import each_entry, each_line
from sbnmt_plugin.tools.text import Lines, refuse_reserved

logger = logging.getLogger(__name__)
ENTRY = re.compile(r"([0-9]+)\t[^\t]*\t([^\t]*)")
ENTRIES = (
    "id<TAB>score<TAB>text as sbnmt pseudo writes it",
    "translate the source again",
)
HYPOTHESIS = re.compile(r"H-([0-9]+)\t[^\t]*\t(.*)")
TRANSLATED = re.compile(
    r"Translated ([\d,]+) sentences \(([\d,]+) tokens\) in ([\d.]+)s "
    r"\(([\d.]+) sentences/s, ([\d.]+) tokens/s\)"
)


def each_translation(
    path: str | os.PathLike[str], count: int
) -> Iterator[tuple[int, str]]:
    """Yield number and text of translations by ``sbnmt pseudo`` or ``sbnmt rerank``.

    Args:
        count: sentences of the source.

    Raises:
        ValueError: an id that is out of range, doubled or not a number.
    """
    seen = bytearray(count)
    entries = each_entry(path, ENTRY, *ENTRIES)
    for number, entry in enumerate(entries, start=1):
        index = int(entry[1])
        if index >= count or seen[index]:
            problem = f"is ≥ {count} lines" if index >= count else "appears twice"
            raise ValueError(
                f"{path}, line {number}: id {index} {problem}: it belongs to another "
                "source, translate again"
            )
        seen[index] = True
        yield index, entry[2]


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
        ValueError: it has no hypotheses, a damaged one, or those of two runs.
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
    last = None  # the sentence whose list goes on
    for number, line in enumerate(each_line(path), start=1):
        if line.startswith("S-"):
            last = None
        if not line.startswith("H-"):
            continue
        hypothesis = HYPOTHESIS.fullmatch(line)
        if not hypothesis:
            raise ValueError(
                f"{path}, line {number}, must be H-id<TAB>score<TAB>text as "
                f"fairseq-generate writes it, but is {line[:80]!r}: decode again"
            )
        index = int(hypothesis[1])
        if index != last:
            if index in found:
                raise ValueError(
                    f"{path}, line {number}, must not begin with sentence {index} "
                    "anew, which an earlier line has: give the output of one run, "
                    "not of several"
                )
            last, found[index] = index, hypothesis[2]  # the best of a list is first
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
