"""Run a recipe from raw text to a table of scores, skipping what is done.

    sbnmt recipe toy --work work/toy
    sbnmt recipe toy --work work/toy --rows paper sweep
    sbnmt recipe multi30k --work work/multi30k --data FOLDER [--small]
    sbnmt recipe multi30k --work work/multi30k --data FOLDER --prepare
    sbnmt recipe toy --print > examples/toy/run.sh
    sbnmt recipe --list

    sbnmt recipe bitext --source en --target de --data RAW --work work/en-de
    sbnmt recipe bitext --source en --target de --print

The recipe bitext is for your own text.  RAW holds train.en and train.de, a sentence a
line, plain or as .gz, and if you have them valid and test.  The size of the models
suits the number of lines.  One of them becomes WORK/model, a folder for sbnmt
translate.  It needs --data each time; README.md in examples/bitext says more.

A recipe is a folder with recipe.yaml and prepare.py.  A row of the table is a system.
It is trained with all that it needs: texts, BPE, teachers, pseudo targets, triples.
Then it is decoded and scored, each in a sub-folder of --work.  The command may be
interrupted and repeated, and rows be added later.  WORK/table.json has the scores,
WORK/logs the costs.

With --prepare the command makes texts and gold data, and stops before the first
training.  Without it, and without --data, the same command goes on from them, on
another machine too.  With --print nothing is run: the steps are printed as a shell
script.

With --executor slurm every step that runs a model is a job.  --jobs rows are in the
queue side by side, and --processes workers of pseudo targets are an array.  Steps that
handle texts alone run where the command does.  An interrupt cancels the jobs.  SIGKILL,
or the end of the machine, leaves them, and the same command follows them again.
"""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import Any

from sbnmt_plugin.in_use import hold
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.bitext import check_code, count_lines, unlike
from sbnmt_plugin.tools.recipes import bitext
from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.duration import forecaster
from sbnmt_plugin.tools.recipes.model_steps import ModelSteps
from sbnmt_plugin.tools.recipes.parsed import check_options
from sbnmt_plugin.tools.recipes.recipe_file import (
    about,
    find_recipe,
    load_recipe,
    own_recipes,
    sizes_of,
)
from sbnmt_plugin.tools.recipes.row_steps import RowSteps, check_row
from sbnmt_plugin.tools.recipes.rows import Row, asked_rows, can_be_model
from sbnmt_plugin.tools.recipes.runner import Runner
from sbnmt_plugin.tools.recipes.settings import device
from sbnmt_plugin.tools.recipes.shell_script import DATA, WORK, render
from sbnmt_plugin.tools.recipes.slurm import add_options, chosen
from sbnmt_plugin.tools.recipes.step import in_order
from sbnmt_plugin.tools.recipes.systems import GROUPS, trained_systems
from sbnmt_plugin.tools.recipes.work_folder import check_recipe, decoded_rows
from sbnmt_plugin.tools.results.run_model import made_model
from sbnmt_plugin.tools.results.table import render as render_table
from sbnmt_plugin.tools.results.work_folder_rows import write_table
from sbnmt_plugin.tools.unfinished import write_json

# with --prepare nothing is trained
FOR_ROWS = ("rows", "model", "jobs", "processes", "executor", "cluster")
ONLY_RUN = ("work", "data", "prepare", *FOR_ROWS[2:])


def parser() -> argparse.ArgumentParser:
    made = command.parser(__doc__, parents=[bitext.options()])
    add = made.add_argument
    add("recipe", nargs="?", help="its name, or its folder")
    add("--list", action="store_true", help="list recipes and rows; run nothing")
    add("--work", help="folder to write to")
    add("--data", help="folder of raw files, where the recipe asks")
    add("--small", action="store_true", help="its small setting")
    add(
        "--rows",
        nargs="+",
        metavar="ROW",
        help="systems or groups of them, see --list (default: the recipe's); each also "
        "with a seed as in sb@2 (teachers and pseudo targets stay; rerank@2 reranks "
        "with teachers of seed 2), or rescored as in sb+rescored",
    )
    number = command.AtLeastOne
    add("--jobs", action=number, help="rows side by side, a step on the freest GPU")
    add("--processes", action=number, help="GPUs, or CPU processes, of a training")
    add_options(made)
    add(
        "--prepare",
        action="store_true",
        default=None,
        help="make texts, BPE and binarised gold text alone",
    )
    add(
        "--print",
        action="store_true",
        help="print the steps, one after the other, as a script; run nothing",
    )
    return made


def check(args: argparse.Namespace) -> None:
    """Refuse options that exclude each other or have no effect.

    Raises:
        ValueError: options that exclude each other, or a number below 1.
    """
    for name in (name for name, value in vars(args).items() if value is not None):
        if args.print and name in ONLY_RUN:
            raise ValueError(f"--{name} is for a run: leave it out with --print")
        if args.prepare and name in FOR_ROWS:
            raise ValueError(
                f"--{name} is for rows: leave it out with --prepare, which makes the "
                "data that all of them need"
            )
    if args.print:
        return
    if args.work is None:
        raise ValueError("--work must name the folder to write to (or give --print)")
    if os.pathsep in str(Path(args.work).resolve()):
        raise ValueError(
            f"--work {args.work} must have no {os.pathsep} in its path, where fairseq "
            "takes it for several folders: choose another"
        )


