"""Results pages of examples: every JSON file of results in a folder, as Markdown.

    python tests/results_page.py examples/multi30k        writes its RESULTS.md

Each kind of file has one function that renders it.  A page holds what the files hold,
and nothing else, so it can be written again at any time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from sbnmt_plugin.tools.benchmark import results as benchmark
from sbnmt_plugin.tools.results.sweep import render_sweep, system_and_seed
from sbnmt_plugin.tools.results.table import NONE, aligned, number, render
from sbnmt_plugin.tools.text import as_written, write_lines

Held = dict[str, Any]  # value of a JSON file
PAGE = "RESULTS.md"
ORIGIN = "commit", "date", "machine", "versions"
SEEDED = "row"  # key of a name that may end with @SEED


def origin_lines(held: Held) -> list[str]:
    """Return what a file says of its origin, signature and command first."""
    signature = [f"`{held['signature']}`", ""] if "signature" in held else []
    command = [f"`{held['command']}`"] if "command" in held else []
    known = [f"{held[key]}" for key in ORIGIN if held.get(key)]
    if known and "commit" in held:
        known[0] = f"commit {known[0]}"
    found = ", ".join([*command, *known])
    return ["", *signature, found] if found else []


def recipe_table(held: Held) -> list[str]:
    """Render the table of a recipe's run; of 0.2.0 it also has seeds together."""
    rows = [
        {"seeds together": row["title"], "seeds": ", ".join(map(str, row["seeds"]))}
        | {key: float(row[key]) for key in ("mean", "deviation")}
        | {f"p: {rival}": p for rival, p in row["p"].items()}
        for row in held.get("seeds") or []
    ]
    return [*render(held).splitlines(), *(["", *plain_table(rows)] if rows else [])]


def sweep_table(held: Held) -> list[str]:
    """Render a sweep over beams or length penalties."""
    lines = render_sweep(held).splitlines() + speeds_by_beam(held["runs"])
    return lines + origin_lines(held)


def speeds_by_beam(runs: list[Held]) -> list[str]:
    """Render what larger beams cost, where a sweep has several beams."""
    speed = "sentences/s"
    rows = [{SEEDED: x["system"], "beam": x["beam"], speed: x.get(speed)} for x in runs]
    several = len({row["beam"] for row in rows}) > 1
    return ["", *plain_table(seeds_together(rows))] if several else []


def rows_table(held: Held) -> list[str]:
    """Render a file of rows of any columns, as tests of reliability write."""
    return [*plain_table(seeds_together(held["rows"])), *origin_lines(held)]


# key by which a file of this kind is known first -> function that renders it;
# a page shows the kinds in this order
KINDS: dict[str, Callable[[Held], list[str]]] = {
    "signatures": recipe_table,
    benchmark.CASES: benchmark.markdown,
    "rows": rows_table,
    "runs": sweep_table,
}


def seeds_together(rows: list[Held]) -> list[Held]:
    """Join rows that differ in the @SEED of their names and in measured numbers alone.

    Measured numbers are floats; of several rows they become ``mean ± deviation``.
    """
    groups: dict[str, list[Held]] = {}
    for row in rows:
        if SEEDED in row:
            row = {**row, SEEDED: system_and_seed(row[SEEDED])[0]}
        shared = [item for item in row.items() if not isinstance(item[1], float)]
        groups.setdefault(f"{shared}", []).append(row)

    def together(values: list[Any]) -> Any:
        if len(values) == 1 or not isinstance(values[0], float):
            return values[0]
        return f"{mean(values):.1f} ± {stdev(values):.1f}"

    return [
        {key: together([row[key] for row in found]) for key in found[0]}
        for found in groups.values()
    ]


def plain_column(values: list[Any]) -> list[str]:
    """Write values of any type; of a list its length, of floats equally many digits."""
    rounded = [round(value, 3) for value in values if isinstance(value, float)]
    digits = max((len(f"{x}".partition(".")[2]) for x in rounded), default=0)

    def cell(value: Any) -> str:
        if isinstance(value, float):
            return number(value, digits)
        if isinstance(value, list):
            return f"{len(value)}"
        if value is None:
            return NONE
        return f"{value:,}" if type(value) is int else f"{value}"

    return [cell(value) for value in values]


def plain_table(rows: list[Held]) -> list[str]:
    """Render rows with the columns that any of them has."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [plain_column([row.get(column) for row in rows]) for column in columns]
    return aligned(columns, [list(line) for line in zip(*cells)])


def section(path: Path) -> tuple[int, list[str]]:
    """Render a JSON file of results: heading, title, plots, tables.

    Returns:
        The place of its kind on a page, and its lines.

    Raises:
        ValueError: the file holds no results of ours.
    """
    with as_written(path, f"remove it, or write it anew, before {PAGE} is written"):
        held: Held = json.loads(path.read_text(encoding="utf-8"))
        title = held.pop("title", None)
        kind = next((key for key in KINDS if key in held), None)
        if kind is None:
            raise ValueError(
                f"{path} must hold results, but has none of the keys "
                f"{', '.join(KINDS)}: give a folder of results alone, to which those "
                "of a run are copied"
            )
        tables = KINDS[kind](held)
    head = [f"## {path.stem}", *([] if title is None else ["", title])]
    if (plot := path.with_suffix(".svg")).exists():
        head += ["", f"![{title or path.stem}]({plot.name})"]
    return [*KINDS].index(kind), [*head, "", *tables]


def page(folder: Path) -> list[str]:
    """Return the lines of a folder's results page, a section a JSON file.

    Tables of runs come first, then comparisons, then sweeps.

    Raises:
        FileNotFoundError: the folder has no JSON file.
        ValueError: one of them holds no results of ours.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        raise FileNotFoundError(
            f"{folder} must be a folder with results, but has no JSON file: "
            "give another, or copy WORK/table.json into it"
        )
    lines = [f"# Results: {folder.resolve().name}"]
    for _, rendered in sorted(map(section, files), key=itemgetter(0)):
        lines += ["", *rendered]
    return lines


def write_page(folder: Path) -> None:
    """Write a folder's results page."""
    write_lines(folder / PAGE, page(folder))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write_page(Path(name))
