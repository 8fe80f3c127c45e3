"""The search against a reference on lists: tokens, scores, directions, all exact."""

import itertools
import math

import numpy as np
import pytest
import torch
from reference import START, assert_found, search
from scripted import (
    EOS,
    NEVER,
    PAD,
    TAGS,
    UNK,
    VOCABULARY,
    ScriptedModel,
    sample,
    script_row,
)
from searching import gnmt, texts

from sbnmt_plugin import numerics
from sbnmt_plugin.layout import L2R, PAIRINGS, R2L, Layout
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.numerics import DEAD
from sbnmt_plugin.search import answers, pool, top_k
from sbnmt_plugin.search import generator as generator_module
from sbnmt_plugin.search.beam import expand
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.search.logits_processing import (
    ban_repeated_ngrams,
    longest_outputs,
)
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.penalties import LengthPenalty
from sbnmt_plugin.search.pool import Pool, finished, within_horizon
from sbnmt_plugin.search.top_k import top_in_order, top_tokens

SENTENCES = list(range(20, 32))


def symbols(directions=(L2R, R2L)):
    starts = tuple(TAGS[d] for d in directions)
    return Symbols(pad=PAD, eos=EOS, unk=UNK, starts=starts, never=NEVER)


def ours(sentences, script=None, prefix=None, lengths=None, **options):
    options.setdefault("max_len_b", 6)
    kind, alpha = options.pop("kind", "gnmt"), options.pop("alpha", 0.6)
    options["penalty"] = LengthPenalty(kind, alpha)
    if "pairing" in options:
        options["pairing"] = PAIRINGS[options["pairing"]]
    chosen = SearchOptions(**options)
    generator = Generator(
        [ScriptedModel(**(script or {}))], symbols(chosen.directions), chosen
    )
    batch = sample(sentences, lengths)
    forced = None
    if prefix is not None:
        forced = torch.tensor([[*prefix, EOS, PAD]] * len(sentences))
    return generator.generate(generator.models, batch, prefix_tokens=forced)


def reference(sentence, script=None, max_len_b=6, unkpen=0, **options):
    if "answer" in options:
        options["answer"] = {"l2r": L2R, "r2l": R2L}[options["answer"]]

    def score(direction, own, partner):
        own = [TAGS[t - START] if t < 0 else t for t in own]
        partner = [TAGS[t - START] if t < 0 else t for t in partner]
        row = script_row(sentence, direction, own, partner, **(script or {}))
        return [v - unkpen if t == UNK else v for t, v in enumerate(row)]

    return search(score, eos=EOS, never=set(NEVER), max_len=max_len_b, **options)


def assert_same(hypotheses, entries):
    assert_found(hypotheses, entries)
    for hypothesis, entry in zip(hypotheses, entries):
        scores = hypothesis["positional_scores"]
        assert len(scores) == len(entry["tokens"])
        assert float(scores.sum()) == pytest.approx(entry["total"], abs=1e-10)
        if hypothesis["partner_tokens"] is not None:
            assert hypothesis["partner_tokens"].tolist() == entry["partner"]


SETTINGS = [
    {"beam": 2},
    {"beam": 4},
    {"beam": 6},
    {"beam": 4, "pairing": "best"},
    {"beam": 6, "pairing": "best", "stop": "first"},
    {"beam": 4, "stop": "first"},
    {"beam": 4, "kind": "power", "alpha": 1.0},
    {"beam": 4, "kind": "power", "alpha": 0.0},
    {"beam": 4, "alpha": -0.5},
    {"beam": 4, "answer": "l2r"},
    {"beam": 4, "answer": "r2l"},
    {"beam": 4, "min_len": 4},
    {"beam": 4, "max_len_b": 2},
    {"beam": 4, "unkpen": 1.5},
    {"beam": 4, "prefix": [5, 4]},
    {"beam": 8, "prefix": [6, 6, 6, 6, 6, 6, 6]},
    {"beam": 4, "script": {"sharpness": 12.0}},
    {"beam": 4, "script": {"grid": 4}, "kind": "power", "alpha": 0.0},
    {"beam": 6, "script": {"grid": 2}, "kind": "power", "alpha": 0.0},
]
# long texts score best, so that only the horizon ends the search before max_len
FAR = {"max_len_b": 25, "kind": "power", "alpha": 1.0}
HORIZONS = [
    {"beam": 2, **FAR},
    {"beam": 4, **FAR},
    {"beam": 6, **FAR, "alpha": 1.5},
    {"beam": 4, **FAR, "answer": "r2l"},
    {"beam": 4, **FAR, "unkpen": 1.5},
    {"beam": 4, **FAR, "min_len": 6},
    {"beam": 4, **FAR, "script": {"sharpness": 12.0}},
]


