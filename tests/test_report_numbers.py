"""The report's numbers, by hand and against sacreBLEU."""

import pytest
import sacrebleu
from report_texts import GOLDS, LOG, OUTPUTS
from steps import put

pytest.importorskip("matplotlib", reason="the extra [report] is not installed")

from sbnmt_plugin.tools.recipes.costs import read_train_log
from sbnmt_plugin.tools.report import (
    accuracy,
    inputs,
    lengths,
    scores,
    sentences,
    training,
)


def words(*lines):
    return [line.split() for line in lines]


def check_accuracy(measure):
    outputs, gold = words("a b c d e", "x", ""), words("a c b d e", "x y", "z")
    # first 2: a = a, b ≠ c; x = x, – ≠ y; – ≠ z: 2 of 2 + 2 + 1
    assert measure(outputs, [gold], 2) == pytest.approx(100 * 2 / 5)
    # last 2: e = e, d = d; x ≠ y, – ≠ x; – ≠ z
    assert measure(outputs, [gold], 2, last=True) == pytest.approx(100 * 2 / 5)
    # a superfluous token counts as wrong
    assert measure(words("x y"), [words("x")], 4) == pytest.approx(50)
    # the reference that fits best, sentence by sentence
    both = [words("a b", "p q"), words("a a", "r s")]
    assert measure(words("a a", "p q"), both, 2) == pytest.approx(100)


def check_buckets(group):
    found = group([1, 5, 6, 10, 11, 40], [5, 10])
    assert [(b.name, b.places) for b in found] == [
        ("1–5", [0, 1]),
        ("6–10", [2, 3]),
        ("≥ 11", [4, 5]),
    ]


def check_train_log(read):
    log = read(LOG.splitlines())
    # continued from an earlier checkpoint: the later value
    assert log["train_inner", "nll_loss_l2r"] == {100: 8.5, 200: 7.5, 300: 6}
    assert log["valid", "bleu"] == {300: 12.34}


CHECKS = [
    (
        check_accuracy,
        accuracy.accuracy,
        lambda o, r, n, last=False: accuracy.accuracy(o, r[:1], n),
    ),
    (check_buckets, lengths.buckets, lambda n, u: lengths.buckets(n, [4, 10])),
    (check_train_log, read_train_log, lambda x: read_train_log(x[:3])),
]
NAMES = [check.__name__ for check, _, _ in CHECKS]


@pytest.mark.parametrize("check, function, broken", CHECKS, ids=NAMES)
def test_the_numbers_are_those_worked_out_by_hand(check, function, broken):
    check(function)


@pytest.mark.parametrize("check, function, broken", CHECKS, ids=NAMES)
def test_the_checks_by_hand_can_fail(check, function, broken):
    with pytest.raises(AssertionError):
        check(broken)


def test_what_is_no_number_is_not_drawn():
    line = "| train_inner | epoch 001:    4 / 7 loss=2, gnorm={}, num_updates=4"
    for value, drawn in ("0.5", {4: 0.5}), ("inf", {}), ("nan", {}):
        log = read_train_log([line.format(value)])
        assert log["train_inner", "gnorm"] == drawn
        assert log["train_inner", "loss"] == {4: 2}


@pytest.mark.parametrize("name", ["read_bits", "other"])
def test_the_caption_names_what_is_drawn(tmp_path, name):
    path = put(tmp_path / "log", *LOG.replace("read_bits", name).splitlines())
    given = inputs.Inputs([], [], {"SB": []}, train_logs={"SB": path})
    (figure,) = training.section(given).figures
    assert ("reads of the other" in figure.caption) == (name == "read_bits")


def test_length_groups_are_few_and_not_tiny():
    counts = [3, 4, *range(6, 26)] * 20
    uppers = lengths.edges(counts)
    groups = lengths.buckets(counts, uppers)
    assert len(groups) <= lengths.MOST_BUCKETS
    assert min(len(group.places) for group in groups) >= lengths.FEWEST
    assert lengths.edges([7]) and lengths.buckets([0, 0], lengths.edges([0, 0]))


def assert_scores(made, lowercase):
    """Check scores and intervals, which are those of sacreBLEU's own metrics."""
    for name, bleu, interval, _, chrf, *_ in made.tables[0].rows:
        text = OUTPUTS[name]
        found = sacrebleu.metrics.BLEU(lowercase=lowercase).corpus_score(
            text, GOLDS, n_bootstrap=1000
        )
        assert (bleu, interval) == pytest.approx((found.score, found._ci))
        own = sacrebleu.metrics.CHRF(lowercase=lowercase).corpus_score(text, GOLDS)
        assert chrf == pytest.approx(own.score)


def scored(golds, **options):
    return scores.section(inputs.Inputs(golds[0], golds, OUTPUTS, **options))


@pytest.mark.parametrize("lowercase", [False, True])
def test_scores_are_sacrebleus(lowercase):
    made = scored(GOLDS, lowercase=lowercase)
    assert_scores(made, lowercase)
    (table,) = made.tables
    first, second = table.rows
    assert first[3] is None and 0 < second[3] <= 1  # against the first system
    assert f"case:{'lc' if lowercase else 'mixed'}" in table.notes[0]
    alone = inputs.Inputs(GOLDS[0], GOLDS, {"one": OUTPUTS["one"]}, lowercase)
    assert scores.section(alone).tables[0].rows == [first]


def test_the_comparison_with_sacrebleu_can_fail():
    with pytest.raises(AssertionError):
        assert_scores(scored(GOLDS[:1]), False)


def test_sentence_scores_are_sacrebleus():
    found = sentences.sentence_scores(OUTPUTS["two"], GOLDS, False)
    metric = sacrebleu.metrics.CHRF()
    for value, text, *golds in zip(found, OUTPUTS["two"], *GOLDS):
        assert value == pytest.approx(metric.sentence_score(text, golds).score, abs=0.1)
