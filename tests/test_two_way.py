"""The two-way model: what must hold of it, each with a twin that fails.

The slow twin of the grid is its formulas as loops over cells.
"""

import pytest
import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerDecoderBase
from helpers import assert_same_gradients, source, target, two_way_model, written
from nets import EOS, EXACT, LENGTHS, STEPS, both, net, sentences

from sbnmt_plugin.families.two_way import lstm_2d as two_dimensional
from sbnmt_plugin.families.two_way import model as two_way
from sbnmt_plugin.families.two_way.decoder import TwoWayEncoder
from sbnmt_plugin.families.two_way.lstm_2d import TwoDimensionalLSTM
from sbnmt_plugin.families.two_way.model import transpose_weights

pytestmark = pytest.mark.usefixtures("float64_fairseq")


# the grid


def slow_grid(grid, source, target):
    """z of one sentence, (J, I, Z), cell by cell."""
    w, units = grid, grid.units
    z, c = {}, {}
    nothing = torch.zeros(units, dtype=source.dtype)
    for j in range(len(source)):
        for i in range(len(target)):
            left, below = (j - 1, i), (j, i - 1)
            x = (
                w.source.weight @ source[j]
                + w.source.bias
                + w.target.weight @ target[i]
            )
            x = x + w.source_past.weight @ z.get(left, nothing)
            x = x + w.target_past.weight @ z.get(below, nothing)
            entering, forget, leaving, mix, new = x.split(units)
            sigma = torch.sigmoid
            past = sigma(mix) * c.get(below, nothing)
            past = past + (1 - sigma(mix)) * c.get(left, nothing)
            c[j, i] = sigma(forget) * past + sigma(entering) * torch.tanh(new)
            z[j, i] = sigma(leaving) * torch.tanh(c[j, i])
    rows = [[z[j, i] for i in range(len(target))] for j in range(len(source))]
    return torch.stack([torch.stack(row) for row in rows])


def states(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("places", "steps"),
    [(LENGTHS, STEPS), (STEPS, LENGTHS), ((4,), (4,)), ((1,), (3,)), ((3,), (1,))],
    ids=str,
)
def test_diagonals_are_the_loops_over_cells(places, steps):
    """Property 1: z and its gradients, texts of unlike lengths in one batch."""
    grid = two_way_model().decoder.grid
    h = states(len(places), max(places), 8, seed=1).requires_grad_()
    s = states(len(places), max(steps), 8, seed=2).requires_grad_()
    inputs = [h, s, *grid.parameters()]
    fast = grid.by_diagonals(grid.source(h), grid.target(s))
    assert fast.shape == (len(places), max(places), max(steps), grid.units)
    cut, slow = [], []
    for b, (j, i) in enumerate(zip(places, steps)):
        slow.append(slow_grid(grid, h[b, :j], s[b, :i]).flatten(0, 1))
        cut.append(fast[b, :j, :i].flatten(0, 1))
    assert_same_gradients(torch.cat(cut), torch.cat(slow), inputs)


def test_slots_shifted_the_wrong_way_are_noticed(monkeypatch):
    def shifted(x, sides):
        along, low, high = sides[:2], *sides[2:]
        return F.pad(x, (*along, low - 1, high + 1))

    monkeypatch.setattr(two_dimensional, "F", type("F", (), {"pad": shifted}))
    with pytest.raises(AssertionError):
        test_diagonals_are_the_loops_over_cells(LENGTHS, STEPS)


def assert_rows_are_the_grid(grid):
    """Property 2, of the grid alone."""
    source, target = (grid.source(states(3, 7, 8, seed=1)), states(3, 5, 8, seed=2))
    target = grid.target(target)
    whole = grid.by_diagonals(source, target)
    z = c = source.new_zeros(3, 7, grid.units)
    for i, step in enumerate(target.unbind(1)):
        z, c = grid.row(source + step[:, None], z, c)
        torch.testing.assert_close(z, whole[:, :, i], **EXACT)


def test_row_after_row_is_the_grid():
    assert_rows_are_the_grid(two_way_model().decoder.grid)


def test_a_row_without_its_own_past_is_noticed(monkeypatch):
    row = TwoDimensionalLSTM.row
    monkeypatch.setattr(
        TwoDimensionalLSTM, "row", lambda self, x, z, c: row(self, x, z, 0 * c)
    )
    with pytest.raises(AssertionError):
        assert_rows_are_the_grid(two_way_model().decoder.grid)


def calls(cell, work):
    """How often a cell is called."""
    found = []
    hook = cell.register_forward_hook(lambda *given: found.append(1))
    work()
    hook.remove()
    return len(found)


