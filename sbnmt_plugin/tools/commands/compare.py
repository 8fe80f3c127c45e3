"""Compare rows of a recipe's run by the paired bootstrap.

    sbnmt compare --work work/multi30k sb+rescored sb-lambda0+rescored transformer-pl

The first row is compared with each of the others, by the seeds that both have.  The
table has the mean score of either row, their difference, and the difference of each
seed.  The paired bootstrap adds the interval that holds 95 % of the differences of
1,000 samples of sentences, and p.  It draws a sentence together with its hypotheses of
all those seeds.  So the interval and p speak of other sentences, the seeds of another
training.  p is sacreBLEU's, which is one-sided for a clear difference: it may be below
0.05 although the interval holds 0.

Where the run's test set consists of several, the scores are means over the sets, as in
the run's table; the interval and p are of all sentences together.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.work_folder import read_recipe
from sbnmt_plugin.tools.results.bootstrap import bootstrap
from sbnmt_plugin.tools.results.comparison import Runs
from sbnmt_plugin.tools.results.table import HEADINGS, aligned


def signed(value: float) -> str:
    """Write a difference with its sign; one that rounds to nothing has none."""
    text = f"{abs(value):.2f}"
    return text if not float(text) else f"{'+' if value > 0 else '−'} {text}"


def line(runs: Runs, name: str, rival: str) -> list[str]:
    """Compare a row with a rival, both named without a seed; return a table's cells.

    Raises:
        ValueError: they have no seed in common, or a name is unknown.
        FileNotFoundError: a row has no hypotheses.
    """
    of_row, of_rival = runs.seeds(name), runs.seeds(rival)
    seeds = sorted(of_row.keys() & of_rival.keys())
    if not seeds:
        raise ValueError(
            f"{name} and {rival} must share a seed, but have {sorted(of_row)} and "
            f"{sorted(of_rival)}: run either with another seed"
        )
    pairs = [(of_row[seed], of_rival[seed]) for seed in seeds]
    texts, theirs = (list(map(runs.answers, rows)) for rows in zip(*pairs))
    found = bootstrap(texts, theirs, runs.given, runs.metric)
    scores = [(runs.score(row), runs.score(other)) for row, other in pairs]
    each = [ours - theirs for ours, theirs in scores]
    return [
        rival,
        ", ".join(map(str, seeds)),
        *(f"{mean(found):.2f}" for found in zip(*scores)),
        signed(mean(each)),
        ", ".join(map(signed, each)),
        f"{signed(found.low)} to {signed(found.high)}",
        f"{found.p:.3f}",
    ]


def main() -> None:
    parser = command.parser(__doc__)
    add = parser.add_argument
    add("--work", type=Path, required=True, help="folder of a recipe's run")
    add("row", metavar="ROW", help="a row's name, without a seed")
    add("rivals", metavar="RIVAL", nargs="+", help="the rows that it is compared with")
    args = parser.parse_args()
    remedy = "run sbnmt recipe once more"
    runs = Runs(args.work, read_recipe(args.work / "recipe.json", remedy))
    lines = [line(runs, args.row, name) for name in args.rivals]
    score = HEADINGS.get(runs.key, runs.key)
    head = [f"{args.row} against", "seeds", score, "the other's", "difference"]
    head += ["of each seed", "95 %", "p"]
    print("\n".join(aligned(head, lines)))
