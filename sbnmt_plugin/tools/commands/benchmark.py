r"""Time SB-NMT beside stock fairseq's Transformer, in turn and on the same batches.

    sbnmt benchmark --output work/benchmark                  50 sentences, and single
    sbnmt benchmark --output work/full --grid full           and other lengths and beams
    sbnmt benchmark --output work/gpu --device cuda          the same on a GPU
    sbnmt benchmark --output work/trained --work work/toy    a recipe's models

A case is a batch of made-up sentences of one length, with one beam.  Without --work the
models have random weights, and every hypothesis is made to have as many tokens as the
source, so that all searches run the same number of steps.  With --work the recipe's
test set is translated as recipes do, and with nobody's options, and BLEU stands beside
the speed.  Every system is a process of its own.  Within a case they take turns, and
ratios to fairseq are taken round by round.  A first run of each is not counted.  A
system that fails has its reason in the table.  A CPU without instructions for bfloat16
has no rows of it.

OUTPUT receives benchmark.json after every case.  Interrupted, the same command goes on
with the cases that are missing.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from sbnmt_plugin.in_use import hold
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.benchmark.cases import GRIDS, LOW, SIZES, SLOW, grid


def parser() -> argparse.ArgumentParser:
    made = command.parser(__doc__, allow_abbrev=False)
    add = made.add_argument
    number = command.AtLeastOne
    add("--output", required=True, help="folder for the results")
    add("--grid", choices=GRIDS, default="headline", help="which cases")
    add("--size", choices=SIZES, default="base", help="of the models; default base")
    add("--vocabulary", action=number, default=32000, help="words; default 32,000")
    add("--device", choices=sorted(LOW), default="cpu")
    add("--work", help="recipe's folder, whose models and test set are used")
    slow = " and ".join(SLOW)
    add("--systems", help=f"names, joined by commas; default: all but {slow}")
    add("--rounds", action=number, default=3, help="timed runs of a case; default 3")
    help_ = "of a process; default: all cores"
    add("--threads", action=number, default=len(os.sched_getaffinity(0)), help=help_)
    return made


def main() -> None:
    args = parser().parse_args()
    with command.extra("benchmark"):
        from sbnmt_plugin.tools.benchmark import measuring
        from sbnmt_plugin.tools.benchmark.results import NAME, begun, markdown
    wanted, systems = grid(args.grid, args.work is not None), measuring.systems(args)
    head, output = measuring.head(args, systems), Path(args.output)
    with hold(output, "--output"):  # two at once would slow each other, too
        result = begun(output / NAME, head)
        measuring.measure(args, wanted, systems, result)
    print("\n".join(markdown(result)))
