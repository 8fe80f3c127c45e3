"""Results of a campaign: a file beside its folder, and a table."""

from __future__ import annotations

import datetime
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.machine import commit, machine, versions
from sbnmt_plugin.tools.unfinished import new_file

Row = dict[str, Any]
FAULTS = "faults"


class Outcome:
    """Rows, each with the faults found; written after every row.

    Args:
        path: JSON file.
        facts: about the whole campaign.
    """

    def __init__(self, path: Path, **facts: Any) -> None:
        self.path = path
        self.rows: list[Row] = []
        self.facts = {
            "command": f"python -m campaign {shlex.join(sys.argv[1:])}",
            "commit": commit(),
            "date": f"{datetime.date.today()}",
            "machine": machine(),
            "versions": versions(),
            **facts,
        }

    def add(self, row: Row) -> None:
        """Keep a row; its key ``faults`` lists what must not be."""
        self.rows.append(row)
        with new_file(self.path) as file:
            json.dump({**self.facts, "rows": self.rows}, file, indent=1, default=str)
        shown = {key: value for key, value in row.items() if key != FAULTS}
        print(" · ".join(f"{k} {v}" for k, v in shown.items()), file=sys.stderr)
        for fault in row[FAULTS]:
            print(f"  FAULT {fault}", file=sys.stderr)

    def faults(self) -> int:
        """Return the number of all faults."""
        return sum(len(row[FAULTS]) for row in self.rows)

    def table(self) -> list[str]:
        """Return the rows as a Markdown table."""
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        lines = ["| " + " | ".join(columns) + " |", "| --- " * len(columns) + "|"]
        for row in self.rows:
            shown = [row.get(column, "") for column in columns]
            cells = [str(len(x)) if isinstance(x, list) else str(x) for x in shown]
            lines.append("| " + " | ".join(cells) + " |")
        return lines
