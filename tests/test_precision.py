"""Decoding with bfloat16 weights: close to float32, packed or not."""

import pytest
import torch
from helpers import live_of, sb_model, source, streams

from sbnmt_plugin.network import precision
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.network.precision import can_pack, pack, to_bfloat16

STEP = 2.0**-8  # the relative rounding of a bfloat16 number


def lprobs(model, prev):
    with torch.no_grad():
        logits, _ = model(**source(model), prev_output_tokens=prev, live=live_of(prev))
    return NextTokens.of_logits(logits).lprobs().float()


def plain_model():
    return sb_model(sb_lambda=0.7).float()


def assert_close_to_float32(monkeypatch, packed):
    """Stated tolerance: 30 roundings of the largest log-probability."""
    if not packed:
        monkeypatch.setattr(precision, "can_pack", lambda: False)
    model = plain_model()
    prev = streams(model)
    expected = lprobs(model, prev)
    to_bfloat16(model)
    assert all(p.dtype == torch.bfloat16 for p in model.parameters())
    found = lprobs(model, prev)
    assert not torch.equal(found, expected)
    allowed = 30 * STEP * float(expected.abs().max())
    assert float((found - expected).abs().max()) < allowed


@pytest.mark.parametrize("packed", [False, True])
def test_bfloat16_is_close_to_float32(monkeypatch, packed):
    if packed and not can_pack():
        pytest.skip("no packed bfloat16 products here")
    assert_close_to_float32(monkeypatch, packed)


def test_the_precision_check_can_fail(monkeypatch):
    def halve(linear):
        linear.weight.data *= 0.5

    monkeypatch.setattr(precision, "can_pack", lambda: True)
    monkeypatch.setattr(precision, "pack", halve)
    with pytest.raises(AssertionError):
        assert_close_to_float32(monkeypatch, True)


@pytest.mark.skipif(not can_pack(), reason="no packed bfloat16 products here")
@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_layer_gives_what_the_layer_gives(bias):
    torch.manual_seed(2)
    layer = torch.nn.Linear(40, 24, bias=bias).bfloat16()
    inputs = torch.randn(3, 5, 40).bfloat16()
    with torch.no_grad():
        expected = layer(inputs)
        pack(layer)
        found = layer(inputs)
    assert found.shape == expected.shape == (3, 5, 24)
    torch.testing.assert_close(found, expected, rtol=2 * STEP, atol=2 * STEP)


def test_weights_keep_their_names():
    model = plain_model()
    names = list(model.state_dict())
    assert list(to_bfloat16(model).state_dict()) == names
