r"""Decode a test set with several beam sizes (Figure 8), skipping what is done.

    sbnmt sweep-beam --work work/toy --rows teacher-l2r sb+rescored --beams 1,2,4,8

    # choose each row's length penalty on the validation set, then test with it
    sbnmt sweep-beam --work work/toy --rows sb transformer-pl --gen-subset valid \
        --beams 4 --lenpens 0.6,1,1.5,2 --output valid.json
    sbnmt sweep-beam --work work/toy --rows sb transformer-pl --chosen-by valid.json \
        --output test.json

The rows are searched and scored as the recipe does it, but for beam and length penalty.
A beam counts the hypotheses of both directions, so that of SB-NMT is even.  BLEU is the
paper's, on tokens, or that of raw text.  --chosen-by decodes each row only with the
beam and length penalty that were best in that sweep, seeds together.  Each finished run
is kept in OUTPUT.runs, so a repeated command goes on where it was interrupted.  sbnmt
report --beam-sweep draws the result.
"""

from __future__ import annotations

import argparse
import contextlib
import math
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.rows import Row, asked_rows
from sbnmt_plugin.tools.recipes.systems.system import BOTH
from sbnmt_plugin.tools.results.sweep import (
    Setting,
    Sweep,
    render_sweep,
    system_and_seed,
)
from sbnmt_plugin.tools.results.sweep_runs import Searches, decoded
from sbnmt_plugin.tools.text import refuse_overwriting

BEAMS = "1,2,4,8,16"


def numbers(flag: str, text: str, kind: type, least: int) -> list[Any]:
    """Read numbers with commas between them.

    Raises:
        ValueError: something else, or a number below ``least``.
    """
    with contextlib.suppress(ValueError):
        found = sorted({kind(word) for word in text.split(",")})
        if all(least <= number < math.inf for number in found):
            return found
    raise ValueError(
        f"{flag} must be numbers ≥ {least}, with commas between them, but is {text!r}"
    )


def every_setting(rows: list[Row], beams: str, lenpens: str | None) -> Searches:
    """Return each row with each beam that its directions divide.

    Raises:
        ValueError: a value of ``--beams`` or ``--lenpens``, or a row has no beam.
    """
    counts, penalties = numbers("--beams", beams, int, 1), [None]
    if lenpens is not None:
        penalties = numbers("--lenpens", lenpens, float, 0)
    found = []
    for row in rows:
        directions = 2 if row.system.direction == BOTH else 1
        own = [beam for beam in counts if beam % directions == 0]
        if not own:
            raise ValueError(
                f"--beams must have an even number for {row.name}, which has two "
                f"directions, but has {beams}: add 2"
            )
        found += [(row, Setting(beam, lenpen)) for beam in own for lenpen in penalties]
    return found


def best_settings(rows: list[Row], chosen_by: str) -> Searches:
    """Return each row as it was best in a sweep, its seeds together.

    Raises:
        FileNotFoundError, ValueError: there is no such sweep, or it was interrupted, or
            lacks a row.
    """
    sweep = Sweep.of_file(Path(chosen_by))
    try:
        if sweep.missing:
            raise ValueError(f"{sweep.missing} runs are missing: repeat that sweep")
        return [(row, sweep.best(system_and_seed(row.name)[0])) for row in rows]
    except ValueError as error:
        raise ValueError(f"--chosen-by {chosen_by}: {error}") from error


def parser() -> argparse.ArgumentParser:
    made = command.parser(__doc__)
    add = made.add_argument
    add("--work", required=True, help="folder of sbnmt recipe")
    add("--rows", required=True, nargs="+", metavar="ROW", help="that are decoded")
    add("--beams", help=f"default {BEAMS}")
    add("--lenpens", help="length penalties, as 0.6,1,1.5: every beam with each")
    add(
        "--chosen-by",
        metavar="FILE",
        help="a sweep whose best settings replace these two",
    )
    add("--gen-subset", default="test", metavar="SET", help="default test")
    add(
        "--output",
        help="JSON file to write, of the rows named here alone (default: in WORK "
        "beam-sweep.json, lenpen-sweep.json with --lenpens, chosen-sweep.json; of "
        "another set than test beam-sweep-SET.json …)",
    )
    return made


def main() -> None:
    args = parser().parse_args()
    work, rows = Path(args.work).resolve(), asked_rows(args.rows)
    if args.chosen_by is None:
        kind = "beam" if args.lenpens is None else "lenpen"
        searches = every_setting(rows, args.beams or BEAMS, args.lenpens)
    elif args.beams is None and args.lenpens is None:
        kind, searches = "chosen", best_settings(rows, args.chosen_by)
    else:
        raise ValueError(
            "--chosen-by gives each row its beam and length penalty: leave out "
            "--beams and --lenpens"
        )
    of_set = "" if args.gen_subset == "test" else f"-{args.gen_subset}"
    output = args.output or str(work / f"{kind}-sweep{of_set}.json")
    refuse_overwriting(output, args.chosen_by)
    if Path(output).exists():
        try:
            Sweep.of_file(Path(output))
        except (OSError, ValueError) as error:
            raise ValueError(
                f"--output {output} must be a new file or a sweep, but is another: "
                "remove it, or choose another name"
            ) from error
    sweep = decoded(work, searches, args.gen_subset, Path(output))
    print(render_sweep(sweep), end="")
