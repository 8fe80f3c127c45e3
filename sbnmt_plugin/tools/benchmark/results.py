"""Results of the benchmark: a file that goes on, Markdown tables and a plot."""

from __future__ import annotations

import json
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

from sbnmt_plugin import quiet
from sbnmt_plugin.tools import origin
from sbnmt_plugin.tools.benchmark.cases import Case
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.text import as_written, write_lines
from sbnmt_plugin.tools.unfinished import write_json

Row = dict[str, Any]
Cell = Callable[[Row], str]
HEADLINE = Case().row
AXES = {"length": "tokens of a sentence", "beam": "beam"}
FAILED = "failed"  # of a row: why it has no numbers
ORIGIN = "origin"  # key of what results depend on
CASES = "decoding"  # key of the rows; version 0.2.0 had other sections, too


def is_headline(row: Row, axis: str | None = None) -> bool:
    """Return whether a row has batch 50, beam 4 and 25 tokens, its ``axis`` aside."""
    sizes = (name for name in HEADLINE if name != axis)
    return all(row.get(name) == HEADLINE[name] for name in sizes)


def measured(rows: list[Row]) -> list[Row]:
    """Return the rows that did not fail."""
    return [row for row in rows if FAILED not in row]


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


def name_of(row: Row) -> str:
    """Return system and type of its weights, for a legend."""
    return f"{row['system']}, {row['dtype']}"


def cost_figure(rows: list[Row]) -> Any:
    """Draw seconds of a batch against length and beam; None with one point each."""
    lines = {}
    for axis in AXES:
        found = [row for row in measured(rows) if row[axis] and is_headline(row, axis)]
        if len({row[axis] for row in found}) > 1:
            lines[axis] = found
    if not lines:
        return None
    quiet.only_warnings("matplotlib")
    from sbnmt_plugin.tools.report import drawing

    names = dict.fromkeys(name_of(row) for found in lines.values() for row in found)
    with drawing.panels(len(lines), 3.0) as (canvas, axes):
        for panel, (axis, found) in zip(axes, lines.items()):
            points: dict[str, Any] = {name: ([], []) for name in names}
            for row in sorted(found, key=itemgetter(axis)):
                x, y = points[name_of(row)]
                x.append(row[axis])
                y.append(min(row["seconds"]))
            drawing.draw_lines(panel, points)
            panel.set_xlabel(AXES[axis])
            panel.set_xticks(sorted({row[axis] for row in found}))
            panel.set_ylabel("seconds a batch")
            panel.set_ylim(bottom=0)
        drawing.legend_above(canvas, axes[0])
        caption = (
            "Seconds that a batch of 50 sentences takes, the fastest of the rounds, "
            "against its length (beam 4) and against the beam (25 tokens)."
        )
        return drawing.finish(canvas, "benchmark", caption)


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

    def has(self, case: str, retry: bool = False) -> bool:
        """Return whether a case has been measured; with ``retry``, by all systems."""
        found = [row for row in self.rows if row["case"] == case]
        return bool(found) and not (retry and len(measured(found)) < len(found))

    def failed(self) -> list[str]:
        """Return the cases in which a system has failed."""
        return list(dict.fromkeys(row["case"] for row in self.rows if FAILED in row))

    def add(self, case: str, rows: list[Row]) -> None:
        """Replace the rows of a case, and write."""
        cases: dict[str, list[Row]] = {}
        for row in self.rows:
            cases.setdefault(row["case"], []).append(row)
        cases[case] = [{"case": case, **row} for row in rows]
        self.rows[:] = [row for found in cases.values() for row in found]
        self.write()

    def write(self) -> list[str]:
        """Write benchmark.json and its tables.

        Returns:
            Lines of benchmark.md.
        """
        write_json(self.path, self.result)
        lines = markdown(self.result)
        write_lines(self.folder / "benchmark.md", lines)
        return lines

    def draw(self) -> None:
        """Write the plots, where they have more than one point."""
        figure = cost_figure(self.rows)
        if figure is not None:
            figure.write(f"{self.folder}/benchmark")
