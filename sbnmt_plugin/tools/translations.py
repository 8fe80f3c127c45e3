"""Translations by the number of their sentence, as commands have written them."""

from __future__ import annotations

import os
from pathlib import Path

from sbnmt_plugin.steps import command_of
from sbnmt_plugin.tools.text import as_written, read_lines


def read_translations(path: str | os.PathLike[str], count: int) -> dict[int, str]:
    """What ``sbnmt translate`` or ``sbnmt rerank`` has written.

    Args:
        count: sentences of the source.

    Raises:
        ValueError: an id that is out of range, doubled or not a number.
    """
    found: dict[int, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        parts = line.split("\t")
        if len(parts) != 3 or not parts[0].isdigit():
            raise ValueError(
                f"{path}, line {number}, must be id<TAB>score<TAB>text as "
                f"{command_of('translate')} writes it, but is {line[:60]!r}"
            )
        index = int(parts[0])
        if index >= count or index in found:
            problem = "appears twice" if index in found else f"is ≥ {count} lines"
            raise ValueError(
                f"{path}, line {number}: id {index} {problem}: it belongs to another "
                "source, translate again"
            )
        found[index] = parts[2]
    return found


def read_generated(path: str | os.PathLike[str]) -> dict[int, str]:
    """The best hypothesis of each sentence, of fairseq-generate's output.

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
