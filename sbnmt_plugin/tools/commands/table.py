"""Print the results table of a recipe's run in Markdown, or write a results page.

    sbnmt table --recipe multi30k [--small] --work work/multi30k
    sbnmt table --page examples/multi30k

With --recipe the table is built from WORK/results, and its costs from WORK/logs, where
sbnmt recipe has run.  It is kept in WORK/table.json.

--page writes FOLDER/RESULTS.md from all JSON files of results in that folder.
"""

from __future__ import annotations

from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.recipe_file import find_recipe, load_recipe, sizes_of
from sbnmt_plugin.tools.recipes.work_folder import check_recipe, read_recipe
from sbnmt_plugin.tools.results.table import render
from sbnmt_plugin.tools.results.work_folder_rows import write_table
from sbnmt_plugin.tools.results_page import write_page


def main() -> None:
    parser = command.parser(__doc__)
    add = parser.add_argument
    add("--recipe", help="its name, or its folder")
    add("--small", action="store_true", help="its small setting")
    add("--work", help="folder that the recipe's steps have filled")
    add("--page", metavar="FOLDER", help="write FOLDER/RESULTS.md; no other option")
    args = parser.parse_args()
    if args.page and (args.recipe or args.work or args.small):
        raise ValueError(
            "--page takes all JSON files of its folder: leave all other options out"
        )
    if args.page:
        print(write_page(Path(args.page)))
        return
    if not (args.recipe and args.work):
        raise ValueError("give --recipe and --work, or --page")
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
