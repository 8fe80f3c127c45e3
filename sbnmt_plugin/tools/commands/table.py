"""Print a results table, as sbnmt recipe writes it, in Markdown.

sbnmt table work/multi30k/table.json
sbnmt table examples/multi30k/results-small.json
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.table import (
    beside_the_paper,
    render,
)


def column(path: Path) -> str:
    """Heading of a table: its recipe, and the setting if there are several."""
    setting = path.stem.removeprefix("results").replace("-", " --", 1)
    return f"{path.resolve().parent.name}{setting}"


def load(name: str) -> dict[str, Any]:
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return table


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("tables", nargs="+", metavar="TABLE", help="JSON file")
    parser.add_argument("--paper", action="store_true", help="beside the paper's")
    args = parser.parse_args()
    if args.paper:
        tables = {column(Path(name)): load(name) for name in args.tables}
        print(beside_the_paper(tables), end="")
        return
    for name in args.tables:
        print(render(load(name)), end="")
