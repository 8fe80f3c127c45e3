"""Results of the benchmark: a file that goes on, and Markdown tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.results.table import by_columns
from sbnmt_plugin.tools.text import as_written

Row = dict[str, Any]
Cell = Callable[[Row], str]
FAILED = "failed"  # of a row: why it has no numbers
NAME = "benchmark.json"  # the file, in the folder of --output
CASES = "decoding"  # key of its rows


def filled(form: str, *names: str) -> Cell:
    """Return a cell of a format and a row's numbers, empty where the row lacks one."""

    def cell(row: Row) -> str:
        values: list[Any] = [row.get(name) for name in names]
        if None in values:
            return ""
        return form.format(*values)

    return cell


COLUMNS: dict[str, Cell] = {
    "system": filled("{}", "system"),
    "dtype": filled("{}", "dtype"),
    "batch": filled("{}", "batch"),
    "length": lambda row: f"{row['length'] or 'test set'}",
    "beam": filled("{}", "beam"),
    "sentences/s": filled("{:.1f}", "sentences/s"),
    "tokens/s": filled("{:,.0f}", "tokens/s"),
    "ms a sentence, half ≤": filled("{:.1f}", "ms, half"),
    "95 % ≤": filled("{:.1f}", "ms, 95 %"),
    "speed, × fairseq": filled(
        "{:.2f}× ({:.2f}–{:.2f})", "ratio", "ratio, least", "ratio, most"
    ),
    "GiB": filled("{:.2f}", "memory"),
    "memory, × fairseq": filled("{:.2f}×", "memory ratio"),
    "tok. BLEU": filled("{:.2f}", "BLEU"),
    "same texts": filled("{:.1%}", "as in float32"),
    FAILED: filled("{}", FAILED),
}


def markdown(result: Row) -> list[str]:
    """Return a table of all rows, and how they were measured."""
    rows = by_columns(COLUMNS, result[CASES]) if result[CASES] else []
    return [
        f"`{result['command']}`",
        "",
        f"commit {result['commit']}, {result['date']}, {result['machine']}, "
        f"{result['versions']}; {result['spec']}",
        "",
        *rows,
    ]


def begun(path: Path, head: Row) -> Row:
    """Return the results so far, which a repeated command continues.

    Args:
        path: of benchmark.json.
        head: of it, see :func:`measuring.head`.

    Raises:
        ValueError: the file has results of another origin, or is damaged.
    """
    if not path.exists():
        return {**head, CASES: []}
    remedy = "choose another --output, or remove that file to measure anew"
    with as_written(path, remedy):
        known: Row = json.loads(path.read_text(encoding="utf-8"))
        others = [key for key in head if key != "date" and known.get(key) != head[key]]
        markdown(known)
    if others:
        wanted, found = head[others[0]], known.get(others[0])
        raise ValueError(
            f"{path} must have the {others[0]} {wanted}, but has {found}: {remedy}"
        )
    return known
