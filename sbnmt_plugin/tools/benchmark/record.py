"""benchmark.json: read when a run continues, written after every case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools import origin
from sbnmt_plugin.tools.benchmark.results import (
    FAILED,
    compare_with_floor,
    cost_figure,
    markdown,
    measured,
)
from sbnmt_plugin.tools.text import as_written, write_lines
from sbnmt_plugin.tools.unfinished import write_json

Row = dict[str, Any]
ORIGIN = "origin"
SECTIONS = ("decoding", "floor", "training")


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
