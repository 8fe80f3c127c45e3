"""Length penalties: what each promises to the stop rule, and that the rule keeps it."""

import random
from dataclasses import dataclass

import pytest
import torch
from scripted import SYMBOLS, ScriptedModel, sample
from searching import gnmt, power
from torch import Tensor

from sbnmt_plugin.numerics import DEAD
from sbnmt_plugin.search import generator as generator_module
from sbnmt_plugin.search.arguments import LARGEST_ALPHA
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.search.lengths import FORMULAS
from sbnmt_plugin.search.options import SearchOptions
from sbnmt_plugin.search.penalties import LengthPenalty

ALPHAS = [0.0, 0.6, 1.0, 2.5, -0.5, -3.0, LARGEST_ALPHA, -LARGEST_ALPHA]
LONGEST = 300
ROUNDING = 1e-12  # two ways to the same score may differ in the last digits


@dataclass(frozen=True)
class EndsNow(LengthPenalty):
    """Wrong for α > 0: as if every live hypothesis ended in the next step."""

    def best_reachable(self, total: Tensor, now: Tensor, longest: Tensor) -> Tensor:
        return total / now


@dataclass(frozen=True)
class EndsLast(LengthPenalty):
    """Wrong for α < 0: as if every live hypothesis became as long as it may."""

    def best_reachable(self, total: Tensor, now: Tensor, longest: Tensor) -> Tensor:
        return total / longest


@dataclass(frozen=True)
class Hump(LengthPenalty):
    """Wrong: lp(n) is largest in the middle, and is looked at where it begins and
    ends."""

    def worth(self, length: Tensor) -> Tensor:
        n = length.to(torch.float64)
        return 1 + abs(self.alpha) * (n * (10 - n)).clamp(min=0)


WRONG = [EndsNow(alpha=2.5), EndsLast(alpha=-2.0), Hump()]


def assert_bound_holds(penalty):
    """No log-probability that is not higher, and no length that is allowed, scores
    better than the best that is said to be within reach."""
    chance = random.Random(7)
    for _ in range(200):
        now = chance.choice([chance.randint(1, 12), chance.randint(1, LONGEST)])
        longest = chance.choice([now, now + 1, chance.randint(now, LONGEST)])
        total = chance.choice([0.0, -1e-9, -chance.expovariate(0.1)])
        bound = penalty.best_reachable(
            torch.tensor([total], dtype=torch.float64),
            *(penalty.worth(torch.tensor([length])) for length in (now, longest)),
        )
        lengths = torch.arange(now, longest + 1)
        for loss in (0.0, chance.expovariate(10), chance.expovariate(0.1), -DEAD):
            final = torch.full(lengths.shape, total - loss, dtype=torch.float64)
            scores = final / penalty.worth(lengths)
            slack = ROUNDING * bound.abs()
            assert bool((scores <= bound + slack).all()), (total, now, longest)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", FORMULAS)
def test_nothing_scores_better_than_what_is_within_reach(name, alpha):
    assert_bound_holds(LengthPenalty(name, alpha))


@pytest.mark.parametrize("penalty", WRONG, ids=repr)
def test_the_check_of_what_is_within_reach_can_fail(penalty):
    with pytest.raises(AssertionError):
        assert_bound_holds(penalty)


SENTENCES = list(range(40))


def answers(penalty, beam, sharpness, wanted=None, recorder=None, **more):
    """Texts and scores of the ``wanted`` best, or of the whole pool."""
    options = SearchOptions(
        **{"beam": beam, "penalty": penalty, "max_len_b": 9, "nbest": wanted, **more}
    )
    models = [ScriptedModel(sharpness=sharpness)]
    search = Generator(models, SYMBOLS, options, recorder)
    found = search.generate(models, sample(SENTENCES))
    found = [hypotheses[:wanted] for hypotheses in found]
    texts = [[(h["direction"], *h["tokens"].tolist()) for h in all_] for all_ in found]
    return texts, [[float(h["score"]) for h in all_] for all_ in found]


def to_the_end(worst, live, *_):
    """In place of pool.finished: done when nothing lives any more."""
    return live.flatten(1).amax(1) == DEAD


