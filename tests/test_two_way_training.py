"""The two-way model's loss, its sizes, which parameters learn, and what is refused."""

from argparse import Namespace
from functools import partial

import pytest
import torch
from fairseq.logging import metrics
from helpers import fake_task, registered, rnn_model, two_way_model
from nets import (
    EOS,
    EPSILON,
    EXACT,
    LENGTHS,
    PAD,
    STEPS,
    batch,
    both,
    criterion_of,
    net,
    sentences,
)

from sbnmt_plugin.families.two_way.criterion import TwoWayCrossEntropy
from sbnmt_plugin.families.two_way.model import TwoWayModel

pytestmark = pytest.mark.usefixtures("float64_fairseq")


built = partial(registered, TwoWayModel)


def slow_losses(model):
    """The formula, label by label: -log p smoothed, of e and of f."""
    sums = [0, 0]
    for _, words, prev in sentences():
        sides = both(model, net(words[None]), prev[None])
        texts = torch.cat([prev[1:], torch.tensor([EOS])]), words
        for place, (lprobs, text) in enumerate(zip(sides, texts)):
            for row, label in zip(lprobs[0], text):
                each = EPSILON / (len(row) - 1)
                loss = -(1 - EPSILON - each) * row[label] - each * row.sum()
                sums[place] = sums[place] + loss
    return sums


def test_the_loss_is_the_sum_over_both_texts():
    """Property 6: the sum of both, and so is the gradient of all parameters."""
    model = two_way_model()
    loss, size, log = criterion_of(model)(model, batch(model))
    assert size == log["ntokens"] == sum(LENGTHS) + sum(STEPS)
    forth, back = slow_losses(model)
    torch.testing.assert_close(loss, forth + back, **EXACT)
    torch.testing.assert_close(log["loss_forth"], forth.detach(), **EXACT)
    torch.testing.assert_close(log["loss_back"], back.detach(), **EXACT)
    names, parameters = zip(*model.named_parameters())
    ours, *parts = (
        torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        for value in (loss, forth, back)
    )
    for name, found, *sides in zip(names, ours, *parts):
        assert found is not None, f"{name} is idle"
        expected = sum(side for side in sides if side is not None)
        torch.testing.assert_close(found, expected, **EXACT)


def test_what_is_logged_is_of_both_texts_and_adds_up():
    model = two_way_model()
    _, _, log = criterion_of(model)(model, batch(model))
    with metrics.aggregate(new_root=True) as values:
        TwoWayCrossEntropy.reduce_metrics([log, log])
    found = values.get_smoothed_values()
    labels = {name: log[f"labels_{name}"] for name in ("forth", "back")}
    assert labels == {"forth": sum(STEPS), "back": sum(LENGTHS)}
    whole = sum(found[f"loss_{name}"] * count for name, count in labels.items())
    assert whole / sum(labels.values()) == pytest.approx(found["loss"], abs=2e-3)
    assert not [name for name in found if "l2r" in name]


def test_a_readout_that_is_left_out_is_noticed(monkeypatch):
    right = TwoWayCrossEntropy.placed

    def forth_alone(self, scores, *places):
        back = scores.size(-1) == len(two_way_model().encoder.dictionary)
        return right(self, scores.detach() if back else scores, *places)

    monkeypatch.setattr(TwoWayCrossEntropy, "placed", forth_alone)
    with pytest.raises(AssertionError):
        test_the_loss_is_the_sum_over_both_texts()


def test_each_criterion_is_for_its_own_models():
    model = rnn_model()
    with pytest.raises(ValueError, match="two_way_cross_entropy is for --arch two_way"):
        criterion_of(two_way_model())(model, batch(model))
    model = two_way_model().train()
    with pytest.raises(ValueError, match="train it with --criterion two_way_cross"):
        model(**batch(model)["net_input"])
    with pytest.raises(ValueError, match="two_way_cross_entropy needs the streams"):
        TwoWayCrossEntropy(fake_task(), False, 0.0)


# sizes


def test_the_papers_sizes_have_the_parameters_of_their_formulas():
    """Property 8: 5Z (2C + 2Z + 1) of the grid, and readouts of Z."""
    channels, units, words, sources = 512, 750, 40, 50
    with torch.device("meta"):
        model = built("two_way", words - 6, sources - 6)
    grid = sum(p.numel() for p in model.decoder.grid.parameters())
    assert grid == 9_468_750 == 5 * units * (2 * channels + 2 * units + 1)
    layer = 4 * (channels + 1) * channels + 4 * channels  # attention, norms
    layer += (channels + 1) * 2048 + (2048 + 1) * channels
    axes = 2 * 4 * layer + (words + sources) * channels
    readouts = (units + 1) * (words + sources)
    assert sum(p.numel() for p in model.parameters()) == axes + grid + readouts


def test_the_forget_gate_begins_open():
    model = built("two_way_tiny")
    biases = model.decoder.grid.source.bias.unflatten(0, (5, 64))
    assert biases[1].eq(1).all() and not biases[[0, 2, 3, 4]].any()
    assert model.decoder.axis.dropout_module.p == 0.3
    assert not model.encoder.axis.embed_tokens.weight[PAD].any()


# what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"two_way_units": 0}, "--two-way-units must be ≥ 1, but is 0"),
        ({"decoder_layers": 0}, "--decoder-layers must be ≥ 1"),
        ({"decoder_attention_heads": 3}, "must be a multiple of --decoder-attention-h"),
        ({"two_way_languages": ["en", "fr"]}, "those of its training, en and fr"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        built("two_way_tiny", **options)


@pytest.mark.parametrize("saved", [["de", "en"], ["en", "de"]])
def test_a_model_says_whether_its_languages_are_exchanged(saved):
    model = built("two_way_tiny", two_way_languages=saved)
    assert model.exchanged == (saved == ["de", "en"])
    args = Namespace()
    TwoWayModel.build_model(args, fake_task())
    assert args.two_way_languages == ["en", "de"]  # what is saved of a training
