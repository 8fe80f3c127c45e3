"""Print a results table in Markdown: of a recipe's run, of a file, or of a folder.

    sbnmt table --recipe multi30k [--small] --work work/multi30k
    sbnmt table work/multi30k/table.json
    sbnmt table work/multi30k/beam-sweep.json
    sbnmt table --page examples/multi30k

With --recipe the table is built from WORK/results, and its costs from WORK/logs, where
sbnmt recipe has run.  It is kept in WORK/table.json.  A file of sweep-beam has a line a
system and a column a beam; several seeds are a mean and a standard deviation.

--page writes FOLDER/RESULTS.md from all JSON files of results in that folder.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.recipe_file import find_recipe, load_recipe, sizes_of
from sbnmt_plugin.tools.recipes.work_folder import check_recipe, read_recipe
from sbnmt_plugin.tools.results.sweep import render_sweep
from sbnmt_plugin.tools.results.table import render
from sbnmt_plugin.tools.results.work_folder_rows import write_table
from sbnmt_plugin.tools.results_page import write_page
from sbnmt_plugin.tools.text import as_written


def read_table(name: str) -> str:
    """Render a table that was written before.

    Raises:
        FileNotFoundError, ValueError: it is not there, or is something else.
    """
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    remedy = "give a table of sbnmt recipe, or of sbnmt sweep-beam"
    with as_written(path, remedy):
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return render_sweep(table) if "runs" in table else render(table)


def of_run(args: argparse.Namespace) -> None:
    """Print the table of a run.

    Raises:
        ValueError: flags exclude each other; the folder is another recipe's.
    """
    if not (args.recipe and args.work):
        raise ValueError("--recipe and --work go together, and --small with them")
    if args.tables:
        raise ValueError("--recipe builds a table: give no TABLE")
    folder, work = find_recipe(args.recipe), Path(args.work)
    if sizes_of(folder):  # the run has chosen one
        settings = read_recipe(work / "recipe.json", "repeat sbnmt recipe")
    else:
        settings = load_recipe(folder, args.small)
    check_recipe(work, settings)
    called = f"sbnmt table --recipe {args.recipe}" + " --small" * args.small
    print(render(write_table(work, settings, called)), end="")


def main() -> None:
    parser = command.parser(__doc__)
    add = parser.add_argument
    add("tables", nargs="*", metavar="TABLE", help="JSON file")
    add("--recipe", help="its name, or its folder")
    add("--small", action="store_true", help="its small setting")
    add("--work", help="folder that the recipe's steps have filled")
    add("--page", metavar="FOLDER", help="write FOLDER/RESULTS.md; no other option")
    args = parser.parse_args()
    if args.page:
        if args.tables or args.recipe or args.work or args.small:
            raise ValueError(
                "--page takes all JSON files of its folder: leave TABLE and all other "
                "options out"
            )
        print(write_page(Path(args.page)))
    elif args.recipe or args.work or args.small:
        of_run(args)
    elif not args.tables:
        raise ValueError("give a TABLE, or --recipe and --work, or --page")
    else:
        print("".join(map(read_table, args.tables)), end="")
