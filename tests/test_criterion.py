"""The loss: its formula, gradient and log, and its labels, in batches of any kind."""

import math

import numpy as np
import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    label_smoothed_nll_loss,
)
from fairseq.data import LanguagePairDataset, ListDataset
from helpers import (
    dictionary,
    fake_task,
    live_of,
    rnn_model,
    sb_model,
    transformer,
)
from nets import batch, criterion_of

from sbnmt_plugin.layout import L2R
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.training import criterion
from sbnmt_plugin.training.criterion import (
    SBLabelSmoothedCrossEntropy,
    live_rows_alone,
    smoothed_loss,
)
from sbnmt_plugin.training.dataset import SBLanguagePairDataset, with_stream_labels


def slow_loss(model, sample, epsilon):
    """Compute equation 14 with smoothing, label by label."""
    output, _ = model(**sample["net_input"])
    sums = {"loss": [0.0, 0.0], "nll_loss": [0.0, 0.0], "labels": [0, 0]}
    pad = model.decoder.dictionary.pad()
    for row, labels in enumerate(sample["stream_target"].tolist()):
        for i, label in enumerate(labels):
            if label == pad:
                continue
            lprobs = output[row, i].log_softmax(-1)
            eps = epsilon / (len(lprobs) - 1)
            smooth = -float(lprobs.sum())
            nll = -float(lprobs[label])
            sums["loss"][row % 2] += (1 - epsilon - eps) * nll + eps * smooth
            sums["nll_loss"][row % 2] += nll
            sums["labels"][row % 2] += 1
    return sums


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_the_loss_is_the_sum_over_both_directions(epsilon):
    model = sb_model(sb_lambda=0.7)
    sample = batch(model)
    loss, size, log = criterion_of(model, smoothing=epsilon)(model, sample)
    expected = slow_loss(model, sample, epsilon)
    assert float(loss) == pytest.approx(sum(expected["loss"]), abs=1e-10)
    assert size == sample["ntokens"] == sum(expected["labels"]) == 24
    for name, values in expected.items():
        for direction, value in zip(("l2r", "r2l"), values):
            assert float(log[f"{name}_{direction}"]) == pytest.approx(value, abs=1e-9)
    assert log["labels_l2r"] + log["labels_r2l"] == 24


WORD = 12  # an ordinary one


def batch_with(symbol):
    """A collated batch whose texts hold a symbol: inside, at the start, at the end."""
    words = dictionary()
    end = words.eos()
    texts = {
        "source": [[5, 6, 7], [8, 4], [9, 10, 11]],
        "l2r": [[5, symbol, 6, 7], [4, 8, 9], [symbol, symbol, 10]],
        "r2l": [[5, 6], [7, 4, 8, symbol], [9, 10, symbol, 11]],
    }
    rows = {
        name: ListDataset([torch.tensor([*text, end]) for text in part])
        for name, part in texts.items()
    }
    sizes = {name: [len(row) for row in part] for name, part in rows.items()}
    pairs = LanguagePairDataset(
        *(rows["source"], sizes["source"], words),
        *(rows["l2r"], sizes["l2r"], words),
        shuffle=False,
    )
    opposite = ListDataset(rows["r2l"].dataset, np.array(sizes["r2l"]))
    starts = tuple(words.index(tag) for tag in TAGS)
    dataset = SBLanguagePairDataset(pairs, opposite, starts)
    return dataset.collater([dataset[i] for i in range(3)])


