"""Word alignment error rate: against cases worked by hand, nltk, forced decoding."""

import random
from argparse import Namespace

import pytest
import torch
from helpers import abd_model, fake_task, rnn_model, sb_model, transformer
from nets import forward
from steps import call, put

from sbnmt_plugin.layout import L2R, R2L
from sbnmt_plugin.search.options import Symbols
from sbnmt_plugin.tools import word_alignment
from sbnmt_plugin.tools.commands import aer
from sbnmt_plugin.tools.word_alignment import (
    alignment_error_rate,
    forced_attention,
    links_of,
    parse_gold,
    words_of,
)

EXACT = {"rtol": 0, "atol": 1e-10}


# the rate


def test_links_are_sure_or_possible():
    assert parse_gold("0-0 1?2 10-3") == ({(0, 0), (10, 3)}, {(0, 0), (1, 2), (10, 3)})
    assert parse_gold("") == (set(), set())
    for wrong in "0", "0--1", "a-1", "-1-2", "1-":
        with pytest.raises(ValueError, match=r"links as 0-0 1\?2, but has"):
            parse_gold(f"0-0 {wrong}")


WORKED = [
    # found, gold, 100 (1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|))
    ("0-0 1-1", "0-0 1-1", 0.0),
    ("0-1 1-0", "0-0 1-1", 100.0),
    ("0-0 1-1", "0-0 1?1", 0.0),  # (1 + 2) / (2 + 1)
    ("0-0 2-1", "0-0 1-1 2?1", 25.0),  # (1 + 2) / (2 + 2)
    ("0-0", "0-0 1-1 2-2", 50.0),  # (1 + 1) / (1 + 3)
    ("0-0 1-1 2-2", "0-0", 50.0),  # (1 + 1) / (3 + 1)
    ("", "0-0", 100.0),
]


@pytest.mark.parametrize(("found", "gold", "rate"), WORKED)
def test_cases_worked_by_hand(found, gold, rate):
    assert alignment_error_rate([parse_gold(found)[0]], [parse_gold(gold)]) == rate


def test_sentences_count_by_their_links():
    found = [parse_gold(row[0])[0] for row in WORKED]
    gold = [parse_gold(row[1]) for row in WORKED]
    # (2+0+1+1+1+1+0 + 2+0+2+2+1+1+0) / (2+2+2+2+1+3+0 + 2+2+1+2+3+1+1)
    assert alignment_error_rate(found, gold) == pytest.approx(100 * (1 - 14 / 24))
    with pytest.raises(ValueError, match="must be a link, found or sure"):
        alignment_error_rate([set()], [(set(), {(0, 0)})])


def drawn(generator, count):
    cells = [(i, j) for i in range(6) for j in range(5)]
    return set(generator.sample(cells, count))


def test_the_rate_is_nltks(rate=alignment_error_rate):
    reference = pytest.importorskip("nltk.translate.metrics").alignment_error_rate
    generator = random.Random(5)
    for _ in range(50):
        sure = drawn(generator, generator.randint(1, 6))
        possible = sure | drawn(generator, generator.randint(0, 9))
        found = drawn(generator, generator.randint(1, 8))
        expected = 100 * reference(sure, found, possible)
        ours = rate([found], [(sure, possible)])
        assert ours == pytest.approx(expected, abs=1e-9)


def test_the_comparison_with_nltk_can_fail():
    """Possible links that are taken for wrong ones."""
    with pytest.raises(AssertionError):
        test_the_rate_is_nltks(
            lambda found, gold: alignment_error_rate(found, [(s, s) for s, _ in gold])
        )


# from attention to links


def test_tokens_are_words_again():
    assert words_of("a@@ b c@@ d@@ e") == [0, 0, 1, 1, 1]
    assert words_of("a b") == [0, 1]
    assert words_of("") == []


def test_a_source_word_has_the_sum_and_a_target_word_the_mean():
    source, target = words_of("a@@ b c"), words_of("x@@ y z")
    weights = torch.tensor(
        [
            [0.30, 0.30, 0.30, 0.10],  # x: ab 0.6, c 0.3
            [0.10, 0.20, 0.50, 0.20],  # y: ab 0.3, c 0.5; xy: ab 0.45, c 0.4
            [0.10, 0.05, 0.20, 0.65],  # z: c, for </s> is no word
            [1.00, 0.00, 0.00, 0.00],  # </s> has no link
        ]
    )
    assert links_of(weights, source, target) == {(0, 0), (1, 1)}
    assert links_of(weights, [], target) == set() == links_of(weights, source, [])


# forced decoding