@pytest.mark.parametrize("stop", ["horizon", "bound"])
@pytest.mark.parametrize("setting", HORIZONS, ids=str)
def test_the_horizon_is_the_references(setting, stop):
    test_the_search_equals_the_reference({**setting, "stop": stop})


@pytest.mark.parametrize("off", [-1, 1])
def test_a_horizon_that_is_off_by_one_is_noticed(monkeypatch, off):
    monkeypatch.setattr(pool, "horizon", lambda n: math.floor(1.25 * n) + 5 + off)
    with pytest.raises(AssertionError):
        test_the_horizon_is_the_references(HORIZONS[1], "horizon")


WRONG_HORIZONS = {
    "of the first that finished": lambda limit, best, length: within_horizon(
        limit, best[:, :1], length
    ),
    "of the last but one": lambda limit, best, length: within_horizon(
        limit, best[:, :-1], length
    ),
    "of those that come later": lambda limit, best, length: torch.where(
        best[:, -1] > DEAD, min(pool.horizon(length), 26), limit
    ),
}


@pytest.mark.parametrize("name", WRONG_HORIZONS)
def test_a_horizon_of_another_hypothesis_is_noticed(monkeypatch, name):
    monkeypatch.setattr(generator_module, "within_horizon", WRONG_HORIZONS[name])
    with pytest.raises(AssertionError):
        test_the_horizon_is_the_references(HORIZONS[1], "horizon")


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_search_equals_the_reference(setting):
    found = ours(SENTENCES, **setting)
    for sentence, hypotheses in zip(SENTENCES, found):
        assert_same(hypotheses, reference(sentence, **setting))


@pytest.mark.parametrize("direction", [L2R, R2L])
@pytest.mark.parametrize("beam", [1, 3])
def test_one_direction_alone_is_the_same_search(direction, beam):
    found = ours(SENTENCES, beam=beam, directions=(direction,))
    for sentence, hypotheses in zip(SENTENCES, found):
        # a script's direction is the row's place, which is 0 here
        def score(_, own, partner, sentence=sentence):
            return script_row(sentence, 0, own, partner)

        expected = search(
            score,
            eos=EOS,
            never=set(NEVER),
            beam=beam,
            max_len=6,
            directions=(direction,),
        )
        assert_same(hypotheses, expected)


def test_both_directions_win_and_ranks_change_on_these_scripts():
    """The comparison above would mean little on scripts that one direction wins."""
    found = ours(SENTENCES, beam=4)
    assert {hypotheses[0]["direction"] for hypotheses in found} == {"l2r", "r2l"}


