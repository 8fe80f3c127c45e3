"""Print a results table in Markdown: from a recipe's run, or from a file.

    sbnmt table --recipe multi30k [--small] --work work/multi30k
    sbnmt table work/multi30k/table.json
    sbnmt table examples/multi30k/results-small.json [MORE.json] --plot cost
    sbnmt table early=seeds-small.json late=converged-small.json --plot cost
    sbnmt table work/multi30k/beam-sweep.json
    sbnmt table examples/multi30k/curves-small.json --curves NAME

With --recipe the table is built from WORK/results, and its costs from WORK/logs, where
sbnmt recipe has run.  It is kept in WORK/table.json.  A file of sweep-beam has a line a
system and a column a beam; several seeds are a mean and a standard deviation.

--plot NAME draws NAME.svg and NAME.png: the score of each system, the mean of its
seeds, against the minutes of its whole chain, with teachers and pseudo targets.  They
are minutes of processors where all logs tell them and there is no GPU.  --against
tokens counts the labels seen in training instead, which other work on the machine does
not change.  LABEL=TABLE puts the label behind the systems' names, so that tables may
have systems in common.

--curves NAME, with --recipe and --work, draws NAME.svg and NAME.png from the run's
logs, and writes the numbers to NAME.json.  It shows, over updates and with a line a
seed, validation BLEU and the bits that rows read of the other direction, which
trainings with --sb-probe log.  Given such a NAME.json as TABLE, it draws that again.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.recipe_file import (
    add_setting,
    find_recipe,
    load_recipe,
    setting,
)
from sbnmt_plugin.tools.recipes.work_folder import check_recipe
from sbnmt_plugin.tools.results.cost_plot import PRICES, chains
from sbnmt_plugin.tools.results.sweep import render_sweep
from sbnmt_plugin.tools.results.table import beside_the_paper, render
from sbnmt_plugin.tools.results.work_folder_rows import write_table
from sbnmt_plugin.tools.text import as_written, refuse_overwriting
from sbnmt_plugin.tools.unfinished import new_file

Tables = list[tuple[str, dict[str, Any]]]  # each with its file's name


def column(path: Path) -> str:
    """Name a table's column by its recipe, and its setting if there are several."""
    setting = path.stem.removeprefix("results").replace("-", " --", 1)
    return f"{path.resolve().parent.name}{setting}"


def labelled(word: str) -> tuple[str, str]:
    """Split ``LABEL=FILE``; the label is "" where the word is a file's name alone."""
    label, _, name = word.partition("=")
    given = label.strip() and name and "/" not in label and not Path(word).is_file()
    return (label.strip().replace("$", r"\$"), name) if given else ("", word)


def load(name: str) -> dict[str, Any]:
    """Read a table that was written before.

    Raises:
        FileNotFoundError, ValueError: it is not there, or is something else.
    """
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    remedy = (
        "give a table of sbnmt recipe, or of sbnmt sweep-beam; numbers that --curves "
        "has written are drawn with --curves NAME"
    )
    with as_written(path, remedy):
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        shown(table)  # whether it has all that is shown
    return table


def shown(table: dict[str, Any]) -> str:
    """Render the table of a run's rows, or of a sweep over beams."""
    return render_sweep(table) if "runs" in table else render(table)


def refuse_sweeps(flag: str, tables: Tables) -> None:
    """Refuse sweeps, which have neither costs nor the paper's systems.

    Raises:
        ValueError: a table has no rows of a recipe.
    """
    for name, table in tables:
        if "runs" in table:
            raise ValueError(
                f"{flag} needs tables of a recipe's rows, but {name} is a sweep over "
                "beams: leave it out"
            )


def plot(args: argparse.Namespace, tables: Tables) -> None:
    """Draw scores against costs: see :func:`chains`."""
    from sbnmt_plugin.tools.report.cost import cost

    cost(chains(tables, args.against, args.only)).write(args.plot)