def assert_stopping_changes_nothing(monkeypatch, penalty, **options):
    """What is asked for of the pool is what the search has after max_len steps.

    With a horizon, after as many as that allows; records change nothing either.
    """
    options = {"stop": "bound", **options}
    for beam, sharpness in ((2, 15.0), (2, 30.0), (4, 8.0), (4, 30.0)):
        with monkeypatch.context() as patch:
            patch.setattr(generator_module, "finished", to_the_end)
            texts, expected = answers(penalty, beam, sharpness, **options)
        recorded = 1, lambda *_: None
        for wanted in ((None,), (1,), (beam - 1,), recorded):
            stopped, scores = answers(penalty, beam, sharpness, *wanted, **options)
            wanted, *_ = wanted
            assert stopped == [text[:wanted] for text in texts]
            for some, best in zip(scores, expected):
                assert some == pytest.approx(best[:wanted])


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.5, -0.5, LARGEST_ALPHA])
@pytest.mark.parametrize("name", FORMULAS)
def test_stopping_early_never_changes_an_answer(monkeypatch, name, alpha):
    assert_stopping_changes_nothing(monkeypatch, LengthPenalty(name, alpha))


FAR = {"stop": "horizon", "max_len_b": 25}


@pytest.mark.parametrize("penalty", [power(1.0), power(2.0), gnmt(2.5)], ids=repr)
def test_stopping_early_changes_no_answer_within_the_horizon(monkeypatch, penalty):
    assert_stopping_changes_nothing(monkeypatch, penalty, **FAR)


def test_a_horizon_of_the_answers_asked_for_is_noticed(monkeypatch):
    """Instead of the whole pool's."""
    done, best = Generator._done, generator_module.best_scores

    def asked(self, batch, length):
        few = lambda *args: best(*args)[:, : self.stop_rank]  # noqa: E731
        with monkeypatch.context() as patch:
            patch.setattr(generator_module, "best_scores", few)
            return done(self, batch, length)

    monkeypatch.setattr(Generator, "_done", asked)
    with pytest.raises(AssertionError):
        assert_stopping_changes_nothing(monkeypatch, power(1.0), **FAR)


def test_those_that_will_be_rescored_are_final(monkeypatch):
    """The best of the pool that the search has after all steps."""
    monkeypatch.setattr(generator_module, "rank_anew", lambda *_: None)
    for sharpness in (8.0, 30.0):
        with monkeypatch.context() as patch:
            patch.setattr(generator_module, "finished", to_the_end)
            pool, _ = answers(gnmt(0.6), 6, sharpness)
        for count in (1, 2, 4, 7):
            options = {"rescore": 1.0, "rescore_best": count}
            found, _ = answers(gnmt(0.6), 6, sharpness, **options)
            assert [own[:count] for own in found] == [own[:count] for own in pool]


@pytest.mark.parametrize("rank", [1, 3])
def test_the_check_of_what_will_be_rescored_can_fail(monkeypatch, rank):
    monkeypatch.setattr(SearchOptions, "stop_rank", rank)
    with pytest.raises(AssertionError):
        test_those_that_will_be_rescored_are_final(monkeypatch)


@pytest.mark.parametrize("penalty", WRONG[:2], ids=repr)
def test_the_check_of_stopping_early_can_fail(monkeypatch, penalty):
    with pytest.raises(AssertionError):
        assert_stopping_changes_nothing(monkeypatch, penalty)


def test_the_check_of_what_is_asked_for_can_fail(monkeypatch):
    monkeypatch.setattr(SearchOptions, "stop_rank", 1)  # though several are wanted
    with pytest.raises(AssertionError):
        assert_stopping_changes_nothing(monkeypatch, gnmt(0.6))


def lines_decoded(monkeypatch, recorder=None, **options):
    """Per step, the sentences that had no answer yet."""
    steps = []
    step = Generator._step

    def counted(self, batch, scorers, before):
        steps.append(int((~batch.done).sum()))
        return step(self, batch, scorers, before)

    with monkeypatch.context() as patch:
        patch.setattr(Generator, "_step", counted)
        models = [ScriptedModel()]
        chosen = SearchOptions(**{"penalty": gnmt(0.6), "max_len_b": 40, **options})
        search = Generator(models, SYMBOLS, chosen, recorder)
        search.generate(models, sample(SENTENCES))
    return steps


def test_the_search_does_stop_early(monkeypatch):
    """The comparison above would mean little otherwise."""
    assert len(lines_decoded(monkeypatch, beam=2, penalty=gnmt(0.0))) < 39


def test_it_stops_earlier_where_fewer_answers_are_asked_for(monkeypatch):
    def decoded(**options):
        return sum(lines_decoded(monkeypatch, beam=8, **options))

    one, two, all_ = (decoded(nbest=n) for n in (1, 2, None))
    assert one < two < all_ == decoded(nbest=8)
    # with the whole pool in the record, in the rescoring, or as the rule
    assert decoded(nbest=1, recorder=lambda *_: None) == all_
    assert decoded(nbest=1, stop="first") == decoded(stop="first")
    options = SearchOptions(beam=8, nbest=1, rescore=0.5, rescore_best=3)
    assert options.stop_rank == 3
