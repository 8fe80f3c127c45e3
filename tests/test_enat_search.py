"""ENAT's search against one sentence and one length at a time, in float64."""

import math
from argparse import Namespace

import pretended
import pytest
import torch
from helpers import enat_model, sb_model, transformer
from nets import (
    EOS,
    NEVER,
    PAD,
    ROUGH,
    SYMBOLS,
    lookup,
    net_of,
    options,
    searched,
)
from pretended import Device, move, moved
from searching import gnmt, power
from torch.nn.functional import pad

from sbnmt_plugin.families.enat import search as parallel
from sbnmt_plugin.families.enat.search import ParallelGenerator, Teacher

pytestmark = pytest.mark.usefixtures("float64_fairseq")


def slow_search(model, asked, b, led=None):
    """Hypotheses of sentence b, best first: (tokens, score), a length at a time."""
    net = net_of(model)
    words = net["src_tokens"][b][net["src_tokens"][b].ne(PAD)]
    rough = lookup()[b][: ROUGH[b]]
    inputs = rough if model.reads_lookup else words
    alpha = 6 / 5  # what enat_model has counted
    middle = math.floor(alpha * len(inputs) + 0.5)
    most = int(asked.max_len_a * len(words) + asked.max_len_b) + 1
    around = (asked.beam - 1) // 2
    lengths = []
    for length in range(middle - around, middle + around + 1):
        length = min(max(length, 2, asked.min_len + 1), most)
        if length not in lengths:
            lengths.append(length)
    found = []
    for length in lengths:
        prev = torch.full((1, length), EOS)
        given = {"lookup_tokens": rough[None]} if model.reads_lookup else {}
        scores, _ = model(words[None], None, prev, **given)
        lprobs = scores[0].log_softmax(-1)
        tokens, total = [], 0.0
        for row in lprobs[:-1]:
            best = max(
                (v for v in range(len(row)) if v not in (*NEVER, EOS)),
                key=lambda v, row=row: float(row[v]),
            )
            tokens.append(best)
            total += float(row[best])
        tokens.append(EOS)
        total += float(lprobs[-1, EOS])
        if led is not None:
            teacher = led.model
            start = torch.tensor([[EOS, *tokens[:-1]]])
            scores, _ = teacher(words[None], torch.tensor([len(words)]), start)
            rows = scores[0].log_softmax(-1)
            total = sum(float(row[v]) for row, v in zip(rows, tokens))
        worth = asked.penalty.worth(torch.tensor(length))
        found.append((tokens, float(total) / float(worth)))
    return sorted(found, key=lambda pair: -pair[1])


def teacher():
    return Teacher(transformer(seed=3), SYMBOLS)


ASKED = {
    "one": {"beam": 1},
    "five": {},
    "nine": {"beam": 9, "penalty": power(1.0)},
    "teacher": {"beam": 9, "teacher": True},
    "short": {"max_len_a": 0.5, "max_len_b": 1, "penalty": gnmt(0.6)},
    "long": {"min_len": 6},
}


def assert_search_is_right(model, asked, led=None):
    for b, own in enumerate(searched(model, asked, led=led)):
        expected = slow_search(model, asked, b, led)
        assert [h["tokens"].tolist() for h in own] == [x for x, _ in expected]
        for hypothesis, (_, score) in zip(own, expected):
            assert float(hypothesis["score"]) == pytest.approx(score, abs=1e-9)
            parts = hypothesis["positional_scores"].sum()
            assert float(parts) == pytest.approx(float(hypothesis["total"]))


def asked_for(name):
    """Options of a search, and the teacher that leads it, or None."""
    given = dict(ASKED[name])
    led = teacher() if given.pop("teacher", False) else None
    return options(**given), led


@pytest.mark.parametrize("given", ["copy", "map", "phrase"])
@pytest.mark.parametrize("name", ASKED)
def test_the_search_is_a_loop_over_lengths(given, name):
    assert_search_is_right(enat_model(given), *asked_for(name))


def test_candidates_that_change_sentences_are_noticed(monkeypatch):
    right = torch.Tensor.repeat_interleave

    def turned(self, count, *others):
        return right(self, count, *others).roll(1)

    monkeypatch.setattr(torch.Tensor, "repeat_interleave", turned)
    with pytest.raises(AssertionError):
        assert_search_is_right(enat_model(), *asked_for("five"))


def test_a_teacher_that_reads_other_sentences_is_noticed():
    asked, led = asked_for("teacher")

    class Turned(Teacher):
        def __call__(self, net, *others):
            turned = {k: v.flip(0) for k, v in net.items()}
            return super().__call__(turned, *others)

    with pytest.raises(AssertionError):
        turned = Turned(led.model, SYMBOLS)
        assert_search_is_right(enat_model("copy"), asked, turned)


def test_a_batch_calls_the_decoder_once():
    model, calls = enat_model(), []
    for layer in model.decoder.layers:
        layer.fc1.register_forward_hook(lambda *others: calls.append(1))
    encoder = []
    model.encoder.layers[0].fc1.register_forward_hook(lambda *x: encoder.append(1))
    searched(model, options(beam=9))
    assert (len(calls), len(encoder)) == (len(model.decoder.layers), 1)


