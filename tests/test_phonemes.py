"""Word and phoneme error rates, by brute force, in the bootstrap and in sbnmt score."""

import itertools
import json
import random

import pytest
from comparing import p_of
from steps import call, put

from sbnmt_plugin.tools.commands import score as score_step
from sbnmt_plugin.tools.phonemes import (
    PhonemeErrorRate,
    WordErrorRate,
    edit_distance,
    error_rates,
)


def slow_distance(first, second):
    """Over all ways to pair tokens in order: what is unpaired or differs is an edit."""
    best = len(first) + len(second)
    for paired in range(1, min(len(first), len(second)) + 1):
        for here in itertools.combinations(first, paired):
            for there in itertools.combinations(second, paired):
                differ = sum(a != b for a, b in zip(here, there))
                best = min(best, len(first) + len(second) - 2 * paired + differ)
    return best


def test_the_edit_distance_is_the_brute_force_minimum():
    rng = random.Random(3)
    for _ in range(200):
        pair = ["".join(rng.choices("ABC", k=rng.randrange(6))) for _ in range(2)]
        assert edit_distance(*pair) == slow_distance(*pair), pair
    assert edit_distance(["K", "AE", "T"], ["K", "AH", "T", "S"]) == 2


def test_any_pronunciation_is_right_and_the_closest_counts():
    references = [
        ["K AE T", "T AH M EY T OW", "B"],
        ["K AE T", "T AH M AA T OW", "P A"],
    ]
    hypotheses = ["K AE T", "T AH M AA T AH", "P"]
    rates = error_rates(hypotheses, references)
    assert rates["WER"]["score"] == round(100 * 2 / 3, 2)
    # edits 0, 1 and 1, of 3, 6 and (both are as close: the first) 1 phonemes
    assert rates["PER"]["score"] == 20.0
    assert rates["PER"]["signature"].startswith("nrefs:2|")


def test_an_empty_answer_is_wrong_in_every_phoneme_of_which_there_may_be_none():
    rates = error_rates(["", "B", ""], [["K AE T", "B", ""]])
    assert (rates["WER"]["score"], rates["PER"]["score"]) == (33.33, 75.0)
    rates = error_rates(["", ""], [["", ""]])
    assert [rate["score"] for rate in rates.values()] == [0, 0]


@pytest.mark.parametrize("metric", [WordErrorRate, PhonemeErrorRate])
def test_the_bootstrap_takes_error_rates(metric):
    good = [f"A B {i}" for i in range(40)]
    bad = [line if i % 2 else "A X Y" for i, line in enumerate(good)]
    twin = ["A X Y" if i % 2 else line for i, line in enumerate(good)]
    assert p_of(metric(), bad, bad, good) == 1.0
    assert p_of(metric(), bad, good, good) < 0.01
    assert p_of(metric(), bad, twin, good) > 0.05


def test_the_score_step_prints_error_rates(tmp_path, capsys):
    first, second = put(tmp_path / "a", "A B", "C"), put(tmp_path / "b", "A X", "C")
    output = put(tmp_path / "out", "A X", "C D")
    words = ["--reference", first, "--reference", second, "--hypothesis", output]
    call(score_step, *words, "--phonemes", "--json", tmp_path / "scores.json")
    assert "WER = 50.00   nrefs:2" in capsys.readouterr().out
    assert json.loads((tmp_path / "scores.json").read_text())["PER"]["score"] == 33.33
    with pytest.raises(ValueError, match="--phonemes excludes --lowercase"):
        call(score_step, *words, "--phonemes", "--lowercase")
