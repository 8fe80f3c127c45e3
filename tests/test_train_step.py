"""Training in bfloat16 with float32 weights: dtypes of products and attention."""

from contextlib import nullcontext
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from commands import ABD, SB, assert_two_halves_are_the_whole, load, run_train
from helpers import abd_model, live_of, sb_model, source, streams, transformer
from torch.overrides import TorchFunctionMode

from sbnmt_plugin.network import dot_product as products
from sbnmt_plugin.network import encoder
from sbnmt_plugin.network.cpu_products import bfloat16_products, widen_attention
from sbnmt_plugin.training import train_step as updates
from sbnmt_plugin.training.smoothed_loss import smoothed_loss

CPU = torch.device("cpu")
NARROW = bfloat16_products
MODELS = {"sb": sb_model, "abd": abd_model, "teacher": transformer}


class Watch(TorchFunctionMode):
    """The dtypes of products and attention."""

    def __init__(self):
        super().__init__()
        self.products, self.attention = set(), set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if func is F.linear:
            self.products.add(found.dtype)
        if func is F.scaled_dot_product_attention:
            self.attention.add(found.dtype)
        return found


def gradients(kind, narrow):
    """Return the gradients of a model's weights, flattened, and what was watched."""
    model = MODELS[kind](decoder_layers=2).float().train()
    widen_attention(model)
    with torch.no_grad():  # as they are, rounding is enough to change every choice
        for parameter in model.parameters():
            parameter.mul_(0.5)
    prev = streams(model)
    words = {"live": live_of(prev)}
    if kind == "teacher":
        prev, words = prev[::2], {}
    watch = Watch()
    with watch, bfloat16_products(CPU) if narrow else nullcontext():
        logits, _ = model(**source(model), prev_output_tokens=prev, **words)
        logits = logits.flatten(0, -2)
        labels = torch.arange(len(logits)) % 5 + 4
        loss = smoothed_loss(logits, labels, 0.1)[0].sum()
        loss.backward()
    found = [p.grad for p in model.parameters() if p.grad is not None]
    assert {x.dtype for x in found} == {loss.dtype} == {torch.float32}
    return torch.cat([x.flatten() for x in found]), watch


@pytest.mark.parametrize("kind", MODELS)
def test_products_are_bfloat16_and_weights_and_attention_float32(kind):
    expected, _ = gradients(kind, narrow=False)
    found, watch = gradients(kind, narrow=True)
    assert watch.products == {torch.bfloat16}
    assert watch.attention == {torch.float32}
    assert not torch.equal(found, expected)
    assert F.cosine_similarity(found, expected, dim=0) > 0.99


def test_the_check_of_attention_can_fail(monkeypatch):
    monkeypatch.setattr(products, "OPEN", nullcontext())
    for module in encoder, products:
        monkeypatch.setattr(module, "narrow_products", lambda x: False)
    with pytest.raises(AssertionError):
        test_products_are_bfloat16_and_weights_and_attention_float32("sb")


@pytest.mark.parametrize("family", [SB, ABD, ["--arch", "transformer"]], ids=str)
def test_it_learns_and_resumes_exactly(data, tmp_path, family):
    if family[-1] == "transformer":
        family = [*family, "--sb-direction", "l2r"]
    assert_two_halves_are_the_whole(data, tmp_path, *family, "--sb-autocast")
    narrow = load(tmp_path / "half" / "checkpoint_last.pt")["model"].values()
    assert {x.dtype for x in narrow if x.is_floating_point()} == {torch.float32}


@pytest.mark.parametrize("flag", ["--fp16", "--bf16", "--amp"])
def test_one_option_says_in_what_numbers_to_train(data, tmp_path, flag):
    with pytest.raises(ValueError, match=f"--sb-autocast and {flag} each say"):
        run_train(data, tmp_path, *SB, "--sb-autocast", flag, "--max-epoch", 1)


def products_of_a_training(data, folder):
    """Return the dtypes of its products, also those computed anew for the gradient."""
    found = set()

    def watched(*given):
        product = linear(*given)
        found.add(product.dtype)
        return product

    words = ["--sb-autocast", "--checkpoint-activations", "--max-update", 1]
    linear = F.linear
    with mock.patch.object(F, "linear", watched):
        run_train(data, folder, *SB, *words, "--no-save", "--disable-validation")
    return found


def test_what_is_computed_anew_is_narrow_too(data, tmp_path):
    assert products_of_a_training(data, tmp_path) == {torch.bfloat16}


def test_the_check_of_what_is_computed_anew_can_fail(data, tmp_path, monkeypatch):
    """Autocast is around the criterion alone."""
    monkeypatch.setattr(
        updates, "bfloat16_products", lambda *x: nullcontext() if x[1:] else NARROW(*x)
    )
    assert torch.float32 in products_of_a_training(data, tmp_path)


def narrow_there():
    """Tell whether a GPU's autocast is on where fairseq's step calls the criterion."""
    seen = []

    class Criterion:
        def __call__(self, model, sample):
            seen.append(torch.is_autocast_enabled("cuda"))

    device = torch.device("cuda")
    there = {"is_available": lambda: True, "is_bf16_supported": lambda *_: True}
    with (
        mock.patch.multiple(torch.cuda, **there),
        updates.in_bfloat16(Criterion(), device, True) as criterion,
        torch.autocast("cuda", enabled=False),
    ):
        criterion(None, None)
    return seen == [True]


def test_a_gpus_products_are_narrow_inside_of_fairseqs_step():
    """fairseq's step switches autocast off around the criterion."""
    assert narrow_there()


def test_the_check_of_a_gpus_products_can_fail(monkeypatch):
    """Autocast is around the step alone."""
    monkeypatch.setattr(
        updates, "bfloat16_products", lambda *x: NARROW(*x) if x[1:] else nullcontext()
    )
    assert not narrow_there()
