"""Comparison of rows: their differences, and the paired bootstrap."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from sbnmt_plugin.tools.recipes.rows import RESCORED, Row
from sbnmt_plugin.tools.recipes.systems import OPPONENTS
from sbnmt_plugin.tools.results.bootstrap import bootstrap, interval, seeds_together
from sbnmt_plugin.tools.results.hypotheses import Runs, WorkRuns
from sbnmt_plugin.tools.results.table import TableRow, without_seed

# the rows without interaction
TWINS = ("sb-lambda0", "sb-noise-lambda0")
# the rows that several seeds of a row are compared with, together
RIVALS = (
    "transformer-pl",
    "transformer-pr",
    *(name + end for name in TWINS for end in ("", RESCORED)),
)


def compare(work: Path, settings: dict[str, Any], rows: list[TableRow]) -> str | None:
    """Give every row its p against the best Transformer with the same pseudo data.

    Returns:
        The name of that baseline, or None where no such row is there.
    """
    named = {row["name"]: Row.parse(row["name"]) for row in rows}
    baselines = [row for row in rows if named[row["name"]].base in OPPONENTS]
    if not baselines:
        return None
    runs = WorkRuns(work, settings)
    best = (min if runs.key == "WER" else max)(baselines, key=lambda r: r[runs.key])
    forward = {name: row.seed for name, row in named.items() if not row.system.back}
    if len(forward) > 1:
        outputs = {name: runs.answers(name, seed) for name, seed in forward.items()}
        found, _ = bootstrap(outputs, runs.given, best["name"], {runs.key: runs.metric})
        for row in rows:
            if row is not best and row["name"] in found:
                row["p"] = found[row["name"]][runs.key].p
    return str(best["name"])


def of_several_seeds(
    work: Path, settings: dict[str, Any], rows: list[TableRow]
) -> list[TableRow]:
    """Summarise the seeds of each row that has several.

    Returns:
        For each such row its name, title, seeds, the mean and standard deviation of its
        score, and p against each of the rivals there are: the paired bootstrap of the
        seeds that both have, two at least, where a sentence is drawn with all its
        hypotheses.
    """
    by_name: dict[str, dict[int, TableRow]] = defaultdict(dict)
    for row in rows:
        by_name[without_seed(row)[0]][row["seed"]] = row
    several = {name: seeds for name, seeds in by_name.items() if len(seeds) > 1}
    if not several:
        return []
    runs = WorkRuns(work, settings)
    found = []
    for name, seeds in several.items():
        scores = [row[runs.key] for row in seeds.values()]
        shared = {
            rival: sorted(seeds.keys() & several[rival].keys())
            for rival in RIVALS
            if rival in several and rival != name and not Row.parse(name).system.back
        }
        found.append(
            {
                "name": name,
                "title": without_seed(seeds[min(seeds)])[1],
                "seeds": sorted(seeds),
                "score": runs.key,
                "mean": round(statistics.mean(scores), 2),
                "deviation": round(statistics.stdev(scores), 2),
                "p": {
                    rival: p_of(runs, *(pooled(runs, x, both) for x in (name, rival)))
                    for rival, both in shared.items()
                    if len(both) > 1
                },
            }
        )
    return found


def pooled(runs: Runs, name: str, seeds: list[int]) -> list[str]:
    """Return a line a sentence: the hypotheses of these seeds."""
    return seeds_together([runs.answers(name, seed) for seed in seeds])


def p_of(runs: Runs, texts: list[str], theirs: list[str]) -> float:
    """Return p of pooled hypotheses against those of a rival."""
    named = {"rival": theirs, "row": texts}
    found, _ = bootstrap(named, runs.given, "rival", {runs.key: runs.metric})
    p = found["row"][runs.key].p
    assert p is not None  # which it is for the rival alone
    return p


class Difference(NamedTuple):
    """Distance of a row from a rival.

    Attributes:
        rival: its name.
        seeds: those that both have.
        scores, rivals: scores of the row and of the rival, one a seed.
        interval: 95 % of the difference by the paired bootstrap.  A sentence is drawn
            with its hypotheses of all these seeds, so it speaks of other sentences.
        p: by the same bootstrap.
    """

    rival: str
    seeds: list[int]
    scores: list[float]
    rivals: list[float]
    interval: tuple[float, float]
    p: float


def difference(runs: Runs, name: str, rival: str) -> Difference:
    """Compare a row with a rival, both named without a seed.

    Raises:
        ValueError: they are one row, or have no seed in common; a name is unknown.
        FileNotFoundError: a row has no hypotheses.
    """
    if name == rival:
        raise ValueError(f"{rival} must not be compared with itself: give another row")
    of_row, of_rival = runs.seeds(name), runs.seeds(rival)
    seeds = sorted(of_row & of_rival)
    if not seeds:
        raise ValueError(
            f"{name} and {rival} must share a seed, but have {sorted(of_row)} and "
            f"{sorted(of_rival)}: run either with another seed"
        )
    texts, theirs = pooled(runs, name, seeds), pooled(runs, rival, seeds)
    return Difference(
        rival,
        seeds,
        [runs.score(name, seed) for seed in seeds],
        [runs.score(rival, seed) for seed in seeds],
        interval(texts, theirs, runs.given, runs.metric),
        p_of(runs, texts, theirs),
    )
