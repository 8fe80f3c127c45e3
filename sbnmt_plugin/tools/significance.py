"""Paired bootstrap resampling (Koehn 2004), as sacreBLEU does it."""

from __future__ import annotations

from typing import Any, NamedTuple

from sacrebleu.significance import PairedTest

SAMPLES = 1000
Texts = list[str]


class Outcome(NamedTuple):
    """What the resamplings say of a system, by one metric.

    Attributes:
        score, mean: of the whole text; of the resampled ones.
        interval: half the width of the one that holds 95 % of them.
        p: of a difference as large as the observed one, were the system as good as
            the baseline; None for the baseline itself.
    """

    score: float
    mean: float
    interval: float
    p: float | None


def p_value(baseline: Any, system: Any) -> float | None:
    """p of sacreBLEU's result, None for the baseline itself.

    Departs from sacreBLEU where every resampling scores alike, as for two copies of a
    text: it finds no difference larger than 0 and prints its smallest p for "none".
    """
    if system.p_value is None:
        return None
    same = all(
        getattr(baseline, key) == getattr(system, key)
        for key in ("score", "mean", "ci")
    )
    return 1.0 if same else float(system.p_value)


def bootstrap(
    systems: dict[str, Texts],
    references: list[Texts],
    baseline: str,
    metrics: dict[str, Any],
    samples: int = SAMPLES,
) -> tuple[dict[str, dict[str, Outcome]], list[str]]:
    """Compare every system with a baseline, one of them.

    Args:
        metrics: sacreBLEU's, by names of ours.

    Returns:
        outcomes: system -> metric -> outcome.
        signatures: of the metrics, with seed and samples.
    """
    order = [baseline, *(name for name in systems if name != baseline)]
    named = [(name, systems[name]) for name in order]
    test = PairedTest(named, metrics, references, test_type="bs", n_samples=samples)
    signatures, found = test()
    # sacreBLEU's own names (chrF2), in the order of ours
    keys = dict(zip(metrics, (key for key in found if key != "System")))

    def outcome(key: str, place: int) -> Outcome:
        result: Any = found[key][place]
        p = p_value(found[key][0], result)
        return Outcome(float(result.score), float(result.mean), float(result.ci), p)

    outcomes = {
        str(name): {ours: outcome(key, place) for ours, key in keys.items()}
        for place, name in enumerate(found["System"])
    }
    return outcomes, [f"{ours}: {signatures[key]}" for ours, key in keys.items()]
