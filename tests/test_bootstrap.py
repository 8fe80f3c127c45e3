"""The paired bootstrap: p, seeds together, and intervals of differences."""

import numpy as np
import pytest
from comparing import LINES, RIGHT, answers, bleu, p_of, p_of_seeds
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from sbnmt_plugin.tools.phonemes import WordErrorRate
from sbnmt_plugin.tools.results import bootstrap as module
from sbnmt_plugin.tools.results.bootstrap import bootstrap


def test_the_bootstrap_tells_equal_from_different_systems():
    reference = [f"this is sentence number {i} of the test" for i in range(40)]
    bad = [line if i % 2 else "no such words" for i, line in enumerate(reference)]
    assert p_of(BLEU(), bad, bad, reference) == 1.0
    assert p_of(BLEU(), bad, list(reference), reference) < 0.01
    twin = [line if i % 2 == 0 else "no such words" for i, line in enumerate(reference)]
    assert p_of(BLEU(), bad, twin, reference) > 0.05


def assert_as_sacrebleu(metric):
    """Compare with sacreBLEU's own test; its p of what differs."""
    rival = answers(3, 0.25)
    for seed, rate in ((1, 0.2), (2, 0.25), (4, 0.24)):
        named = [("rival", rival), ("row", answers(seed, rate))]
        test = PairedTest(
            named, {"it": metric()}, [RIGHT], test_type="bs", n_samples=1000
        )
        theirs = next(x[1] for key, x in test()[1].items() if key != "System")
        ours = bootstrap([named[1][1]], [rival], [RIGHT], metric())
        assert (ours.score, ours.p) == pytest.approx((theirs.score, theirs.p_value))
        assert ours[1:3] == pytest.approx((theirs.mean, theirs.ci), abs=1e-4)


@pytest.mark.parametrize("metric", [bleu, CHRF, WordErrorRate])
def test_scores_intervals_and_p_are_sacrebleus(metric):
    assert_as_sacrebleu(metric)


def test_the_comparison_with_sacrebleus_test_can_fail(monkeypatch):
    monkeypatch.setattr(module, "seed", lambda: "1")
    with pytest.raises(AssertionError):
        assert_as_sacrebleu(bleu)


def test_systems_that_always_score_alike_do_not_differ():
    """In case alone, which the metric ignores: sacreBLEU has p at its least."""
    reference = [f"this is sentence number {i} of the test" for i in range(40)]
    loud = [line.upper() for line in reference]
    assert p_of(BLEU(lowercase=True), reference, loud, reference) == 1.0


def test_a_single_line_is_no_evidence():
    assert bootstrap([["a b c d e"]], [["a b c d f"]], [["a b c d e"]], bleu()).p == 1


def test_the_metric_stays_as_it_was():
    """A plain score of it has no samples in its signature; the bootstrap's has."""
    metric = bleu()
    bootstrap([RIGHT], [RIGHT], [RIGHT], metric)
    assert "bs:" not in str(metric.get_signature())
    assert "bs:1000|seed:12345" in module.signature(metric)


@pytest.mark.parametrize(
    "metric", [bleu, BLEU, WordErrorRate], ids=["tokens", "text", "WER"]
)
def test_the_score_of_all_seeds_is_that_of_one_long_text(metric):
    runs = [answers(seed, 0.2) for seed in (1, 2, 3)]
    pooled = bootstrap(runs, runs, [RIGHT], metric()).score
    whole = metric().corpus_score([line for run in runs for line in run], [RIGHT * 3])
    assert pooled == pytest.approx(whole.score, abs=1e-9)
    assert pooled != pytest.approx(metric().corpus_score(runs[0], [RIGHT]).score)


def test_the_same_answers_twice_are_no_more_evidence(p=p_of_seeds):
    one, rival = answers(1, 0.2), answers(2, 0.22)
    assert p([one, one], [rival, rival]) == p([one], [rival])


def test_the_check_of_evidence_can_fail():
    """One behind the other instead, as if the sentences were others."""

    def behind(runs, rivals):
        texts = ([[line for run in each for line in run]] for each in (runs, rivals))
        return bootstrap(*texts, [RIGHT * len(runs)], bleu()).p

    with pytest.raises(AssertionError):
        test_the_same_answers_twice_are_no_more_evidence(behind)


def test_more_seeds_that_agree_are_more_evidence():
    runs = [answers(seed, 0.2) for seed in range(8)]
    rivals = [answers(seed, 0.23) for seed in range(100, 108)]
    assert p_of_seeds(runs, rivals) < 0.05 < p_of_seeds(runs[:1], rivals[:1])


def test_runs_of_other_lengths_are_no_seeds():
    with pytest.raises(ValueError, match="shorter"):
        bootstrap([RIGHT, RIGHT[1:]], [RIGHT], [RIGHT], bleu())


def slow_interval(texts, baseline, samples, draw):
    """The texts of each sample written out, scored by the metric alone."""

    def scored(runs, places):
        lines = [run[i] for run in runs for i in places]
        right = [RIGHT[i] for _ in runs for i in places]
        return bleu().corpus_score(lines, [right]).score

    found = [
        scored(texts, places) - scored(baseline, places)
        for places in draw.choice(LINES, size=(samples, LINES), replace=True)
    ]
    return np.quantile(found, [0.025, 0.975])


def fast_interval(texts, baseline):
    found = bootstrap(texts, baseline, [RIGHT], bleu())
    return found.low, found.high


def assert_interval(monkeypatch, draw):
    monkeypatch.setattr(module, "SAMPLES", 60)
    texts = [answers(seed, 0.2) for seed in (1, 2)]
    baseline = [answers(seed, 0.25) for seed in (3, 4)]
    slow = slow_interval(texts, baseline, 60, draw)
    assert fast_interval(texts, baseline) == pytest.approx(slow, abs=1e-4)
    assert slow[0] < slow[1]


def test_the_interval_is_that_of_samples_written_out(monkeypatch):
    """Of sacreBLEU's samples, so that it goes with its p."""
    assert_interval(monkeypatch, np.random.default_rng(12345))


def test_the_check_of_intervals_can_fail(monkeypatch):
    with pytest.raises(AssertionError):
        assert_interval(monkeypatch, np.random.default_rng(12346))


def test_a_seed_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "-1")
    with pytest.raises(ValueError, match=r"^SACREBLEU_SEED must be .* none, but is -1"):
        p_of_seeds([answers(1, 0.3)], [answers(2, 0.3)])


@pytest.mark.parametrize("seed", ["12345", "none"])
def test_pairs_stay_pairs_whatever_the_seed(monkeypatch, seed):
    """The same mistakes leave nothing to chance; `none` draws anew for each text."""
    monkeypatch.setenv("SACREBLEU_SEED", seed)
    runs, others = [answers(1, 0.3)], [answers(2, 0.3)]
    assert fast_interval(runs, runs) == (0.0, 0.0)
    low, high = fast_interval(runs, others)
    assert low < -1 and high > 1
    assert p_of_seeds(runs, runs) == 1.0 > p_of_seeds([answers(2, 0.9)], runs)
