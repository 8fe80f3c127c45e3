"""Print the results table of a recipe's run in Markdown.

    sbnmt table --recipe multi30k [--small] --work work/multi30k

The table is built from WORK/results, and its costs from WORK/logs, where sbnmt recipe
has run.  It is kept in WORK/table.json.
"""

from __future__ import annotations

from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.recipe_file import find_recipe, load_recipe, sizes_of
from sbnmt_plugin.tools.recipes.work_folder import check_recipe, read_recipe
from sbnmt_plugin.tools.results.table import render
from sbnmt_plugin.tools.results.work_folder_rows import write_table


def main() -> None:
    parser = command.parser(__doc__)
    add = parser.add_argument
    add("--recipe", required=True, help="its name, or its folder")
    add("--small", action="store_true", help="its small setting")
    add("--work", required=True, help="folder that the recipe's steps have filled")
    args = parser.parse_args()
    folder, work = find_recipe(args.recipe), Path(args.work)
    if sizes_of(folder):  # the run has chosen one
        if args.small:
            raise ValueError(
                f"--small is not for {folder.name}, whose run has its size: leave it "
                "out"
            )
        settings = read_recipe(work / "recipe.json", "repeat sbnmt recipe")
    else:
        settings = load_recipe(folder, args.small)
    check_recipe(work, settings)
    called = f"sbnmt table --recipe {args.recipe}" + " --small" * args.small
    print(render(write_table(work, settings, called)), end="")
