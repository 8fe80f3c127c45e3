"""Parser, table and verdict of the examples' scripts that measure a run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from sbnmt_plugin.tools.corpora.synthetic import parser_of
from sbnmt_plugin.tools.results.table import aligned


def measuring_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser of the folder of a run, and of a file for the numbers."""
    parser = parser_of(doc)
    parser.add_argument("--work", required=True, help="folder of the run", type=Path)
    parser.add_argument("--json", help="file to write the numbers to", type=Path)
    return parser


def table_text(
    heads: Sequence[str],
    cells: Sequence[Sequence[str]],
    numbers: object,
    path: Path | None,
) -> str:
    """Return a table; write its numbers where that is asked for.

    Args:
        heads, cells: the table.
        numbers: anything that JSON can hold.
        path: value of ``--json``.
    """
    if path:
        path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    return "\n".join(["", *aligned(list(heads), [list(row) for row in cells]), ""])


def conclusion(verdicts: Sequence[tuple[str, bool]]) -> tuple[str, int]:
    """Return what is expected and whether it holds, and an exit status of the same."""
    lines = [f"{'ok  ' if holds else 'FAIL'}  {words}" for words, holds in verdicts]
    return "\n".join(lines), int(not all(holds for _, holds in verdicts))