def of_run(args: argparse.Namespace) -> None:
    """Print the table of a run; draw costs and curves, where they are asked for.

    Raises:
        ValueError: flags exclude each other; the folder is another recipe's; no row was
            trained there with --eval-bleu or --sb-probe, or a file of the run would be
            overwritten.
    """
    if not (args.recipe and args.work):
        raise ValueError(
            "--recipe and --work go together, and --small and --teachers with them"
        )
    if args.tables or args.paper:
        raise ValueError("--recipe builds a table: give no TABLE and no --paper")
    settings = load_recipe(find_recipe(args.recipe), args.small, args.teachers)
    work = Path(args.work)
    check_recipe(work, settings)
    called = " ".join(["sbnmt table", "--recipe", args.recipe, *setting(args)])
    table = write_table(work, settings, called)
    print(render(table), end="")
    if args.plot:
        plot(args, [("", table)])
    if not args.curves:
        return
    from sbnmt_plugin.tools.report.learning import curves_of, learning

    name = f"{args.curves}.json"
    refuse_overwriting(name, f"{work}/table.json", f"{work}/recipe.json")
    curves = curves_of(work, settings, table["rows"])
    if not curves:
        raise ValueError(
            f"--curves needs logs of trainings with --eval-bleu or --sb-probe, but "
            f"{work / 'logs'} has none"
        )
    learning(curves).write(args.curves)
    with new_file(name) as file:
        json.dump(curves, file, ensure_ascii=False)
        file.write("\n")


def draw_curves_again(args: argparse.Namespace) -> None:
    """Draw curves from numbers that have been written before.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not one file, not of such numbers, or flags that want tables.
    """
    from sbnmt_plugin.tools.report.learning import learning_again

    if args.plot or args.paper:
        raise ValueError(
            "--plot and --paper want tables of rows, --curves wants a run's logs, or "
            "its numbers: give one of these flags, or --recipe and --work"
        )
    if len(args.tables) != 1:
        raise ValueError(
            "--curves draws a run's logs, or the numbers of one run: give --recipe and "
            "--work, or one NAME.json that --curves NAME has written"
        )
    learning_again(Path(args.tables[0])).write(args.curves)


def of_files(args: argparse.Namespace) -> None:
    """Print tables that were written before, or plot them.

    Raises:
        FileNotFoundError, ValueError: files, or flags that exclude each other.
    """
    if not args.tables:
        raise ValueError("give a TABLE, or --recipe and --work")
    if args.plot and args.paper:
        raise ValueError("--plot draws what rows cost: give no --paper")
    labels, names = zip(*map(labelled, args.tables))
    if any(labels) and not args.plot:
        raise ValueError("LABEL=TABLE is for --plot: leave the label out, or add it")
    loaded = [(name, load(name)) for name in names]
    if args.paper:
        refuse_sweeps("--paper", loaded)
        columns = {column(Path(name)): table for name, table in loaded}
        if len(columns) < len(loaded):
            raise ValueError(
                "--paper has a column for each table, named by its folder and file, "
                f"but {', '.join(map(repr, columns))} are not {len(loaded)} names: "
                "copy one to another name"
            )
        print(beside_the_paper(columns), end="")
        return
    if args.plot:
        refuse_sweeps("--plot", loaded)
    for _, table in loaded:
        print(shown(table), end="")
    if args.plot:
        plot(args, [(label, table) for label, (_, table) in zip(labels, loaded)])


def main() -> None:
    parser = command.parser(__doc__)
    add = parser.add_argument
    add("tables", nargs="*", metavar="TABLE", help="JSON file, for --plot LABEL=FILE")
    add(
        "--paper", action="store_true", help="show the paper's scores beside the tables"
    )
    add("--plot", metavar="NAME", help="draw scores against costs")
    add(
        "--against",
        choices=PRICES,
        help="cost of --plot: time, or labels seen (default: minutes)",
    )
    add(
        "--only",
        nargs="+",
        metavar="ROW",
        help="rows that --plot draws, all their seeds (default: all)",
    )
    add(
        "--curves",
        metavar="NAME",
        help="draw how rows learned; with --work, or a file of --curves as TABLE",
    )
    add("--recipe", help="its name, or its folder")
    add_setting(parser)
    add("--work", help="folder that the recipe's steps have filled")
    args = parser.parse_args()
    for flag, value in ("--against", args.against), ("--only", args.only):
        if value and not args.plot:
            raise ValueError(f"{flag} is for --plot: leave it out, or add --plot NAME")
    if args.plot and args.curves and Path(args.plot) == Path(args.curves):
        raise ValueError(f"--plot and --curves must differ, but both are {args.plot}")
    if args.recipe or args.work or setting(args):
        of_run(args)
    elif args.curves:
        draw_curves_again(args)
    else:
        of_files(args)
