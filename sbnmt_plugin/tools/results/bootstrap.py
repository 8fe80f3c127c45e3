"""Paired bootstrap resampling (Koehn 2004), as sacreBLEU does it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest, _bootstrap_resample

SAMPLES = 1000
LIKELY = 0.95  # of the resamplings, within an interval
SEED = "\t"  # separates the hypotheses of several seeds in a line
Texts = list[str]


class Outcome(NamedTuple):
    """Result of the resamplings for a system, by one metric.

    Attributes:
        score, mean: score of the whole text; mean of the resampled texts.
        interval: half the width of the interval that holds 95 % of them.
        p: probability of a difference as large as the observed one, were the system as
            good as the baseline; None for the baseline itself.
    """

    score: float
    mean: float
    interval: float
    p: float | None


class OfAllSeeds:
    """Metric of sacreBLEU's kind whose lines hold a hypothesis of each seed.

    Sentences are drawn, each with the hypotheses of all seeds: the same hypotheses
    twice are no more evidence than once.
    """

    def _preprocess_segment(self, sent: str) -> str:
        one = super()._preprocess_segment  # type: ignore[misc]
        return SEED.join(one(answer) for answer in sent.split(SEED))

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> list[int]:
        one = super()._compute_segment_statistics  # type: ignore[misc]
        found = [one(answer, ref_kwargs) for answer in hypothesis.split(SEED)]
        return [sum(column) for column in zip(*found)]


def of_all_seeds(metric: Metric) -> Metric:
    """Make a metric read what :func:`seeds_together` writes, and return it."""
    kind = type(metric)
    metric.__class__ = type(kind.__name__, (OfAllSeeds, kind), {})
    return metric


def seeds_together(runs: Sequence[Texts]) -> Texts:
    """Return a line a sentence: the hypotheses of all seeds.

    Args:
        runs: hypotheses of each seed.

    Raises:
        ValueError: one has more lines than another.
    """
    return [SEED.join(answers) for answers in zip(*runs, strict=True)]


def bootstrap(
    systems: dict[str, Texts],
    references: list[Texts],
    baseline: str,
    metrics: dict[str, Any],
    samples: int = SAMPLES,
) -> tuple[dict[str, dict[str, Outcome]], list[str]]:
    """Compare every system with a baseline, one of them.

    Args:
        metrics: sacreBLEU's metrics, by names of ours.

    Returns:
        Outcomes, by system and metric; signatures of the metrics, with seed and
        samples.
    """
    order = [baseline, *(name for name in systems if name != baseline)]
    named = [(name, systems[name]) for name in order]
    test = PairedTest(named, metrics, references, test_type="bs", n_samples=samples)
    signatures, found = test()
    # sacreBLEU's own names (chrF2), in the order of ours
    keys = dict(zip(metrics, (key for key in found if key != "System")))

    def outcome(key: str, place: int) -> Outcome:
        baseline, result = found[key][0], found[key][place]
        p = result.p_value
        # Departs from sacreBLEU: where every resampling scores alike it finds no
        # difference larger than 0, and has its smallest p.  With SACREBLEU_SEED=none
        # even equal texts have other draws.
        alike = {**vars(result), "p_value": None} == vars(baseline)
        if p is not None and (alike or named[place][1] == named[0][1]):
            p = 1.0
        return Outcome(float(result.score), float(result.mean), float(result.ci), p)

    outcomes = {
        str(name): {ours: outcome(key, place) for ours, key in keys.items()}
        for place, name in enumerate(found["System"])
    }
    return outcomes, [f"{ours}: {signatures[key]}" for ours, key in keys.items()]


def interval(
    texts: Texts, baseline: Texts, references: list[Texts], metric: Metric
) -> tuple[float, float]:
    """Return the middle 95 % of the difference from a baseline.

    The samples are those of :func:`bootstrap`; sacreBLEU has intervals of each system,
    not of their difference.  So its resampling gets the statistics of both texts side
    by side, which are scored on the same draw of sentences, whatever its seed is.
    """
    ours, theirs = (
        metric._extract_corpus_statistics(lines, references)
        for lines in (texts, baseline)
    )
    width = len(ours[0])

    def apart(stats: Any) -> float:
        score = metric._compute_score_from_stats
        return float(score(stats[:width]).score - score(stats[width:]).score)

    both: Any = SimpleNamespace(_compute_score_from_stats=apart)
    paired = [[*our, *their] for our, their in zip(ours, theirs)]
    _, differences = _bootstrap_resample(paired, both, SAMPLES)
    outside = (1 - LIKELY) / 2
    low, high = np.quantile(np.array(differences), [outside, 1 - outside])
    return float(low), float(high)