def assert_a_symbol_is_a_word(symbol, spoil=lambda sample: sample):
    """Whose rows are another word's, so that both mean the same: the loss is that of
    the text with the other word, label by label, and that is what the formula says.

    Without positions, which fairseq counts from the symbols that are no padding.
    """
    model = sb_model(sb_lambda=0.7, no_token_positional_embeddings=True)
    decoder = model.decoder
    with torch.no_grad():
        for matrix in decoder.embed_tokens.weight, decoder.output_projection.weight:
            matrix[symbol] = matrix[WORD]
    losses = []
    for token in symbol, WORD:
        sample = spoil(batch_with(token))
        assert sample["ntokens"] == 5 + 3 + 4 + 5 + 4 + 5
        each = criterion_of(model)._by_label(model, with_stream_labels(sample))
        losses.append(torch.stack(each))
    torch.testing.assert_close(*losses, rtol=0, atol=1e-10)
    slow = slow_loss(model, batch_with(WORD), 0.1)
    for ours, name in zip(losses[0], ("loss", "nll_loss")):
        assert float(ours.sum()) == pytest.approx(sum(slow[name]), abs=1e-10)


@pytest.mark.parametrize("symbol", ["<s>", "<pad>", "</s>", "<unk>"])
def test_a_literal_symbol_in_a_text_moves_no_label(symbol):
    """Binarised by other means, as this plugin's refuse it."""
    assert_a_symbol_is_a_word(dictionary().index(symbol))


def test_the_check_of_literal_symbols_can_fail():
    """Padding told by its symbol, as it was, instead of by where a text ends."""

    def by_symbol(sample):
        prev = sample["net_input"]["prev_output_tokens"]
        return {**sample, "live": live_of(prev)}

    with pytest.raises((AssertionError, RuntimeError)):
        assert_a_symbol_is_a_word(dictionary().pad(), by_symbol)


def assert_smoothed(epsilon, computed=False):
    """fairseq's formula on log-probabilities, forward and gradient.

    Args:
        computed: whether the logits are some layer's, as a model's are.
    """
    torch.manual_seed(8)
    made = torch.randn(7, 11, dtype=torch.float64, requires_grad=True)
    logits = made * 1 if computed else made
    labels = torch.tensor([4, 10, 0, 4, 7, 1, 2])
    weight = torch.randn(7, dtype=torch.float64)
    ours, nll = smoothed_loss(logits, labels, 0.1)
    theirs, expected = label_smoothed_nll_loss(
        made.log_softmax(-1), labels, epsilon, reduce=False
    )
    exact = {"rtol": 0, "atol": 1e-12}
    torch.testing.assert_close(nll, expected, **exact)
    torch.testing.assert_close(ours, theirs, **exact)
    gradients = [
        torch.autograd.grad((x * weight).sum(), made)[0] for x in (ours, theirs)
    ]
    torch.testing.assert_close(*gradients, **exact)


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("size", [1, 24, 10**6])
def test_the_smoothed_loss_is_fairseqs(monkeypatch, size, computed):
    monkeypatch.setattr("sbnmt_plugin.numerics.AT_A_TIME", size)  # 1, 2, 7 rows
    assert_smoothed(0.1, computed)


@pytest.mark.parametrize("computed", [False, True])
def test_the_check_of_the_smoothed_loss_can_fail(computed):
    with pytest.raises(AssertionError):
        assert_smoothed(0.11, computed)


def test_the_gradient_takes_the_place_of_a_models_logits():
    """One matrix of the vocabulary's size, not two; so there is no second pass."""
    made = torch.randn(7, 11, requires_grad=True)
    logits, given = made * 1, []
    logits.register_hook(given.append)
    loss = smoothed_loss(logits, torch.arange(7), 0.1)[0].sum()
    loss.backward(retain_graph=True)
    assert given[0].data_ptr() == logits.data_ptr()
    assert torch.equal(made.grad, logits)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("shape", [(7, 11), (1, 7, 11)])
def test_logits_that_nothing_computed_stay_as_they_are(shape):
    logits = torch.randn(shape, requires_grad=True)
    before = logits.detach().clone()
    rows = logits if len(shape) == 2 else logits[0]  # a view of them
    loss = smoothed_loss(rows, torch.arange(7), 0.1)[0].sum()
    loss.backward(retain_graph=True)
    first = logits.grad.clone()
    loss.backward()
    assert torch.equal(logits, before)
    assert torch.equal(logits.grad, 2 * first)