def main() -> None:
    made = parser()
    args, others = made.parse_known_args()
    if args.list:
        print(listed(), end="")
        return
    if args.recipe is None:
        raise ValueError("give a recipe: `sbnmt recipe --list` names them")
    check(args)
    folder = find_recipe(args.recipe)
    bitext.take(args, others)
    if not bitext.is_for_any(folder, args):
        settings = load_recipe(folder, args.small)
    elif args.print:
        settings = bitext.settings(folder, args)
    else:
        settings = settings_for(folder, args)
    where = "--rows" if args.rows else f"{folder / 'recipe.yaml'}: rows"
    rows = asked_rows(args.rows or settings["rows"], where=where)
    if args.model:
        asked = bitext.model_row(args.model)
        rows, args.model = list(dict.fromkeys([*rows, asked])), asked.name
    if args.print:
        print(script(folder, settings, rows, args), end="")
    else:
        run(folder, settings, rows, args)


def listed() -> str:
    """Return the names of recipes, rows and groups, with what they are."""
    recipes = {folder.name: about(folder) for folder in own_recipes()}
    rows = {name: Row(name).title({}) for name in trained_systems()}
    groups = {name: ", ".join(members) for name, members in GROUPS.items()}
    lines = []
    for title, found in ("Recipes", recipes), ("Rows", rows), ("Groups", groups):
        width = max(map(len, found))
        lines += [f"{title}:", *(f"  {k:{width}}  {text}" for k, text in found.items())]
    return "\n".join(lines) + "\n"


def settings_for(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of a run on anybody's text, and say which they are."""
    if args.data is None:
        wanted = load_recipe(folder, False)["data"]
        raise ValueError(f"--data must name a folder with {wanted}, but is not given")
    text = Path(args.data), *bitext.languages(args)
    lines = count_lines(*text)
    check_code(*text)
    import torch  # which takes a moment

    on_cpu = not (torch.cuda.is_available() or args.executor == "slurm")
    settings = bitext.settings(folder, args, lines, on_cpu)
    if settings["bpe"]["kind"] == bitext.SENTENCEPIECE:
        with command.extra("sentencepiece"):
            import sentencepiece  # noqa: F401
    rules = settings["detokenise"]
    told = unlike(*text, rules, args.lowercase) if rules else []
    for line in [*bitext.explanation(args, settings, lines), *told]:
        print(line, flush=True)
    return settings


def steps_of(run: Run) -> RowSteps:
    """Return the steps of a run; on anybody's text they end with a model folder."""
    return ModelSteps(run) if sizes_of(run.folder) else RowSteps(run)


def script(
    folder: Path, settings: dict[str, Any], rows: list[Row], args: argparse.Namespace
) -> str:
    """Return the steps that one process takes in an empty folder, as a shell script."""
    run = Run(settings, WORK, folder, DATA if settings["data"] else None)
    steps = steps_of(run)
    how = ["--small"] * args.small + bitext.given(args)
    options = how + (["--rows", *args.rows] if args.rows else [])
    targets = in_order(steps.printed(rows, how))
    return render(targets, run, rows, options, "-small" * args.small)


def run(
    folder: Path, settings: dict[str, Any], rows: list[Row], args: argparse.Namespace
) -> None:
    """Make the missing steps of the rows, and print the table of all rows there are."""
    work = Path(args.work).resolve()
    data = Path(args.data) if args.data else None
    steps = steps_of(Run(settings, work, folder, data, args.processes or 1))
    with hold(work) as lock:
        check_recipe(work, settings)
        if isinstance(steps, ModelSteps):  # each may become the model
            others = filter(can_be_model, decoded_rows(work))
            rows = list(dict.fromkeys([*rows, *others]))
        wanted = steps.targets(rows)
        targets = [steps.gold()] if args.prepare else wanted
        cluster = chosen(args.executor, args.cluster)
        runner = Runner(work, settings["environment"], cluster, inherited=(lock,))
        for row in [] if args.prepare else [*rows, *decoded_rows(work)]:
            check_row(work, settings, row)
        if isinstance(steps, ModelSteps):
            steps.check_sweeps(rows)
        runner.check(targets)
        pending = in_order(targets, is_done=runner.has)
        check_options(in_order(wanted, is_done=runner.has))
        write_json(work / "recipe.json", settings)
        if args.data and runner.has(steps.text()):
            print(
                f"{work / 'text'} is there, so --data {args.data} is not read; "
                "for other raw files choose another --work",
                flush=True,
            )
        jobs = args.jobs or settings["jobs"]
        trainings = [step for step in pending if step.name.startswith("train/")]
        if isinstance(steps, ModelSteps) and device(settings) and trainings:
            runner.hearing[trainings[0]] = forecaster(trainings, jobs)
        runner.make_all(targets, jobs)
        if args.prepare:
            print(f"{targets[0].makes} is there; without --prepare: the rows")
            return
        how = ["--small"] * args.small + bitext.given(args)
        called = shlex.join(["sbnmt", "recipe", args.recipe, *how])
        table = write_table(work, settings, called)
        print("\n" + render_table(table), end="", flush=True)
        if isinstance(steps, ModelSteps):
            print(made_model(steps, runner, rows, args.model), end="", flush=True)
