"""BA-NMT's model: what must hold of it, each with a twin that fails.

The slow twin is the paper's formulas as loops over sentences, steps and places, with
torch's own ``nn.GRUCell``.
"""

import pytest
import torch
from helpers import S, assert_same_gradients, rnn_model, source, target
from nets import EXACT, HISTORIES, LENGTHS, forward
from torch import nn

from sbnmt_plugin.families.ba.attention import HistoryGRU
from sbnmt_plugin.tools.probes import without

# the formulas as loops


def plain(cell):
    """torch's own cell with the same parameters."""
    found = nn.GRUCell(cell.input_size, cell.hidden_size).double()
    for name, parameter in cell.named_parameters():
        setattr(found, name, parameter)
    return found


def one_direction(gru, suffix, rows):
    """States of a GRU that reads these rows one after the other."""
    cell = nn.GRUCell(gru.input_size, gru.hidden_size).double()
    for name in "weight_ih", "weight_hh", "bias_ih", "bias_hh":
        setattr(cell, name, getattr(gru, f"{name}_l0{suffix}"))
    state, found = rows[0].new_zeros(gru.hidden_size), []
    for row in rows:
        state = cell(row, state)
        found.append(state)
    return found


def slow(model, words, prev, late=False):
    """Logits and α of one sentence, by the paper's formulas.

    Args:
        words: (S',) the source without padding.
        prev: (T',) the decoder's input without padding.
        late: a history is updated by the weights of the step that reads it.
    """
    encoder, decoder = model.encoder, model.decoder
    attention, names = decoder.attention, list(decoder.attention.cells)
    cells = {name: plain(cell) for name, cell in attention.cells.items()}
    x = [encoder.embed_tokens.weight[word] for word in words]
    right = one_direction(encoder.gru, "", x)
    left = one_direction(encoder.gru, "_reverse", x[::-1])[::-1]
    h = [torch.cat(pair) for pair in zip(right, left)]
    s = torch.tanh(decoder.first(sum(h) / len(h)))
    size = attention.history_size
    memories = {name: [h[0].new_zeros(size)] * len(h) for name in names}
    logits, weights = [], []
    for token in prev:
        y = decoder.embed_tokens.weight[token]
        q = decoder.asking(y, s)

        def energy(j, q=q):
            inside = attention.query(q) + attention.memory.weight @ h[j]
            for name in names:
                inside = inside + attention.keys[name].weight @ memories[name][j]
            return attention.score.weight[0] @ inside.tanh()

        powers = [energy(j).exp() for j in range(len(h))]
        alpha = [power / sum(powers) for power in powers]

        def mean(entries, alpha=alpha):
            return sum(a * entry for a, entry in zip(alpha, entries))

        def update(alpha=alpha, q=q):
            for name in names:
                reads = h if name == "source" else [q] * len(h)
                memories[name] = [
                    cells[name](a * read, old)
                    for a, read, old in zip(alpha, reads, memories[name])
                ]

        if late:
            update()
        s = decoder.answering(mean(h), q)
        read = torch.cat([y, s, mean(h), *(mean(memories[name]) for name in names)])
        logits.append(decoder.output_projection(decoder.readout(read).tanh()))
        weights.append(torch.stack(alpha))
        if not late:
            update()
    return torch.stack(logits), torch.stack(weights)


def assert_follows_the_formulas(model, **broken):
    """Property 1: forward and gradient."""
    lengths = (5, 3, 4)
    prev, tokens = target(lengths), source(model)["src_tokens"]
    fast, attention = forward(model, prev)
    expected = []
    for b, (length, places) in enumerate(zip(lengths, LENGTHS)):
        theirs, alpha = slow(model, tokens[b, S - places :], prev[b, :length], **broken)
        expected.append(theirs)
        torch.testing.assert_close(attention[b, :length, S - places :], alpha, **EXACT)
        assert not attention[b, :length, : S - places].any()
    ours = torch.cat([row[:length] for row, length in zip(fast, lengths)])
    assert_same_gradients(ours, torch.cat(expected), model.parameters())


@pytest.mark.parametrize("history", HISTORIES)
def test_the_model_follows_the_formulas(history):
    assert_follows_the_formulas(rnn_model(history))


@pytest.mark.parametrize("history", ["source", "target"])
def test_the_check_of_formulas_can_fail(history):
    """A history that has read the weights of the step that reads it."""
    with pytest.raises(AssertionError):
        assert_follows_the_formulas(rnn_model(history), late=True)


# what a history is, and what it is without


def test_a_first_history_in_narrow_numbers_becomes_wide():
    """An encoder's GRU gives narrow states under a GPU's autocast."""
    cell = HistoryGRU(5, 7)
    history = torch.rand(2, 3, 4, 7, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        inputs = cell.inputs(torch.rand(2, 3, 4, 5))
        found = cell(torch.rand(2, 3, 4), inputs, history)
    assert found.dtype == torch.float32 and found.isfinite().all()


@pytest.mark.parametrize("history", ["source", "target", "both"])
def test_histories_of_zeros_change_the_answer(history):
    """Property 8 in small; examples/toy_sort/check.py shows it on a trained model."""
    model = rnn_model(history)
    plain, _ = forward(model, target())
    with without("histories", [model]):
        silent, _ = forward(model, target())
    torch.testing.assert_close(silent[:, 0], plain[:, 0], **EXACT)
    assert (silent[:, 1:] - plain[:, 1:]).abs().max() > 1e-3
    assert forward(model, target())[0].equal(plain)


def test_rnnsearch_has_none_that_could_be_zero():
    with pytest.raises(AssertionError):
        test_histories_of_zeros_change_the_answer("none")
