"""On a device that is not the CPU: same results, no tensor elsewhere, few questions.

The device is pretended (:mod:`pretended`): no GPU is needed.
"""

import copy

import pretended
import pytest
import torch
from batches import make_sample
from helpers import sb_model, source, transformer
from pretended import NARROW, ONCE, Device, OnDevice, move, moved, on_cpu
from searching import make_generator

from sbnmt_plugin import numerics
from sbnmt_plugin.layout import BEST, L2R, R2L, Layout
from sbnmt_plugin.network import grid
from sbnmt_plugin.search import top_k
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.training.criterion import SBLabelSmoothedCrossEntropy
from sbnmt_plugin.training.dataset import with_stream_labels

pytestmark = pytest.mark.skipif(
    not pretended.AVAILABLE, reason="this torch has no devices written in Python"
)
LENGTHS = (7, 4, 6)
FUSIONS = {
    "tanh": {"sb_lambda": 0.7},
    "relu": {"sb_lambda": 0.7},
    "linear": {"sb_lambda": 0.7, "sb_learn_lambda": True},
    "gate": {},
}
SEARCHES = {
    "both": {},
    "best partner": {"pairing": BEST},
    "one answers": {"answer": "r2l"},
    "first": {"stop": "first"},
    "bans": {"no_repeat_ngram_size": 2, "unkpen": 1.0, "min_len": 3},
    "alignment": {"print_alignment": "hard"},
    "rescored": {"rescore": 1.0},
    "teacher": {"directions": (R2L,)},
    "prefix": {"prefix": True},
}


def fused(fusion):
    return sb_model(sb_fusion=fusion, **FUSIONS[fusion])


def search(model, sentences, prefix=False, **options):
    """Answers of a search where the model lies, and how many steps it took."""
    options = {"no_repeat_ngram_size": 0, **options}
    generator = make_generator([model], **options)
    sample = {"net_input": source(model, sentences)}
    if isinstance(next(model.parameters()), OnDevice):
        sample = moved(sample)
    bound = sample["net_input"]["src_tokens"][:, -3:-1] if prefix else None
    steps = []
    step = generator._step
    generator._step = lambda *args: steps.append(1) or step(*args)
    return generator.generate([model], sample, prefix_tokens=bound), len(steps)


def model_for(options, words=700):
    one = options.get("directions", (L2R, R2L)) != (L2R, R2L)
    return transformer(words=words) if one else sb_model(words=words)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_on_a_device_gives_the_same_answers(name):
    model = model_for(SEARCHES[name]).double()
    expected, _ = search(model, LENGTHS, **SEARCHES[name])
    with Device():
        found, _ = search(move(copy.deepcopy(model)), LENGTHS, **SEARCHES[name])
    for ours, theirs in zip(found, expected):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs):
            assert all(isinstance(one[key], OnDevice) for key in ("tokens", "score"))
            assert one["tokens"].tolist() == other["tokens"].tolist()
            assert float(one["score"]) == pytest.approx(
                float(other["score"]), abs=1e-10
            )
            assert list(map(list, one["alignment"])) == list(
                map(list, other["alignment"])
            )


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("fusion", FUSIONS)
def test_a_search_runs_there_in_any_numbers(fusion, dtype):
    with Device():
        found, _ = search(move(fused(fusion).to(dtype)), LENGTHS)
    assert all(isinstance(answers[0]["tokens"], OnDevice) for answers in found)


def test_the_check_of_the_device_can_fail(monkeypatch):
    def elsewhere(self, sentences):
        return torch.arange(self.group) + sentences[:, None] * self.group

    monkeypatch.setattr(Layout, "rows_of", elsewhere)
    with pytest.raises(RuntimeError, match="on the same device, but add"):
        test_a_search_on_a_device_gives_the_same_answers("both")


@pytest.mark.parametrize("name", SEARCHES)
def test_a_step_asks_the_device_once(name):
    for sentences in (3, 12):
        with Device() as device:
            model = move(model_for(SEARCHES[name]))
            _, steps = search(model, LENGTHS[:1] * sentences, **SEARCHES[name])
        assert steps > 3
        assert len(device.synchronisations) <= steps + ONCE, device.synchronisations


def test_no_sentence_is_asked_for():
    found = []
    for sentences in (3, 12):
        with Device() as device:
            search(move(sb_model(words=700)), LENGTHS[:1] * sentences)
        found.append(device.synchronisations)
    assert found[0] == found[1]


def test_the_check_of_steps_can_fail(monkeypatch):
    done = Generator._done

    def asking(self, batch, length):
        found = done(self, batch, length)
        for _ in range(ONCE):
            found.any().item()
        return found

    monkeypatch.setattr(Generator, "_done", asking)
    with pytest.raises(AssertionError):
        test_a_step_asks_the_device_once("both")


def test_the_check_of_sentences_can_fail(monkeypatch):
    step = Generator._step

    def asking(self, batch, *args):
        for place in range(len(batch.index)):
            batch.index[place].item()
        return step(self, batch, *args)

    monkeypatch.setattr(Generator, "_step", asking)
    with pytest.raises(AssertionError):
        test_no_sentence_is_asked_for()


def test_both_ways_to_the_best_are_one():
    scores = torch.randint(0, 40, (7, 900)).float()  # many ties
    with Device():
        there = top_k.top_tokens(moved(scores), 8)
    for ours, theirs in zip(top_k.top_tokens(scores, 8), there):
        assert torch.equal(ours, theirs.inner)


def update(model, sample):
    """Loss of a batch, and gradients by name, as they lie on the CPU."""
    criterion = SBLabelSmoothedCrossEntropy(TASK, False, 0.1, 0, True)
    loss, _, _ = criterion(model, sample)
    loss.backward()
    gradients = {
        name: on_cpu(x.grad)
        for name, x in model.named_parameters()
        if x.grad is not None
    }
    return on_cpu(loss.detach()), gradients


class TASK:
    """A task as a criterion sees it."""

    class target_dictionary:
        @staticmethod
        def pad():
            return 1

    directions = (L2R, R2L)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_an_update_on_a_device_is_the_same(fusion):
    model = fused(fusion).double().eval()
    sample = with_stream_labels(make_sample(model))
    expected, gradients = update(copy.deepcopy(model), sample)
    with Device():
        loss, found = update(move(model), moved(sample))
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-10)
    assert found.keys() == gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(found[name], gradient, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("fusion", FUSIONS)
def test_an_update_runs_there_in_any_numbers(fusion, dtype):
    with Device():
        model = move(fused(fusion).to(dtype).train())
        _, gradients = update(model, moved(with_stream_labels(make_sample(model))))
    assert all(x.isfinite().all() for x in gradients.values())


def test_an_update_in_parts_is_the_same(monkeypatch):
    monkeypatch.setattr(numerics, "AT_A_TIME_ON_GPU", 30)
    assert numerics.rows_at_a_time(moved(torch.zeros(9, 13))) == 2
    test_an_update_on_a_device_is_the_same("tanh")


def test_the_check_of_an_update_can_fail(monkeypatch):
    """A mask that is made on the CPU, wherever the batch lies."""
    causal = grid.causal
    monkeypatch.setattr(
        grid, "causal", lambda padding, *rest: causal(padding.cpu(), *rest)
    )
    with pytest.raises(RuntimeError, match="on the same device"):
        test_an_update_on_a_device_is_the_same("tanh")
