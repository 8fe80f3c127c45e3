"""ABD-NMT's model: what must hold of it, each with a twin that fails."""

import pytest
import torch
from helpers import (
    B,
    C,
    S,
    T,
    abd_model,
    assert_same_gradients,
    assert_scores_as,
    big_sizes,
    changed_words,
    logits,
    streams,
    transformer,
)
from nets import VARIANTS, variants
from reference import abd_layer

from sbnmt_plugin.families.abd.model import ALONE, ABDTransformerModel
from sbnmt_plugin.layout import L2R, R2L
from sbnmt_plugin.network.grid import PackedBatch


@pytest.fixture(params=variants("abd"))
def model(request):
    return VARIANTS[request.param]()


def silence(model):
    """RevAtt adds nothing."""
    with torch.no_grad():
        for layer in model.decoder.layers:
            for parameter in layer.encoder_attn.reverse.out_proj.parameters():
                parameter.zero_()


# each half is a Transformer


def assert_is_a_transformer(model, direction, **options):
    """Property 1: fairseq's decoder with the same weights."""
    own, other = ("decoder.", "backward_decoder.")[:: 1 if direction == L2R else -1]
    weights = {
        name.replace(own, "decoder.", 1): value
        for name, value in model.state_dict().items()
        if not name.startswith(other) and "reverse" not in name
    }
    del weights["decoder.sb_version"]
    plain = transformer(**options)
    plain.load_state_dict(weights)
    assert_scores_as(plain, model, direction)


@pytest.mark.usefixtures("float64_fairseq")
@pytest.mark.parametrize("options", [{}, {"decoder_normalize_before": True}], ids=str)
def test_either_half_alone_is_fairseqs_transformer(options):
    model = abd_model(**options)
    assert_is_a_transformer(model, R2L, **options)
    silence(model)
    assert_is_a_transformer(model, R2L, **options)
    assert_is_a_transformer(model, L2R, **options)


@pytest.mark.usefixtures("float64_fairseq")
def test_the_check_of_halves_can_fail():
    """The forward half that reads the other is no Transformer."""
    with pytest.raises(AssertionError):
        assert_is_a_transformer(abd_model(), L2R)


# what reads what


def test_the_forward_half_reads_all_of_the_backward_one(model):
    """Property 2: the R2L half sees its own past alone; the L2R half its own past, and
    every word of the R2L stream from its first step on."""
    for step, direction, own, other in changed_words(model):
        assert own[:, :step].all(), f"a step before {step} depends on step {step}"
        assert not own[:, step].any()
        if direction == L2R:
            assert other.all(), f"the R2L half reads word {step} of the other"
        else:
            assert not other.any(), f"the L2R half does not read word {step}"


def test_the_check_of_reading_can_fail(monkeypatch):
    """With a causal mask on R the first steps do not see its end."""
    right = PackedBatch.padding.fget

    def first(self):
        padding = right(self)
        return padding | (torch.arange(padding.size(1)) > 1)

    monkeypatch.setattr(PackedBatch, "padding", property(first))
    with pytest.raises(AssertionError):
        test_the_forward_half_reads_all_of_the_backward_one(abd_model())


# the layer's formulas


def test_the_layer_follows_the_formulas(merge=None):
    """Property 3: the layer as loops, forward and gradient."""
    model = abd_model()
    torch.manual_seed(4)
    layer = model.decoder.layers[0]
    lengths, sources, reverses = (5, 3, 4), (7, 4, 6), (2, 6, 5)
    x = torch.randn(B, T, C, dtype=torch.float64, requires_grad=True)
    h = torch.randn(S, B, C, dtype=torch.float64, requires_grad=True)
    r = torch.randn(6, B, C, dtype=torch.float64, requires_grad=True)

    def padding(sizes, width):
        return torch.arange(width) >= torch.tensor(sizes)[:, None]

    live = (~padding(lengths, T)).t().flatten().nonzero().flatten()
    grid = PackedBatch(live, (T, B), ALONE)
    found, _, _ = layer(
        grid.take(x), h, padding(sources, S), r, padding(reverses, 6),
        incremental_state=grid,
    )  # fmt: skip
    fast = grid.give(found)
    slow = torch.zeros_like(fast)
    for b in range(B):
        own, other = h[: sources[b], b], r[: reverses[b], b]
        if merge is not None:
            own = merge(own, other)
        rows = abd_layer(layer, list(x[b, : lengths[b]]), list(own), list(other))
        slow[b, : lengths[b]] = torch.stack(rows)
    assert_same_gradients(fast, slow, [x, h, r, *layer.parameters()])


def test_the_check_of_the_layer_can_fail():
    """One softmax over the union of source and R is something else."""
    with pytest.raises(AssertionError):
        test_the_layer_follows_the_formulas(lambda h, r: torch.cat([h, r]))


# training


def gradients_of(model, directions):
    """Of the sum of these streams' logits' log-probabilities, by parameter."""
    prev = streams(model)
    shown = prev.ne(model.decoder.dictionary.pad())
    scores = logits(model, prev).log_softmax(-1)
    chosen = [scores[d::2][shown[d::2]][:, 4:9].sum() for d in directions]
    sum(chosen).backward()
    return {name: p.grad for name, p in model.named_parameters()}


def test_the_forward_loss_alone_trains_the_backward_decoder():
    """Property 7; softmax ignores what a bias adds to all keys alike."""
    model = abd_model()
    for name, gradient in gradients_of(model, [L2R]).items():
        assert gradient is not None, name
        keys = "attn" in name and name.endswith("k_proj.bias")
        assert keys or gradient.abs().max() > 1e-10, name


def test_the_check_of_gradients_can_fail(monkeypatch):
    right = ABDTransformerModel.with_reverse

    def detached(self, *given):
        found = right(self, *given)
        return {name: [x.detach() for x in both] for name, both in found.items()}

    monkeypatch.setattr(ABDTransformerModel, "with_reverse", detached)
    with pytest.raises(AssertionError):
        test_the_forward_loss_alone_trains_the_backward_decoder()


# sizes, and what is refused


def test_big_has_the_parameters_of_table_6():
    """Property 8: 207.8M of the Transformer, 333.8M of ABD-NMT, as shapes alone."""
    ours, theirs = big_sizes(ABDTransformerModel)
    assert ours - theirs == 125_970_432
