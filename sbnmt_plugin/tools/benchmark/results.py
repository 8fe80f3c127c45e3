"""Results of the benchmark: a file that goes on, Markdown tables and a plot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from sbnmt_plugin import quiet
from sbnmt_plugin.tools import origin
from sbnmt_plugin.tools.benchmark.choices import SLOW
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.text import as_written, write_lines
from sbnmt_plugin.tools.unfinished import write_json

Row = dict[str, Any]
Cell = Callable[[Row], str]
HEADLINE = {"batch": 50, "length": 25, "beam": 4}
AXES = {"length": "tokens of a sentence", "beam": "beam"}
FAILED = "failed"  # of a row: why it has no numbers
ORIGIN = "origin"  # key of what results depend on
SECTIONS = ("decoding", "floor", "training")


def is_headline(row: Row) -> bool:
    """Return whether a row is of the first table: batch 50, beam 4, 25 tokens."""
    return all(row.get(name) == value for name, value in HEADLINE.items())


def measured(rows: list[Row]) -> list[Row]:
    """Return the rows that did not fail."""
    return [row for row in rows if FAILED not in row]


def compare_with_floor(result: Row) -> None:
    """Add to the rows of the floor's case its share of their time."""
    floors = {r["dtype"]: r["seconds"] for r in measured(result.get("floor", []))}
    for row in filter(is_headline, measured(result.get("decoding", []))):
        if row["dtype"] in floors and row["system"] not in SLOW:
            row["of the floor"] = floors[row["dtype"]] / median(row["seconds"])


def filled(form: str, *names: str, unit: float = 1) -> Cell:
    """Return a cell that fills a format with numbers of a row, empty where it has none.

    Args:
        unit: by which numbers are divided.
    """

    def cell(row: Row) -> str:
        values: list[Any] = [row.get(name) for name in names]
        if None in values:
            return ""
        return form.format(*(x if unit == 1 else x / unit for x in values))

    return cell


def decoded_batch(row: Row) -> str:
    """Return the number of sentences of a batch, or the name of what limits it."""
    return filled("{}", "batch")(row) if row["max tokens"] is None else "max-tokens"


FIRST = {"system": filled("{}", "system"), "dtype": filled("{}", "dtype")}
COMPARED = {
    "speed, × fairseq": filled(
        "{:.2f}× ({:.2f}–{:.2f})", "ratio", "ratio, least", "ratio, most"
    ),
}
LAST = {
    "GiB": filled("{:.2f}", "memory"),
    "memory, × fairseq": filled("{:.2f}×", "memory ratio"),
}
WHY = {FAILED: filled("{}", FAILED)}
DECODING: dict[str, Cell] = {
    **FIRST,
    "batch": decoded_batch,
    "length": lambda row: filled("{}", "length")(row) or "test set",
    "beam": filled("{}", "beam"),
    "steps": filled("{}", "steps"),
    "operators a step": filled("{:.0f}", "operators"),
    "sentences/s": filled("{:.1f}", "sentences/s"),
    "tokens/s": filled("{:,.0f}", "tokens/s"),
    "ms a sentence, half ≤": filled("{:.1f}", "ms, half"),
    "95 % ≤": filled("{:.1f}", "ms, 95 %"),
    **COMPARED,
    **LAST,
    "of the floor": filled("{:.0%}", "of the floor"),
    "tok. BLEU": filled("{:.2f}", "BLEU"),
    "same texts": filled("{:.1%}", "as in float32"),
    **WHY,
}
TRAINING: dict[str, Cell] = {
    "system": FIRST["system"],
    "processes": filled("{}", "processes"),
    "sentences": filled("{}", "sentences"),
    "labels": filled("{:,}", "labels"),
    "sentences/s": filled("{:.2f}", "sentences/s"),
    "labels/s": filled("{:,.0f}", "tokens/s"),
    **COMPARED,
    **{f"{x}, s": filled("{:.2f}", x) for x in ("forward", "backward", "optimiser")},
    **LAST,
    **WHY,
}
FLOOR: dict[str, Cell] = {
    "dtype": FIRST["dtype"],
    "GFLOP": filled("{:,.0f}", "operations", unit=1e9),
    "GB": filled("{:,.1f}", "bytes", unit=1e9),
    "matrix multiplications, s": filled("{:.2f}", "seconds"),
    "GFLOP/s": filled("{:,.0f}", "operations/s", unit=1e9),
    **WHY,
}


