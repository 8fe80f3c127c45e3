"""Translations by the number of their sentence, as commands have written them."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from sbnmt_plugin.lines import each_entry, each_line
from sbnmt_plugin.tools.text import refuse_reserved

logger = logging.getLogger(__name__)
ENTRY = re.compile(r"([0-9]+)\t[^\t]*\t([^\t]*)")
ENTRIES = (
    "id<TAB>score<TAB>text as sbnmt pseudo writes it",
    "translate the source again",
)
HYPOTHESIS = re.compile(r"H-([0-9]+)\t[^\t]*\t(.*)")


def each_translation(
    path: str | os.PathLike[str], count: int
) -> Iterator[tuple[int, str]]:
    """Yield number and text of translations by ``sbnmt pseudo`` or ``sbnmt rerank``.

    Args:
        count: sentences of the source.

    Raises:
        ValueError: an id that is no number, out of range, or not in order.
    """
    least = 0
    entries = each_entry(path, ENTRY, *ENTRIES)
    for number, entry in enumerate(entries, start=1):
        index = int(entry[1])
        if not least <= index < count:
            raise ValueError(
                f"{path}, line {number}, must have an id after the last one and "
                f"below {count}, but has {index}: it belongs to another source, "
                "translate again"
            )
        least = index + 1
        yield index, entry[2]


def texts_to_learn(path: str | os.PathLike[str], count: int) -> Iterator[str]:
    """Yield the translation of every sentence, "" where there is none to learn from.

    An empty one is none: it would teach to write nothing.

    Args:
        path, count: as for :func:`each_translation`.

    Raises:
        ValueError: as there, or a text has a reserved symbol.
    """
    before = empty = 0
    for line, (index, text) in enumerate(each_translation(path, count), start=1):
        refuse_reserved(path, [text], line)
        yield from [""] * (index - before)
        yield text.strip() and text
        empty += not text.strip()
        before = index + 1
    yield from [""] * (count - before)
    if empty:
        logger.warning("%s has %d empty lines, not translated", path, empty)


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
            "again, without --quiet"
        )
    return found
