"""Which rows are better than others, and whether that is more than chance."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from sacrebleu.metrics import BLEU
from sacrebleu.metrics.base import Metric

from sbnmt_plugin.tools.phonemes import WordErrorRate
from sbnmt_plugin.tools.recipes.row_names import (
    RIVALS,
    split_name,
    with_seed,
    without_seed,
)
from sbnmt_plugin.tools.recipes.settings import references
from sbnmt_plugin.tools.recipes.systems import OPPONENTS, SYSTEMS
from sbnmt_plugin.tools.results.bootstrap import bootstrap, of_all_seeds, seeds_together
from sbnmt_plugin.tools.results.table import Row
from sbnmt_plugin.tools.text import read_lines


class Judge(NamedTuple):
    """By what a recipe's rows are compared.

    Attributes:
        metric: sacreBLEU's, or of its kind.
        key: its name in a row.
        suffix: of the files that hold answers.
        stem: of those that hold references.
        best: of scores: max or min.
    """

    metric: Metric
    key: str
    suffix: str
    stem: str
    best: Callable[..., Any]

    def answers(self, work: Path, name: str) -> list[str]:
        """Of a row, a line a sentence."""
        return read_lines(work / "results" / f"{name}.{self.suffix}")


def judge(settings: dict[str, Any]) -> Judge:
    """BLEU of text, or of tokens where nothing is detokenised; for words WER."""
    lowercase = settings["score"]["lowercase"]
    if settings["score"]["phonemes"]:
        return Judge(WordErrorRate(), "WER", "tok", "test", min)
    if settings["detokenise"]:
        return Judge(BLEU(lowercase=lowercase), "BLEU", "txt", "test.ref", max)
    metric = BLEU(tokenize="none", force=True, lowercase=lowercase)
    return Judge(metric, "tokenised BLEU", "tok", "test", max)


def compare(work: Path, settings: dict[str, Any], rows: list[Row]) -> str | None:
    """Give every row its p against the best Transformer with the same pseudo data.

    Returns:
        That opponent's name, or None if it is not there.
    """
    opponents = [row for row in rows if split_name(row["name"])[0] in OPPONENTS]
    if not opponents:
        return None
    by = judge(settings)
    best = by.best(opponents, key=lambda row: row[by.key])
    given = references(work / "text", settings).read(by.stem)
    outputs = {
        row["name"]: by.answers(work, row["name"])
        for row in rows
        if not SYSTEMS[split_name(row["name"])[0]].back  # of another text
    }
    if len(outputs) > 1:
        found, _ = bootstrap(outputs, given, best["name"], {by.key: by.metric})
        for row in rows:
            if row is not best and row["name"] in found:
                row["p"] = found[row["name"]][by.key].p
    return str(best["name"])


def of_several_seeds(
    work: Path, settings: dict[str, Any], rows: list[Row]
) -> list[Row]:
    """What the seeds of a row say together, for rows of which there are several.

    Returns:
        for each its name, title, seeds, the mean and standard deviation of its score,
        and p against each of the rivals there are: the paired bootstrap of the seeds
        that both have, two at least, where a sentence is drawn with all its answers.
    """
    runs: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in rows:
        runs[without_seed(row)[0]][row["seed"]] = row
    several = {name: seeds for name, seeds in runs.items() if len(seeds) > 1}
    by = judge(settings)
    found = []
    for name, seeds in several.items():
        scores = [row[by.key] for row in seeds.values()]
        _, title = without_seed(seeds[min(seeds)])
        summary: Row = {"name": name, "title": title, "seeds": sorted(seeds)}
        summary["score"] = by.key
        summary["mean"] = round(statistics.mean(scores), 2)
        summary["deviation"] = round(statistics.stdev(scores), 2)
        summary["p"] = {
            rival: p
            for rival in RIVALS
            if rival in several and rival != name
            for p in [_pooled_p(work, settings, rival, name, several)]
            if p is not None
        }
        found.append(summary)
    return found


def _pooled_p(
    work: Path,
    settings: dict[str, Any],
    rival: str,
    name: str,
    runs: dict[str, dict[int, Row]],
) -> float | None:
    """Of the seeds that both have; None for fewer than two, or for another text."""
    both = sorted(set(runs[rival]) & set(runs[name]))
    if len(both) < 2 or SYSTEMS[split_name(name)[0]].back:
        return None
    by = judge(settings)

    def together(which: str) -> list[str]:
        return seeds_together(
            [by.answers(work, with_seed(which, seed)) for seed in both]
        )

    found, _ = bootstrap(
        {which: together(which) for which in (rival, name)},
        references(work / "text", settings).read(by.stem),
        rival,
        {by.key: of_all_seeds(by.metric)},
    )
    return found[name][by.key].p
