"""The paired bootstrap: p-values of equal and of different systems."""

from comparing import p_of
from sacrebleu.metrics import BLEU


def test_the_bootstrap_tells_equal_from_different_systems():
    reference = [f"this is sentence number {i} of the test" for i in range(40)]
    bad = [line if i % 2 else "no such words" for i, line in enumerate(reference)]
    assert p_of(BLEU(), bad, bad, reference) == 1.0
    assert p_of(BLEU(), bad, list(reference), reference) < 0.01
    twin = [line if i % 2 == 0 else "no such words" for i, line in enumerate(reference)]
    assert p_of(BLEU(), bad, twin, reference) > 0.05


def test_systems_that_always_score_alike_do_not_differ():
    """In case alone, which the metric ignores: sacreBLEU has p at its least."""
    reference = [f"this is sentence number {i} of the test" for i in range(40)]
    loud = [line.upper() for line in reference]
    assert p_of(BLEU(lowercase=True), reference, loud, reference) == 1.0