def test_training_takes_a_call_a_diagonal_and_decoding_one_a_cell_of_a_row():
    """Property 7: I + J - 1 in training, J a step of the search."""
    model = two_way_model()
    cell = model.decoder.grid.cell
    assert calls(cell, lambda: both(model, source(model), target())) == 7 + 5 - 1
    assert calls(cell, lambda: list(written(model, beam=3))) == 7 * 5


def test_a_loop_over_cells_is_noticed(monkeypatch):
    def loops(self, source, target):
        rows, z, c = [], *[source.new_zeros(*source.shape[:2], self.units)] * 2
        for step in target.unbind(1):
            z, c = self.row(source + step[:, None], z, c)
            rows.append(z)
        return torch.stack(rows, 2)

    monkeypatch.setattr(TwoDimensionalLSTM, "by_diagonals", loops)
    with pytest.raises(AssertionError):
        test_training_takes_a_call_a_diagonal_and_decoding_one_a_cell_of_a_row()


# who sees what


def test_each_text_sees_its_past_and_all_of_the_other():
    """Property 3: p(e_i) of e_<i and all f, the last included; the same for p(f_j)."""
    model = two_way_model()
    for _, words, prev in sentences():
        tokens, prev = words[None], prev[None]
        forth, back = both(model, net(tokens), prev)
        for i in range(1, prev.size(1)):  # the input at i is e_i, counted from 1
            other = prev.clone()
            other[0, i] = 4 + (other[0, i] - 3) % 9
            changed, there = both(model, net(tokens), other)
            torch.testing.assert_close(changed[:, :i], forth[:, :i], **EXACT)
            assert ((changed - forth)[:, i:].abs().amax(-1) > 1e-6).all()
            assert (there - back).abs().max() > 1e-6
        for j in range(tokens.size(1) - 1):  # f_{j+1}, the label at j
            other = tokens.clone()
            other[0, j] = 4 + (other[0, j] - 3) % 9
            there, changed = both(model, net(other), prev)
            torch.testing.assert_close(changed[:, : j + 1], back[:, : j + 1], **EXACT)
            assert ((changed - back)[:, j + 1 :].abs().amax(-1) > 1e-6).all()
            assert (there - forth).abs().max() > 1e-6


def test_columns_of_words_alone_are_noticed(monkeypatch):
    """Without that of ``</s>`` the last word of f is never read."""
    right = TwoWayEncoder.forward

    def words_alone(self, src_tokens, src_lengths=None, **others):
        found = right(self, src_tokens)
        (padding,), (labels,) = found["encoder_padding_mask"], found["labels"]
        return {**found, "encoder_padding_mask": [padding | labels.eq(EOS)]}

    monkeypatch.setattr(TwoWayEncoder, "forward", words_alone)
    with pytest.raises(AssertionError):
        test_each_text_sees_its_past_and_all_of_the_other()


def test_a_stack_that_looks_ahead_is_noticed(monkeypatch):
    right = TransformerDecoderBase.extract_features_scriptable
    monkeypatch.setattr(
        TransformerDecoderBase,
        "extract_features",
        lambda self, *given: right(self, *given, full_context_alignment=True),
    )
    with pytest.raises(AssertionError):
        test_each_text_sees_its_past_and_all_of_the_other()


# the exchanged languages


def transposed(model):
    """The model of the exchanged languages, with these weights."""
    sizes = len(model.encoder.dictionary) - 6, len(model.decoder.dictionary) - 6
    found = two_way_model(seed=2, words=sizes[0], sources=sizes[1])
    weights = dict(model.state_dict())
    transpose_weights(weights)
    found.load_state_dict(weights)
    return found


def test_transposed_weights_are_the_exchanged_languages():
    """Property 4: p(f|e) of the one is p(e|f) of the other, and back."""
    model = two_way_model()
    exchanged = transposed(model)
    for _, words, prev in sentences():
        start = torch.tensor([EOS])
        forth, back = both(model, net(words[None]), prev[None])
        turned = net(torch.cat([prev[1:], start])[None])
        there, here = both(exchanged, turned, torch.cat([start, words[:-1]])[None])
        torch.testing.assert_close(there, back, **EXACT)
        torch.testing.assert_close(here, forth, **EXACT)


def test_transposed_twice_is_the_model():
    model = two_way_model()
    weights = dict(model.state_dict())
    transpose_weights(weights)
    for name, parameter in model.named_parameters():
        assert not weights[name].equal(parameter), name
    transpose_weights(weights)
    assert weights.keys() == model.state_dict().keys()
    assert all(weights[name].equal(x) for name, x in model.state_dict().items())


def test_a_gate_of_the_wrong_sign_is_noticed(monkeypatch):
    monkeypatch.setattr(two_way, "mix_negated", lambda weight: weight)
    with pytest.raises(AssertionError):
        test_transposed_weights_are_the_exchanged_languages()