def test_the_smoothed_loss_of_half_precision_is_float32():
    logits = (4 * torch.randn(5, 300)).bfloat16().requires_grad_()
    labels = torch.arange(5)
    loss, _ = smoothed_loss(logits, labels, 0.1)
    exact, _ = smoothed_loss(logits.double(), labels, 0.1)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.double(), exact, rtol=1e-5, atol=1e-5)
    loss.sum().backward()
    assert logits.grad.dtype == torch.bfloat16
    assert float(logits.grad.float().sum(-1).abs().max()) < 0.02  # p sums to 1


def assert_loss_is_fairseqs(model=None):
    """Compare a Transformer's loss and gradients, by fairseq's criterion and ours."""
    model = model or transformer()
    sample = batch(model)
    task = fake_task()
    task.directions = (L2R,)
    found = []
    for kind in (SBLabelSmoothedCrossEntropy, LabelSmoothedCrossEntropyCriterion):
        value, _, log = kind(task, False, 0.1)(model, sample)
        gradients = torch.autograd.grad(value, list(model.parameters()))
        found.append((float(value), float(log["nll_loss"]), gradients))
    (*ours, our_gradients), (*theirs, gradients) = found
    assert ours == pytest.approx(theirs, rel=1e-6)
    for left, right in zip(our_gradients, gradients):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-6)  # float32


def test_a_teachers_loss_is_fairseqs():
    assert_loss_is_fairseqs()


def test_the_loss_of_any_other_decoder_is_fairseqs(monkeypatch):
    monkeypatch.setattr(criterion, "DECODERS", ())
    assert_loss_is_fairseqs()


@pytest.mark.parametrize("make", [transformer, rnn_model])
def test_a_teachers_padding_gets_no_logits(make):
    """fairseq's criterion asks for logits of padding, too."""
    model, sizes = make(), []
    layer = model.decoder.output_projection
    layer.register_forward_hook(lambda _, inputs, out: sizes.append(out.shape[:-1]))
    assert_loss_is_fairseqs(model)
    ours, theirs = sizes  # in this order
    assert ours.numel() < theirs.numel()
    assert len(layer._forward_pre_hooks) == 0


def test_the_check_of_live_rows_can_fail(monkeypatch):
    def unsorted(model, live):
        return live_rows_alone(model, live.flip(0))

    monkeypatch.setattr(criterion, "live_rows_alone", unsorted)
    with pytest.raises(AssertionError):
        assert_loss_is_fairseqs()


def test_the_check_of_a_teachers_loss_can_fail(monkeypatch):
    def unsmoothed(logits, labels, epsilon):
        return smoothed_loss(logits, labels, 0.0)

    monkeypatch.setattr(criterion, "smoothed_loss", unsmoothed)
    with pytest.raises(AssertionError):
        assert_loss_is_fairseqs()


def test_the_logged_values_are_bits_per_label():
    from fairseq.logging import metrics

    model = sb_model(sb_lambda=0.7)
    sample = batch(model)
    _, _, log = criterion_of(model)(model, sample)
    expected = slow_loss(model, sample, 0.1)
    with metrics.aggregate() as meters:
        SBLabelSmoothedCrossEntropy.reduce_metrics([log, log])
    values = meters.get_smoothed_values()
    for place, name in enumerate(("l2r", "r2l")):
        bits = math.log(2) * expected["labels"][place]
        for key in ("loss", "nll_loss"):
            value = float(values[f"{key}_{name}"])
            assert value == pytest.approx(expected[key][place] / bits, abs=1e-3)


def test_the_criterion_needs_the_task():
    with pytest.raises(ValueError, match="--task sb_translation"):
        SBLabelSmoothedCrossEntropy(fake_task(), False, 0.1)
