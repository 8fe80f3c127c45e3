"""Comparison of rows: their differences, and the paired bootstrap."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.rows import RESCORED, Row
from sbnmt_plugin.tools.recipes.systems import OPPONENTS
from sbnmt_plugin.tools.results.bootstrap import bootstrap, seeds_together
from sbnmt_plugin.tools.results.hypotheses import Runs
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
    runs = Runs(work, settings)
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
    runs = Runs(work, settings)
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
