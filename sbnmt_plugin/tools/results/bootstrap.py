"""Paired bootstrap resampling (Koehn 2004), as sacreBLEU does it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import estimate_ci

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


def seed() -> str:
    """Return sacreBLEU's seed, as it writes it: a number, or ``none``.

    Raises:
        ValueError: it is neither.
    """
    found = os.environ.get("SACREBLEU_SEED", "12345").lower()
    if found != "none" and not found.isdecimal():
        raise ValueError(
            f"SACREBLEU_SEED must be a whole number ≥ 0, or none, but is {found}: "
            "change the environment"
        )
    return found


def signature(metric: Metric) -> str:
    """Return the signature of a metric, with samples and seed."""
    found = metric.get_signature()
    found.update("bs", SAMPLES)
    found.update("seed", seed())
    return str(found)


def bootstrap(
    runs: Sequence[Texts],
    baseline: Sequence[Texts],
    references: list[Texts],
    metric: Metric,
) -> Outcome:
    """Compare a system with a baseline; both have a run for each seed.

    Draws, scores and p are sacreBLEU's; it has no interval of a difference.  Both texts
    are scored on a draw of sentences before the next one is made, where sacreBLEU holds
    all draws at once.
    """
    texts = [statistics(x, references, metric) for x in (runs, baseline)]
    counts = [np.array(stats, dtype="float32") for stats in texts]

    def scores(sums: Iterable[Any]) -> list[float]:
        return [float(metric._compute_score_from_stats(x).score) for x in sums]

    lines = len(texts[0])
    chance = np.random.default_rng(None if seed() == "none" else int(seed()))
    draws = (chance.choice(lines, size=lines) for _ in range(SAMPLES))
    drawn = [scores(stats[places].sum(0) for stats in counts) for places in draws]
    own, rivals = np.array(drawn).T
    apart = own - rivals
    score, rival = scores(np.array(stats).sum(0) for stats in texts)
    # Departs from sacreBLEU: where all draws are equally far apart, as those of a
    # single line, it finds none farther than the text, and has its smallest p.
    spread = abs(apart) - abs(apart).mean()
    more = int((spread > abs(score - rival)).sum())
    p = (more + 1) / (SAMPLES + 1) if np.ptp(apart) else 1.0
    outside = (1 - LIKELY) / 2
    low, high = np.quantile(apart, [outside, 1 - outside])
    return Outcome(score, *map(float, (*estimate_ci(own), low, high, p)))
