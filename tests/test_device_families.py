"""Every family, and every way to train one, on a device that is not the CPU.

As :mod:`test_device` has it of SB-NMT's searches.  What is compared was computed twice,
on the CPU and there, from the same numbers.
"""

import copy

import pretended
import pytest
import torch
from helpers import sb_model
from nets import FAMILIES, answers_of, batch, criterion_of, net_of
from pretended import ONCE, Device, lie_on_the_cpu, move, moved, on_cpu
from searching import texts

from sbnmt_plugin import numerics
from sbnmt_plugin.families.enat import decoder as enat_decoder
from sbnmt_plugin.network import grid
from sbnmt_plugin.training import read_bits as reading
from sbnmt_plugin.training.criterion import SBLabelSmoothedCrossEntropy

pytestmark = [pretended.needed, pytest.mark.usefixtures("float64_fairseq")]
# questions and copies of an update, of whatever size
UPDATE = {"sb": 1, "abd": 3, "ba": 3, "two-way": 6, "enat": 1}
PAD = 1


WAYS = {
    "shifted": {"sb_future_shift": True},
    "a reader": {"sb_reader": True, "sb_future_shift": True},
    "all dropped": {
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "activation_dropout": 0.1,
        "sb_future_dropout": 0.3,
    },
}


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


def update(model, sample):
    """Loss of a batch, and gradients by name, as they lie on the CPU."""
    loss, _, _ = criterion_of(model)(model, sample)
    loss.backward()
    parts = {name: x.grad for name, x in model.named_parameters()}
    found = {name: on_cpu(x) for name, x in parts.items() if x is not None}
    return {"loss": on_cpu(loss.detach()), **found}


def test_an_update_on_a_device_is_the_same(family):
    model = FAMILIES[family]()
    expected = update(copy.deepcopy(model), batch(model))
    with Device() as device:
        found = update(move(model), moved(batch(model)))
    assert found.keys() == expected.keys()
    for name, x in expected.items():
        torch.testing.assert_close(found[name], x, rtol=0, atol=1e-10)
    waits = device.synchronisations
    assert len(waits) <= UPDATE[family.split()[0]], waits


def test_a_loss_that_asks_the_device_is_noticed(monkeypatch):
    placed = SBLabelSmoothedCrossEntropy.placed

    def asking(self, scores, labels, live):
        return placed(
            self, scores, labels, labels.t().flatten().ne(PAD).nonzero()[:, 0]
        )

    monkeypatch.setattr(SBLabelSmoothedCrossEntropy, "placed", asking)
    with pytest.raises(AssertionError, match="nonzero"):
        test_an_update_on_a_device_is_the_same("sb tanh")


def test_an_update_in_parts_is_the_same(monkeypatch):
    monkeypatch.setattr(numerics, "AT_A_TIME_ON_GPU", 30)
    assert numerics.rows_at_a_time(moved(torch.zeros(9, 13))) == 2
    test_an_update_on_a_device_is_the_same("sb tanh")


def test_a_mask_of_another_device_is_noticed(monkeypatch):
    right = enat_decoder.stretch_weights

    def elsewhere(*given, **more):
        return on_cpu(right(*given, **more))

    monkeypatch.setattr(enat_decoder, "stretch_weights", elsewhere)
    with pytest.raises(RuntimeError, match="on the same device"):
        test_an_update_on_a_device_is_the_same("enat copy")


def test_the_check_of_an_update_can_fail(monkeypatch):
    """A mask that is made on the CPU, wherever the batch lies."""
    causal = grid.causal
    monkeypatch.setattr(
        grid, "causal", lambda padding, *rest: causal(padding.cpu(), *rest)
    )
    with pytest.raises(RuntimeError, match="on the same device"):
        test_an_update_on_a_device_is_the_same("sb tanh")


def test_an_update_runs_there_in_narrow_numbers(family):
    """Of bfloat16, in which a CPU alone computes otherwise."""
    model = FAMILIES[family]().bfloat16().train()
    with Device():
        found = update(move(model), moved(batch(model)))
    assert all(x.isfinite().all() for x in found.values())


def test_a_search_on_a_device_gives_the_same_answers(family):
    model = FAMILIES[family]()
    ba = {"print_alignment": "hard"} if family.startswith("ba") else {}
    expected = answers_of(model, net_of(model), **ba)
    with Device() as device:
        there = move(copy.deepcopy(model))
        found = answers_of(there, moved(net_of(model)), **ba)
        waits = len(device.synchronisations)
    assert lie_on_the_cpu(found)
    assert texts(found) == texts(expected)
    for ours, theirs in zip(found, expected):
        for one, other in zip(ours, theirs):
            assert float(one["score"]) == pytest.approx(float(other["score"]), abs=1e-9)
            if "partner_tokens" in one and one["partner_tokens"] is not None:
                read = one["partner_tokens"].tolist()
                assert read == other["partner_tokens"].tolist()
    longest = max(len(one["tokens"]) for ours in found for one in ours)
    assert waits <= 2 * longest + 2 * ONCE


def test_a_search_runs_there_in_narrow_numbers(family):
    model = FAMILIES[family]().bfloat16()
    with Device():
        found = answers_of(move(model), moved(net_of(model)))
    assert lie_on_the_cpu(found)


@pytest.mark.parametrize("way", WAYS)
def test_an_update_may_drop_and_shift(way):
    model = sb_model(sb_lambda=0.7, **WAYS[way]).train()
    with Device() as device:
        found = update(move(model), moved(batch(model)))
    assert all(x.isfinite().all() for x in found.values())
    assert len(device.synchronisations) <= UPDATE["sb"]


def test_what_is_read_is_the_same_there():
    model = sb_model(sb_lambda=0.7)
    sample = batch(model)
    expected = reading.read_bits(model, [sample], PAD)
    with Device():
        found = reading.read_bits(move(copy.deepcopy(model)), [moved(sample)], PAD)
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_place_of_another_device_is_noticed(monkeypatch):
    def elsewhere(label, pad):
        real = label.ne(pad)
        late = torch.arange(label.size(1)) >= real.sum(-1, keepdim=True) // 2
        return real & ~late, real & late

    monkeypatch.setattr(reading, "halves", elsewhere)
    with pytest.raises(RuntimeError, match="on the same device"):
        test_what_is_read_is_the_same_there()
