"""Run a recipe from raw text to a table of scores, skipping what is done.

    sbnmt recipe examples/toy --work work/toy
    sbnmt recipe examples/toy --work work/toy --rows paper sweep
    sbnmt recipe examples/multi30k --work work/multi30k --data FOLDER [--small]

A recipe is a folder with recipe.yaml and prepare.py.  A row of the table is a system:
it is trained, with all that it needs (texts, BPE, teachers, pseudo targets, triples),
decoded and scored, each in a sub-folder of --work.  Interrupt and repeat the command
at will, and add rows later; work/table.json has the numbers, logs/ what they cost.
"""

from __future__ import annotations

import json
from pathlib import Path

from sbnmt_plugin.steps import command_of
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.driver import (
    Recipe,
    claim,
    same_recipe,
)
from sbnmt_plugin.tools.recipes.results import build_table
from sbnmt_plugin.tools.recipes.settings import find_recipe, load_recipe
from sbnmt_plugin.tools.recipes.systems import (
    GROUPS,
    SYSTEMS,
    rows,
)
from sbnmt_plugin.tools.recipes.table import render
from sbnmt_plugin.tools.text import new_file


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("recipe", help="its name, or its folder")
    parser.add_argument("--work", required=True, help="folder to write to")
    parser.add_argument("--data", help="folder of raw files, where the recipe asks")
    parser.add_argument("--small", action="store_true", help="the small setting")
    parser.add_argument(
        "--rows",
        nargs="+",
        metavar="ROW",
        help=f"systems ({', '.join(SYSTEMS)}), each also with a seed as in sb@2 "
        "(teachers and pseudo targets stay), or groups "
        f"({', '.join(GROUPS)}); default: the recipe's",
    )
    parser.add_argument("--jobs", type=int, help="rows side by side on one device")
    parser.add_argument(
        "--processes", type=int, default=1, help="GPUs, or CPU processes, of a training"
    )
    parser.add_argument(
        "--launcher",
        help="instead: torchrun with its options; for several machines run the recipe "
        "on one, and on the others the train commands that it prints",
    )
    parser.add_argument("--pseudo", help="folder of another run's pseudo targets")
    args = parser.parse_args()
    for flag, value in ("--jobs", args.jobs), ("--processes", args.processes):
        if value is not None and value < 1:
            raise ValueError(f"{flag} must be ≥ 1, but is {value}")
    jobs = args.jobs
    if args.launcher:
        if args.processes > 1:
            raise ValueError("--processes and --launcher exclude each other")
        if jobs and jobs > 1:
            raise ValueError(
                "--jobs must be 1 with --launcher: one rendezvous at a time"
            )
        jobs = 1
    folder, work = find_recipe(args.recipe), Path(args.work).resolve()
    settings = load_recipe(folder, args.small)
    names = rows(args.rows or settings["rows"])
    work.mkdir(parents=True, exist_ok=True)
    with claim(work) as lock:
        same_recipe(work, settings)
        recipe = Recipe(
            *(folder, work, settings, args.data),
            processes=args.processes,
            launcher=args.launcher,
        )
        recipe.inherited = (lock,)
        if args.pseudo:
            recipe.start_from(Path(args.pseudo))
        recipe.run(names, jobs or settings["jobs"])
    called = f"{command_of('recipe')} {args.recipe}" + " --small" * args.small
    table = build_table(work, settings, called)
    with new_file(work / "table.json") as file:
        json.dump(table, file, indent=1, ensure_ascii=False)
    print("\n" + render(table), end="", flush=True)
