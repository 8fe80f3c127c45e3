"""The paired bootstrap: p, seeds together, and intervals of differences."""

import numpy as np
import pytest
from comparing import LINES, RIGHT, answers, bleu, p_of, p_of_seeds
from sacrebleu.metrics import BLEU

from sbnmt_plugin.tools.phonemes import WordErrorRate
from sbnmt_plugin.tools.results import bootstrap as module
from sbnmt_plugin.tools.results.bootstrap import (
    bootstrap,
    interval,
    of_all_seeds,
    seeds_together,
)


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


@pytest.mark.parametrize(
    "metric", [bleu, BLEU, WordErrorRate], ids=["tokens", "text", "WER"]
)
def test_the_score_of_all_seeds_is_that_of_one_long_text(metric):
    runs = [answers(seed, 0.2) for seed in (1, 2, 3)]
    pooled = of_all_seeds(metric()).corpus_score(seeds_together(runs), [RIGHT])
    whole = metric().corpus_score([line for run in runs for line in run], [RIGHT * 3])
    assert pooled.score == pytest.approx(whole.score, abs=1e-9)
    assert pooled.score != pytest.approx(metric().corpus_score(runs[0], [RIGHT]).score)


def test_the_same_answers_twice_are_no_more_evidence(p=p_of_seeds):
    one, rival = answers(1, 0.2), answers(2, 0.22)
    assert p([one, one], [rival, rival]) == p([one], [rival])


def test_the_check_of_evidence_can_fail():
    """One behind the other instead, as if the sentences were others."""

    def behind(runs, rivals):
        named = {"rival": rivals, "row": runs}
        systems = {k: [line for run in v for line in run] for k, v in named.items()}
        given = [RIGHT * len(runs)]
        return bootstrap(systems, given, "rival", {"it": bleu()})[0]["row"]["it"].p

    with pytest.raises(AssertionError):
        test_the_same_answers_twice_are_no_more_evidence(behind)


def test_more_seeds_that_agree_are_more_evidence():
    runs = [answers(seed, 0.2) for seed in range(8)]
    rivals = [answers(seed, 0.23) for seed in range(100, 108)]
    assert p_of_seeds(runs, rivals) < 0.05 < p_of_seeds(runs[:1], rivals[:1])


def test_runs_of_other_lengths_are_no_seeds():
    with pytest.raises(ValueError, match="shorter"):
        seeds_together([RIGHT, RIGHT[1:]])


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
    metric = of_all_seeds(bleu())
    return interval(seeds_together(texts), seeds_together(baseline), [RIGHT], metric)


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


@pytest.mark.parametrize("seed", ["12345", "none"])
def test_pairs_stay_pairs_whatever_the_seed(monkeypatch, seed):
    """The same mistakes leave nothing to chance; `none` draws anew for each text."""
    monkeypatch.setenv("SACREBLEU_SEED", seed)
    runs, others = [answers(1, 0.3)], [answers(2, 0.3)]
    assert fast_interval(runs, runs) == (0.0, 0.0)
    low, high = fast_interval(runs, others)
    assert low < -1 and high > 1
    same = {"a": runs[0], "b": list(runs[0]), "c": answers(2, 0.9)}
    found, _ = bootstrap(same, [RIGHT], "a", {"BLEU": bleu()}, 60)
    assert found["b"]["BLEU"].p == 1.0 > found["c"]["BLEU"].p