def test_logits_in_parts_are_the_same(monkeypatch):
    model, asked = enat_model(), options(beam=9)
    whole = searched(model, asked)
    monkeypatch.setattr(parallel, "LOGITS_AT_A_TIME", 1)
    for before, after in zip(whole, searched(model, asked)):
        for a, b in zip(before, after):
            assert torch.equal(a["tokens"], b["tokens"])
            torch.testing.assert_close(a["score"], b["score"], rtol=0, atol=1e-12)


def test_an_even_beam_is_rounded_down_with_a_warning(caplog):
    model = enat_model()
    four, three = (searched(model, options(beam=beam)) for beam in (4, 3))
    assert [len(x) for x in four] == [len(x) for x in three]
    assert max(map(len, four)) == 3
    assert "--beam 4 is even" in caplog.text


def test_a_sentence_without_words_gets_an_answer():
    """Nothing but </s> to be read, and a table that has found nothing."""
    model = enat_model()
    net = {"src_tokens": torch.tensor([[EOS]]), "src_lengths": torch.tensor([1])}
    net["lookup_tokens"] = torch.tensor([[EOS]])
    (own,) = searched(model, options(), net)
    assert own[0]["tokens"][-1] == EOS


def test_numbers_that_are_none_are_an_error():
    model = enat_model()
    model.decoder.output_projection.weight.data.fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="finite score"):
        searched(model, options())


@pytest.mark.parametrize(
    "change, words",
    [
        ({"no_repeat_ngram_size": 2}, "--no-repeat-ngram-size"),
        ({"stop": "first"}, "--sb-stop first"),
        ({"unkpen": 1.0}, "--unkpen"),
        ({"print_alignment": "hard"}, "--print-alignment"),
    ],
)
def test_options_for_words_in_turn_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        ParallelGenerator([enat_model()], SYMBOLS, options(**change))


def test_ensembles_traces_prefixes_and_constraints_are_refused():
    model = enat_model()
    with pytest.raises(ValueError, match="an ensemble"):
        ParallelGenerator([model, model], SYMBOLS, options())
    with pytest.raises(ValueError, match="--sb-trace"):
        ParallelGenerator([model], SYMBOLS, options(), tracer=object())
    search = ParallelGenerator([model], SYMBOLS, options())
    batch, some = {"net_input": net_of(model)}, torch.tensor([[4]] * 3)
    with pytest.raises(ValueError, match="--prefix-size"):
        search.generate([model], batch, prefix_tokens=some)
    with pytest.raises(ValueError, match="--constraints"):
        search.generate([model], batch, constraints=some)


def test_a_teacher_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="--nat-teacher must be a Transformer, wh"):
        Teacher(enat_model(), SYMBOLS)
    Teacher(sb_model(), SYMBOLS)  # scores texts, too; its direction is checked before


def test_a_teacher_limits_lengths():
    """Learned positions have no more rows."""
    few = {"decoder_learned_pos": True, "max_target_positions": 6}
    led = Teacher(transformer(**few), SYMBOLS)
    found = searched(enat_model(), options(), led=led)
    assert max(len(h["tokens"]) for own in found for h in own) == 6


def test_a_teacher_of_short_sources_is_refused():
    search = ParallelGenerator([enat_model()], SYMBOLS, options())
    loaded = {"t.pt": Teacher(transformer(max_source_positions=20), SYMBOLS)}
    cfg = Namespace(nat_teacher="t.pt")
    search.prepare(Namespace(cfg=cfg, loaded=loaded, max_positions=lambda: (20, 20)))
    task = Namespace(cfg=cfg, loaded=loaded, max_positions=lambda: (21, 21))
    with pytest.raises(ValueError, match=r"reads 20 .* --max-source-positions 20"):
        search.prepare(task)


def test_a_recorder_is_told():
    model, told = enat_model(), []
    search = ParallelGenerator(
        [model], SYMBOLS, options(), recorder=lambda *x: told.append(x)
    )
    sample = {"net_input": net_of(model)}
    answers = search.generate([model], sample)
    ((given, records),) = told
    assert given is sample
    best = [own[0] for own in answers]
    assert [record for _, record in records] == [{"l2r": h} for h in best]


NET = net_of(enat_model("copy"))


def synchronisations(times):
    """How often a led search waits for the device, with so many times the sentences."""
    model = enat_model("copy")
    with Device() as device:
        net = {name: x.repeat(times, *[1] * (x.dim() - 1)) for name, x in NET.items()}
        net = moved({"net_input": net})["net_input"]
        search = ParallelGenerator([move(model)], SYMBOLS, options())
        search.teacher = Teacher(move(transformer(seed=3)), SYMBOLS)
        device.synchronisations.clear()
        search.generate([model], {"net_input": net})
        return len(device.synchronisations)


@pretended.needed
def test_a_teacher_waits_for_the_device_once_a_batch():
    assert synchronisations(1) == synchronisations(4)


@pretended.needed
def test_a_teacher_that_waits_for_every_sentence_is_noticed(monkeypatch):
    score = Teacher.__call__

    def one_by_one(self, net, tokens, *others):
        rows = tokens.split(len(tokens) // len(net["src_tokens"]))
        parts = zip(*(x.split(1) for x in net.values()))
        nets = [dict(zip(net, part)) for part in parts]
        found = [score(self, *pair, *others) for pair in zip(nets, rows)]
        return torch.cat([pad(x, (0, tokens.size(1) - x.size(1))) for x in found])

    monkeypatch.setattr(Teacher, "__call__", one_by_one)
    assert synchronisations(1) < synchronisations(4)