def table(rows: list[Row], columns: dict[str, Cell]) -> list[str]:
    """Return a Markdown table of a line a row; columns that are empty are left out."""
    cells = {name: [cell(row) for row in rows] for name, cell in columns.items()}
    kept = {name: column for name, column in cells.items() if any(column)}
    return aligned(list(kept), [list(line) for line in zip(*kept.values())])


def markdown(result: Row) -> list[str]:
    """Return all tables, and how they were made."""
    lines = [
        f"`{result['command']}`",
        "",
        f"commit {result['commit']}, {result['date']}, {result['machine']}, "
        f"{result['versions']}; {result['spec']}",
    ]
    cases = result.get("decoding", [])
    for title, rows, columns in (
        ("Decoding", [row for row in cases if is_headline(row)], DECODING),
        ("The floor of that", result.get("floor", []), FLOOR),
        ("Decoding, other cases", [r for r in cases if not is_headline(r)], DECODING),
        ("Training", result.get("training", []), TRAINING),
    ):
        if rows:
            lines += ["", f"## {title}", "", *table(rows, columns)]
    return lines


def along(rows: list[Row], axis: str) -> list[Row]:
    """Return the rows that differ from the headline's case along an axis alone."""
    case = {**HEADLINE, "max tokens": None}
    del case[axis]
    return [
        row
        for row in measured(rows)
        if row[axis] is not None and case == {name: row[name] for name in case}
    ]


def name_of(row: Row) -> str:
    """Return system and type of its weights, for a legend."""
    return f"{row['system']}, {row['dtype']}"


def cost_figure(rows: list[Row]) -> Any:
    """Draw seconds of a batch against length and beam; None with one point each."""
    lines = {axis: along(rows, axis) for axis in AXES}
    lines = {a: found for a, found in lines.items() if len({r[a] for r in found}) > 1}
    if not lines:
        return None
    quiet.only_warnings("matplotlib")
    from sbnmt_plugin.tools.report.drawing import colours, finish, legend_above, panels

    with panels(len(lines), 3.0) as (canvas, axes):
        looks = colours(
            list(dict.fromkeys(name_of(row) for x in lines.values() for row in x))
        )
        for panel, (axis, found) in zip(axes, lines.items()):
            for name, (colour, marker) in looks.items():
                own = [row for row in found if name_of(row) == name]
                own.sort(key=lambda row: row[axis])
                panel.plot(
                    [row[axis] for row in own],
                    [min(row["seconds"]) for row in own],
                    marker=marker,
                    color=colour,
                    label=name,
                )
            panel.set_xlabel(AXES[axis])
            panel.set_xticks(sorted({row[axis] for row in found}))
            panel.set_ylabel("seconds a batch")
            panel.set_ylim(bottom=0)
        legend_above(canvas, axes[0])
        caption = (
            "Seconds that a batch of 50 sentences takes, the fastest of the rounds, "
            "against its length (beam 4) and against the beam (25 tokens)."
        )
        return finish(canvas, "benchmark", caption)


class Record:
    """The results so far, in a folder.

    Args:
        folder: to write to.
        result: head of benchmark.json.  Its ``origin`` is everything but the case on
            which results depend.

    Raises:
        ValueError: the folder has results of another origin.
    """

    def __init__(self, folder: Path, result: Row) -> None:
        self.folder = folder
        self.path = folder / "benchmark.json"
        self.result = result
        if self.path.exists():
            self.result = self._earlier(result)

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

    def rows(self, part: str, case: str) -> list[Row]:
        """Return the rows of a case, none if it has not been measured."""
        return [row for row in self.result.get(part, []) if row["case"] == case]

    def has(self, part: str, case: str, retry: bool = False) -> bool:
        """Return whether a case has been measured; with ``retry``, by all systems."""
        rows = self.rows(part, case)
        return bool(rows) and not (retry and len(measured(rows)) < len(rows))

    def failed(self) -> list[str]:
        """Return the cases in which a system has failed."""
        rows = [row for part in SECTIONS for row in self.result.get(part, [])]
        return list(dict.fromkeys(row["case"] for row in rows if FAILED in row))

    def add(self, part: str, case: str, rows: list[Row]) -> None:
        """Replace the rows of a case, and write."""
        cases: dict[str, list[Row]] = {}
        for row in self.result.get(part, []):
            cases.setdefault(row["case"], []).append(row)
        cases[case] = [{"case": case, **row} for row in rows]
        self.result[part] = [row for found in cases.values() for row in found]
        compare_with_floor(self.result)
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
        figure = cost_figure(self.result.get("decoding", []))
        if figure is not None:
            figure.write(f"{self.folder}/benchmark")
