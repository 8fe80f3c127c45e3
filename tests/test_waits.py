"""The search asks the device at most once a step, and never for a single sentence."""

import pytest
import torch
from helpers import sb_model, source, transformer
from test_decoding import make_generator
from waits import Waits

from sbnmt_plugin.layout import BEST, L2R, R2L
from sbnmt_plugin.search import top_k
from sbnmt_plugin.search.generator import Generator

ONCE = 18  # a batch: fairseq's encoder and positions, lengths, symbols, the answers
LENGTHS = (7, 4, 6)
SEARCHES = {
    "both": {},
    "best partner": {"pairing": BEST},
    "one answers": {"answer": "r2l"},
    "first": {"stop": "first"},
    "bans": {"no_repeat_ngram_size": 2, "unkpen": 1.0, "min_len": 3},
    "teacher": {"directions": (R2L,)},
    "prefix": {"prefix": True},
}


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch):
    """Take the ways that are taken where asking means waiting."""
    monkeypatch.setattr(top_k, "free_to_ask", lambda scores: False)


def questions(sentences, prefix=False, words=700, **options):
    """What the device was asked in a search of many sentences, and its steps."""
    options = {"no_repeat_ngram_size": 0, **options}
    one = options.get("directions", (L2R, R2L)) != (L2R, R2L)
    model = transformer(words=words) if one else sb_model(words=words)
    generator = make_generator([model], **options)
    sample = {"net_input": source(model, LENGTHS[:1] * sentences)}
    bound = sample["net_input"]["src_tokens"][:, :2] if prefix else None
    steps = []
    step = generator._step
    generator._step = lambda *args: steps.append(1) or step(*args)
    with Waits() as waits:
        generator.generate([model], sample, prefix_tokens=bound)
    return waits, len(steps)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_step_asks_the_device_once(name):
    for sentences in (3, 12):
        waits, steps = questions(sentences, **SEARCHES[name])
        assert steps > 3
        assert len(waits.found) <= steps + ONCE, waits.found


def assert_no_sentence_is_asked_for():
    (few, steps), (many, as_many) = questions(3), questions(12)
    assert steps == as_many
    assert few.found == many.found


def test_no_sentence_is_asked_for():
    assert_no_sentence_is_asked_for()


def test_the_check_of_steps_can_fail(monkeypatch):
    done = Generator._done

    def asking(self, batch, length):
        found = done(self, batch, length)
        assert int(found.sum()) >= 0
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
        assert_no_sentence_is_asked_for()


def test_both_ways_to_the_best_are_one(monkeypatch):
    scores = torch.randint(0, 40, (7, 900)).float()  # many ties
    waiting = top_k.top_tokens(scores, 8)
    monkeypatch.undo()
    for ours, theirs in zip(top_k.top_tokens(scores, 8), waiting):
        assert torch.equal(ours, theirs)
