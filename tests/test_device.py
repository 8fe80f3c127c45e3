"""On a device that is not the CPU: same results, no tensor elsewhere, few questions.

The device is pretended (:mod:`pretended`): no GPU is needed.
"""

import copy

import pretended
import pytest
import torch
from helpers import abd_model, sb_model, source, transformer
from pretended import ONCE, Device, OnDevice, lie_on_the_cpu, move, moved
from searching import generate, make_generator

from sbnmt_plugin.layout import BEST, L2R, R2L, Layout
from sbnmt_plugin.search import top_k
from sbnmt_plugin.search.generator import Generator

pytestmark = pretended.needed
LENGTHS = (7, 4, 6)
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
            assert lie_on_the_cpu([[one]])
            assert one["tokens"].tolist() == other["tokens"].tolist()
            assert float(one["score"]) == pytest.approx(
                float(other["score"]), abs=1e-10
            )
            assert list(map(list, one["alignment"])) == list(
                map(list, other["alignment"])
            )


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


@pytest.mark.parametrize("make", [sb_model, abd_model])
def test_no_sentence_is_asked_for(make):
    found = []
    for sentences in (3, 12):
        model = make(words=700)
        net_input = source(model, LENGTHS[:1] * sentences)
        with Device() as device:
            generate([move(model)], moved(net_input), no_repeat_ngram_size=0)
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
        test_no_sentence_is_asked_for(sb_model)


def test_both_ways_to_the_best_are_one():
    scores = torch.randint(0, 40, (7, 900)).float()  # many ties
    with Device():
        there = top_k.top_tokens(moved(scores), 8)
    for ours, theirs in zip(top_k.top_tokens(scores, 8), there):
        assert torch.equal(ours, theirs.inner)
