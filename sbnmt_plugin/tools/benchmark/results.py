"""Results of the benchmark: a file that goes on, and Markdown tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools import origin
from sbnmt_plugin.tools.benchmark.cases import Case
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import write_json

Row = dict[str, Any]
Cell = Callable[[Row], str]
HEADLINE = Case().row
FAILED = "failed"  # of a row: why it has no numbers
ORIGIN = "origin"  # key of what results depend on
CASES = "decoding"  # key of the rows; version 0.2.0 had other sections, too


def is_headline(row: Row) -> bool:
    """Return whether a row has batch 50, beam 4 and 25 tokens."""
    return all(row.get(name) == value for name, value in HEADLINE.items())


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
    "processes": filled("{}", "processes"),
    "batch": lambda row: (
        "max-tokens" if row.get("max tokens") else f"{row.get('batch', '')}"
    ),
    "length": lambda row: f"{row['length'] or 'test set'}",
    "beam": filled("{}", "beam"),
    "steps": filled("{}", "steps"),
    "operators a step": filled("{:.0f}", "operators"),
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


def table(rows: list[Row]) -> list[str]:
    """Return a Markdown table of a line a row; columns that are empty are left out."""
    cells = {name: [cell(row) for row in rows] for name, cell in COLUMNS.items()}
    kept = {name: column for name, column in cells.items() if any(column)}
    return aligned(list(kept), [list(line) for line in zip(*kept.values())])


def markdown(result: Row, level: str = "##") -> list[str]:
    """Return all tables, with headings of this level, and how they were made."""
    lines = [
        f"`{result['command']}`",
        "",
        f"commit {result['commit']}, {result['date']}, {result['machine']}, "
        f"{result['versions']}; {result['spec']}",
    ]
    cases = result.get(CASES, [])
    for title, rows in (
        ("Decoding", [row for row in cases if is_headline(row)]),
        ("Decoding, other cases", [row for row in cases if not is_headline(row)]),
    ):
        if rows:
            lines += ["", f"{level} {title}", "", *table(rows)]
    return lines


class Record:
    """The results so far, in a folder.

    Args:
        folder: to write to.
        result: head of benchmark.json.  Its ``origin`` is everything but the case on
            which results depend.

    Attributes:
        rows: of all cases, one for each system.

    Raises:
        ValueError: the folder has results of another origin.
    """

    def __init__(self, folder: Path, result: Row) -> None:
        self.folder = folder
        self.path = folder / "benchmark.json"
        self.result = result
        if self.path.exists():
            self.result = self._earlier(result)
        self.rows: list[Row] = list(self.result.get(CASES, []))
        self.result[CASES] = self.rows

    def _earlier(self, result: Row) -> Row:
        """Return the results that are there, if this run may continue them."""
        remedy = "choose another --output, or remove that file to measure anew"
        with as_written(self.path, remedy):
            known = json.loads(self.path.read_text(encoding="utf-8"))
            differences = origin.differences(known[ORIGIN], result[ORIGIN])
            commands = known["command"].split("; ")
            markdown(known)
        if differences:
            raise ValueError(
                f"{self.path} was measured with {', '.join(differences)}: {remedy}"
            )
        if result["command"] not in commands:
            known["command"] += f"; {result['command']}"
        return dict(known)

    def has(self, case: str) -> bool:
        """Return whether a case has been measured."""
        return any(row["case"] == case for row in self.rows)

    def add(self, case: str, rows: list[Row]) -> None:
        """Add the rows of a case, and write."""
        self.rows += [{"case": case, **row} for row in rows]
        self.write()

    def write(self) -> None:
        """Write benchmark.json."""
        write_json(self.path, self.result)