BREAKS = {
    "pairing": (Layout, "partners", lambda self, rows: rows),
    "length penalty": (
        LengthPenalty,
        "worth",
        lambda self, n: (n.double() + 4) ** self.alpha,
    ),
    "un-reversal": (
        answers,
        "natural_order",
        lambda lengths, longest, _: np.tile(np.arange(longest), (len(lengths), 1)),
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_comparison_can_fail(name, monkeypatch):
    monkeypatch.setattr(*BREAKS[name])
    with pytest.raises(AssertionError):
        test_the_search_equals_the_reference({"beam": 4})


def test_who_is_done_may_stay(monkeypatch):
    """All leave with the last one: what has an answer takes no further hypothesis."""

    def answers():
        found = ours(SENTENCES, beam=4, stop="first", alpha=2.0)
        return [
            [(h["tokens"].tolist(), float(h["score"])) for h in hypotheses]
            for hypotheses in found
        ]

    left = answers()
    together = lambda self, done: len(done) * bool(done.all())  # noqa: E731
    monkeypatch.setattr(Generator, "_leaving", together)
    assert answers() == left


def test_the_check_of_staying_can_fail(monkeypatch):
    finish = Generator._finish

    def open_(self, batch, *args):
        batch.done = torch.zeros_like(batch.done)
        finish(self, batch, *args)

    monkeypatch.setattr(Generator, "_finish", open_)
    with pytest.raises(AssertionError):
        test_who_is_done_may_stay(monkeypatch)


def test_interaction_changes_the_scripts_answers():
    apart = ours(SENTENCES, beam=4, script={"interact": False})
    together = ours(SENTENCES, beam=4)
    assert [best for best, *_ in texts(apart)] != [best for best, *_ in texts(together)]


def test_a_wide_beam_without_interaction_finds_what_exhaustive_search_finds():
    words = [t for t in range(VOCABULARY) if t not in (*NEVER, EOS)]
    max_len = 3
    beam = 2 * len(words) ** max_len
    script = {"interact": False}
    for sentence in SENTENCES[:3]:
        every = []
        for n in range(1, max_len + 1):
            for tokens in itertools.product(words, repeat=n):
                for direction in (L2R, R2L):
                    total = 0.0
                    for i, token in enumerate([*tokens, EOS]):
                        row = script_row(
                            sentence, direction, list(tokens[:i]), [], interact=False
                        )
                        total += row[token]
                    natural = tokens if direction == L2R else tokens[::-1]
                    score = total / ((5 + n + 1) / 6) ** 0.6
                    every.append((score, [*natural, EOS]))
        every.sort(key=lambda pair: -pair[0])
        (found,) = ours([sentence], script=script, beam=beam, max_len_b=max_len)
        for (score, tokens), hypothesis in zip(every[:20], found):
            assert hypothesis["tokens"].tolist() == tokens
            assert float(hypothesis["score"]) == pytest.approx(score, abs=1e-10)


def test_a_sentence_does_not_depend_on_its_batch():
    lengths = [3, 6, 4, 8, 5, 3, 7, 9, 3, 4, 5, 6]
    options = {"beam": 4, "max_len_a": 0.9, "max_len_b": 1}
    together = ours(SENTENCES, lengths=lengths, **options)
    for sentence, length, hypotheses in zip(SENTENCES, lengths, together):
        (alone,) = ours([sentence], lengths=[length], **options)
        assert texts([alone]) == texts([hypotheses])
        longest = max(len(h["tokens"]) for h in alone)
        assert longest <= int(0.9 * length + 1) + 1


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_is_repeated(size):
    found = ours(SENTENCES, beam=4, no_repeat_ngram_size=size, max_len_b=9)
    for hypotheses in found:
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"].tolist()[:-1]
            grams = list(zip(*(tokens[i:] for i in range(size))))
            assert len(grams) == len(set(grams))


def test_banning_is_exact():
    lprobs = torch.zeros(2, 7)
    tokens = torch.tensor([[4, 5, 4], [4, 5, 6]])
    ban_repeated_ngrams(lprobs, tokens, 2, banned=1)
    assert lprobs[0].tolist() == [0, DEAD, 0, 0, 0, DEAD, 0]  # 4 5 would come again
    assert lprobs[1].tolist() == [0, DEAD, 0, 0, 0, 0, 0]


def test_a_forced_prefix_may_repeat_n_grams():
    found = ours(SENTENCES, beam=8, prefix=[6, 6, 5], no_repeat_ngram_size=1)
    for own in found:
        assert own[0]["tokens"].tolist()[:3] == [6, 6, 5]


def test_a_forced_prefix_binds_every_answer():
    found = ours(SENTENCES, beam=8, prefix=[5, 4], max_len_b=4)
    for hypotheses in found:
        assert all(h["tokens"].tolist()[:2] == [5, 4] for h in hypotheses)
    directions = {h["direction"] for hypotheses in found for h in hypotheses}
    assert directions == {"l2r", "r2l"}  # some R2L ones end up with it by themselves


def test_lengths_that_nothing_satisfies_are_refused():
    with pytest.raises(ValueError, match="--min-len must be ≤"):
        ours(SENTENCES, beam=4, min_len=3, max_len_b=2)


def test_a_limit_beyond_64_bits_is_that_of_the_positions():
    source, options = torch.tensor([[7, 8, EOS]]), SearchOptions(max_len_b=10**23)
    models = [ScriptedModel()]
    limits = longest_outputs(models, source, symbols(), options)
    assert limits.tolist() == [models[0].max_decoder_positions() - 1]


def test_no_least_length_binds_a_source_without_words():
    source = torch.tensor([[7, 8, EOS], [PAD, PAD, EOS]])
    options = SearchOptions(min_len=2, max_len_a=1.2, max_len_b=0)
    limits = longest_outputs([ScriptedModel()], source, symbols(), options)
    assert limits.tolist() == [3, 0]


def test_scores_that_are_not_numbers_are_an_error(monkeypatch):
    """With the number of the sentence."""

    def broken(sentence, *given, **more):
        return (
            [math.nan] * VOCABULARY
            if sentence == SENTENCES[1]
            else row(sentence, *given, **more)
        )

    row = script_row
    monkeypatch.setattr("scripted.script_row", broken)
    with pytest.raises(FloatingPointError, match="no hypothesis of sentence 1 has"):
        ours(SENTENCES[:2], beam=4)


def test_ties_go_to_the_lower_index():
    scores = torch.tensor([[1.0, 3.0, 2.0, 3.0, 3.0, 2.0, DEAD]])
    for count in range(1, 7):
        values, index = top_in_order(scores, count)
        assert index.tolist() == [[1, 3, 4, 2, 5, 0][:count]]
        assert values.equal(scores.gather(1, index))


@pytest.mark.parametrize("count", [1, 4, 16])
@pytest.mark.parametrize("size", [17, 2048, 2175, 2176, 4100])
def test_the_best_tokens_are_those_of_a_sort(size, count):
    """As a stable sort of the whole row: highest first, among equals the lower id."""
    generator = torch.Generator().manual_seed(size + count)
    for spread in (3, 40, 10**6):  # many ties, some, hardly any
        rows = torch.randint(spread, (5, 2, size), generator=generator).float()
        rows[0, 0, 1::3] = DEAD
        rows[1, 1] = DEAD
        values, tokens = top_tokens(rows, count)
        expected = rows.sort(dim=-1, descending=True, stable=True)
        assert values.equal(expected.values[..., :count])
        alive = values > DEAD
        assert tokens[alive].equal(expected.indices[..., :count][alive])


def test_the_check_of_the_best_tokens_can_fail(monkeypatch):
    def unordered(scores, count):  # ties as they come
        values, index = scores.flip(-1).topk(count)
        return values, scores.size(-1) - 1 - index

    monkeypatch.setattr(top_k, "top_in_order", unordered)
    with pytest.raises(AssertionError):
        test_the_best_tokens_are_those_of_a_sort(2175, 4)


def assert_normalised(following, logits):
    expected = logits.log_softmax(-1)
    close = {"rtol": 4e-16, "atol": 1e-12}
    torch.testing.assert_close(following.lprobs(), expected, **close)
    rows, tokens = torch.tensor([2, 0]), torch.tensor([1, 3])
    torch.testing.assert_close(
        following.lprob(rows, tokens), expected[rows, tokens], **close
    )


def test_a_normaliser_is_a_log_softmax(monkeypatch):
    logits = torch.randn(7, 11, dtype=torch.float64)
    monkeypatch.setattr(numerics, "AT_A_TIME", 24)  # two rows
    assert_normalised(NextTokens.of_logits(logits), logits)
    assert_normalised(NextTokens.of_lprobs(logits.log_softmax(-1)), logits)
    logits[3, 0], logits[4, 0] = -math.inf, -1e15  # from which no sum can be read
    assert_normalised(NextTokens.of_logits(logits), logits)
    with pytest.raises(AssertionError):
        assert_normalised(NextTokens.of_lprobs(logits), logits)


def test_a_row_that_is_no_number_loses_against_any_other():
    logits = torch.zeros(4, 300)
    logits[0, 7] = math.nan
    logits[2, 9] = math.inf
    for following in (NextTokens.of_logits(logits), NextTokens.of_lprobs(logits)):
        found = expand(torch.tensor([[[0.0, -50.0]], [[-60.0, -70.0]]]), following)
        assert found.parent[0, 0].tolist() == [1] * 4
        assert found.token[0, 0].tolist() == [0, 1, 2, 3]
    assert not NextTokens.of_logits(logits).norm[[0, 2]].isfinite().any()


def test_an_entry_of_the_pool_gives_way_only_to_a_better_one():
    found = Pool.empty(torch.zeros(1, 1, 1), 2)
    for length, values in ((1, [-1.0, -2.0]), (2, [-1.0, DEAD]), (3, [-0.5, -1.0])):
        score = torch.tensor([[values]], dtype=torch.float64)
        found = found.add(score, length, torch.zeros_like(score).long())
    assert found.score.tolist() == [[[-0.5, -1.0]]]
    assert found.length.tolist() == [[[3, 1]]]  # the first -1.0 has stayed


def test_a_sentence_stops_when_nothing_can_enter_its_pool():
    penalty = gnmt(1.0)
    worst = torch.tensor([-1.0, -1.0, DEAD, DEAD], dtype=torch.float64)
    live = torch.tensor([[[-1.9]], [[-2.1]], [[-9.0]], [[DEAD]]])
    longest = penalty.worth(torch.tensor([7, 7, 7, 7]))  # 2: bounds -0.95 and -1.05
    now = penalty.worth(torch.tensor(4))
    done = finished(worst, live, now, longest, penalty, stop="bound")
    assert done.tolist() == [False, True, False, True]
    done = finished(worst, live, now, longest, penalty, stop="first")
    assert done.tolist() == [True, True, False, True]
