"""Paired bootstrap resampling (Koehn 2004), as sacreBLEU does it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import _bootstrap_resample, _compute_p_value, estimate_ci

SAMPLES = 1000
LIKELY = 0.95  # of the resamplings, within an interval
Texts = list[str]


class Outcome(NamedTuple):
    """A system compared with a baseline.

    Attributes:
        score, mean: score of the whole text; mean of the resampled texts.
        interval: half the width of the interval that holds 95 % of them.
        low, high: the interval that holds 95 % of the differences from the baseline.
        p: probability of a difference as large as the observed one, were the system as
            good as the baseline.
    """

    score: float
    mean: float
    interval: float
    low: float
    high: float
    p: float


def statistics(
    runs: Sequence[Texts], references: list[Texts], metric: Metric
) -> list[list[Any]]:
    """Return what a metric counts in each sentence, in the runs of all seeds together.

    Sentences are drawn, each with the hypotheses of all seeds: the same hypotheses
    twice are no more evidence than once.

    Raises:
        ValueError: one has more lines than another.
    """
    each = [metric._extract_corpus_statistics(run, references) for run in runs]
    return [[sum(column) for column in zip(*x)] for x in zip(*each, strict=True)]


def bootstrap(
    runs: Sequence[Texts],
    baseline: Sequence[Texts],
    references: list[Texts],
    metric: Metric,
) -> Outcome:
    """Compare a system with a baseline; both have a run for each seed.

    sacreBLEU has no interval of a difference.  So its resampling gets the statistics of
    both texts side by side, which are scored on the same draw of sentences, whatever
    its seed is; p is computed from them as sacreBLEU does.  The metric's signature
    tells the samples afterwards.
    """
    ours, theirs = (statistics(x, references, metric) for x in (runs, baseline))
    width = len(ours[0])

    def scores(stats: Any) -> list[float]:
        parts = stats[:width], stats[width:]
        return [float(metric._compute_score_from_stats(part).score) for part in parts]

    both: Any = SimpleNamespace(_compute_score_from_stats=scores)
    paired = [[*our, *their] for our, their in zip(ours, theirs)]
    seed, drawn = _bootstrap_resample(paired, both, SAMPLES)
    metric.n_bootstrap, metric.seed = SAMPLES, seed  # for its signature
    own, rivals = np.array(drawn).T
    apart = own - rivals
    score, rival = scores([sum(column) for column in zip(*paired)])
    # Departs from sacreBLEU: where every resampling scores alike it finds no
    # difference larger than 0, and has its smallest p.
    spread = abs(apart) - abs(apart).mean()
    p = _compute_p_value(spread, abs(score - rival)) if apart.any() else 1.0
    outside = (1 - LIKELY) / 2
    low, high = np.quantile(apart, [outside, 1 - outside])
    return Outcome(score, *map(float, (*estimate_ci(own), low, high, p)))
