"""Is a row of a recipe's run better than others?  By how much, and is it chance?

    sbnmt compare --work work/multi30k sb+rescored sb-lambda0+rescored transformer-pl

    sbnmt compare --work work/multi30k sb sb-lambda0 --sets test2017,test2018

    sbnmt compare --sweep beam-sweep.json sb/2 sb-lambda0+rescored/8

The first row is compared with each of the others, by the seeds that both have.  Printed
are the mean score of either, the difference, and that of each seed; by the paired
bootstrap also where 95 % of 1,000 samples of sentences have the difference, and p.  A
sentence is drawn with its answers of all those seeds: interval and p say what other
sentences would do, the seeds what another training would.  p is sacreBLEU's, which of a
clear difference is one-sided: it may be below 0.05 where the interval holds 0.

With --work the rows are those of a recipe's run, with --sweep NAME/BEAM of what sbnmt
sweep-beam has decoded, of the validation set, too (--gen-subset valid).  --rival-work
takes the others from another run, of the same test set.  Where a test set consists of
several, --sets takes the sentences of some, all together; without it the scores are the
means over them, as in the run's table, interval and p of all sentences together.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.results.comparison import Difference, difference
from sbnmt_plugin.tools.results.hypotheses import Runs, SweepRuns, WorkRuns
from sbnmt_plugin.tools.results.table import HEADINGS, aligned


def signed(value: float) -> str:
    """As pages write it; a difference that rounds to nothing has no sign."""
    text = f"{abs(value):.2f}"
    return text if not float(text) else f"{'+' if value > 0 else '−'} {text}"


def line(found: Difference) -> list[str]:
    each = [ours - theirs for ours, theirs in zip(found.scores, found.rivals)]
    low, high = found.interval
    return [
        found.rival,
        ", ".join(map(str, found.seeds)),
        f"{mean(found.scores):.2f}",
        f"{mean(found.rivals):.2f}",
        signed(mean(each)),
        ", ".join(map(signed, each)),
        f"{signed(low)} to {signed(high)}",
        f"{found.p:.3f}",
    ]


def runs_of(args: argparse.Namespace) -> tuple[Runs, Runs]:
    """Where the first row is, and where the others are."""
    if args.sweep is not None:
        sweep = SweepRuns(Path(args.sweep))
        return sweep, sweep
    sets = [] if args.sets is None else args.sets.split(",")
    work = WorkRuns.of_folder(Path(args.work), sets)
    return work, work if args.rival_work is None else work.rival(Path(args.rival_work))


def main() -> None:
    parser = command.parser(__doc__)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--work", help="folder of a recipe's run")
    group.add_argument("--sweep", help="file that sbnmt sweep-beam has written")
    parser.add_argument(
        "--rival-work", help="with --work: the others are rows of this run instead"
    )
    parser.add_argument("row", metavar="ROW", help="a row's name, without a seed")
    parser.add_argument(
        "rivals", metavar="RIVAL", nargs="+", help="the rows that it is compared with"
    )
    parser.add_argument(
        "--sets", help="with --work: of its test sets, only these, as test2017,test2018"
    )
    args = parser.parse_args()
    if args.sets is not None and args.work is None:
        raise ValueError("--sets goes with --work, not with --sweep: leave it out")
    if args.rival_work is not None and args.work is None:
        raise ValueError(
            "--rival-work goes with --work, not with --sweep: leave it out"
        )
    runs, others = runs_of(args)
    lines = [line(difference(runs, args.row, others, name)) for name in args.rivals]
    of_tokens = args.sweep is not None and runs.key == "BLEU"
    score = "tokenised BLEU" if of_tokens else runs.key
    head = [f"{args.row} against", "seeds", HEADINGS.get(score, score), "the other's"]
    head += ["difference", "of each seed", "95 %", "p"]
    print("\n".join(aligned(head, lines)))


if __name__ == "__main__":
    main()