INPUTS = ["w1 w2 w3", "w4 w1", "w5 w6 w7 w8", "w2 w2"]
TARGETS = ["w0 w1", "w3 w2 w1 w0", "w4", "w5 w6 w7"]


def forced(model, directions=(L2R,), most=(99, 99)):
    """(T, S) of every sentence."""
    task = fake_task()
    words = task.target_dictionary
    task.symbols = Symbols.of(words, directions)
    task.directions = directions
    translator = Namespace(task=task, models=[model], cuda=False, max_positions=most)
    return [*forced_attention(translator, INPUTS, TARGETS)]


@pytest.mark.parametrize(
    ("most", "said"), [((4, 9), "--input, line 3"), ((9, 4), "--reference, line 2")]
)
def test_a_line_beyond_the_positions_is_named(most, said):
    with pytest.raises(ValueError, match=rf"^{said}, must have at most 4 .* has 5: le"):
        forced(sb_model(), (L2R, R2L), most)


def rows_of(line, words):
    return words.encode_line(line, add_if_not_exist=False).long()


@pytest.mark.parametrize("direction", [L2R, R2L])
def test_forced_attention_is_the_teacher_forced_one(direction):
    model = rnn_model()
    words = fake_task().target_dictionary
    for found, source, target in zip(
        forced(model, (direction,)), INPUTS, TARGETS, strict=True
    ):
        natural = rows_of(target, words)[:-1]
        text = natural if direction == L2R else natural.flip(0)
        prev = torch.cat([torch.tensor([words.eos()]), text])[None]
        tokens = {"src_tokens": rows_of(source, words)[None], "src_lengths": None}
        _, expected = forward(model, prev, tokens)
        expected = expected[0, : len(natural)]
        if direction == R2L:
            expected = expected.flip(0)
        torch.testing.assert_close(found, expected, **EXACT)


def test_attention_of_the_step_after_is_noticed(monkeypatch):
    """The state that has read a word, instead of the one that writes it."""
    right = word_alignment.attention_of

    def later(*given):
        return right(*given).roll(-1, 1)

    monkeypatch.setattr(word_alignment, "attention_of", later)
    with pytest.raises(AssertionError):
        test_forced_attention_is_the_teacher_forced_one(L2R)


@pytest.mark.parametrize("make", [sb_model, abd_model, transformer, rnn_model])
def test_every_family_gives_attention_to_the_source(make):
    directions = (L2R, R2L) if make in (sb_model, abd_model) else (L2R,)
    for found, source, target in zip(forced(make(), directions), INPUTS, TARGETS):
        assert found.shape == (len(target.split()), len(source.split()) + 1)
        torch.testing.assert_close(
            found.sum(1), torch.ones(len(found), dtype=found.dtype), **EXACT
        )


def test_a_model_without_attention_is_refused(monkeypatch):
    model = rnn_model()
    monkeypatch.setattr(model.decoder, "step", lambda *_: (None, None))
    with pytest.raises(ValueError, match="gives attention to the source, but"):
        forced(model)


# the step


def run_aer(folder, gold, *words):
    files = {"input": ["w1 w2 w3", "w4 w5"], "reference": ["W1 W2 W3", "W4 W5"]}
    command = [aer, *words]
    for flag, lines in {**files, "gold": gold}.items():
        command += [f"--{flag}", put(folder / flag, *lines)]
    call(*command)


def test_the_step_prints_and_writes_the_rate(data, teacher, tmp_path, capsys):
    words = [data, "--path", teacher, "--sb-direction", "r2l", "--cpu"]
    words += ["--output", tmp_path / "links", "--json", tmp_path / "aer.json"]
    run_aer(tmp_path, ["0-0 1-1 2-2", "0-0 1?1"], *words)
    printed = capsys.readouterr().out
    links = (tmp_path / "links").read_text().splitlines()
    assert [len(line.split()) for line in links] == [3, 2]
    found = [parse_gold(line)[0] for line in links]
    gold = [parse_gold("0-0 1-1 2-2"), parse_gold("0-0 1?1")]
    assert f"AER = {alignment_error_rate(found, gold):.2f}" in printed
    assert '"AER"' in (tmp_path / "aer.json").read_text()


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        (["0-0", "0-9"], "gold, line 2, must link words .* the target 2, but has 0-9"),
        (["3-0", "0-0"], "gold, line 1, .* the source has 3 .* has 3-0: align"),
        (["0-0", "x"], "gold, line 2, must hold links as"),
        (["0-0"], "gold must have as many lines as"),
    ],
)
def test_gold_that_does_not_fit_is_refused(gold, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run_aer(tmp_path, gold, "data", "--path", "none")
