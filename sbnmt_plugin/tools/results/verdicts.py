"""What the examples' scripts have in common that measure a run: check.py, speed.py."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from sbnmt_plugin.tools.corpora.synthetic import parser_of
from sbnmt_plugin.tools.results.table import aligned


def measuring_parser(doc: str | None) -> argparse.ArgumentParser:
    """The folder of a run, and a file for the numbers."""
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
    """The table of what was measured; its numbers are written where it is asked for.

    Args:
        heads, cells: the table.
        numbers: what JSON can hold.
        path: of ``--json``.
    """
    if path:
        path.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    return "\n".join(["", *aligned(list(heads), [list(row) for row in cells]), ""])


def conclusion(verdicts: Sequence[tuple[str, bool]]) -> tuple[str, int]:
    """What is expected and whether it holds, and the status that says so, too."""
    lines = [f"{'ok  ' if holds else 'FAIL'}  {words}" for words, holds in verdicts]
    return "\n".join(lines), int(not all(holds for _, holds in verdicts))
