"""Properties of the model, each with a twin that fails."""

from argparse import Namespace

import pytest
import torch
from helpers import (
    SIZES,
    B,
    C,
    H,
    T,
    assert_same_gradients,
    assert_scores_as,
    big_sizes,
    changed_words,
    fake_task,
    logits,
    packed,
    sb_model,
    source,
    streams,
    transformer,
)
from nets import EXACT, VARIANTS, variants
from reference import sb_attention

from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.layout import PAIRINGS, Layout, opposite
from sbnmt_plugin.network import attention, grid
from sbnmt_plugin.network.attention import Reader, SBSelfAttention
from sbnmt_plugin.network.dot_product import attend_both_ways
from sbnmt_plugin.network.fusion import FUSIONS, build_fusion
from sbnmt_plugin.tools.probes import without


@pytest.fixture(params=variants("sb"))
def model(request):
    return VARIANTS[request.param]()


def test_with_a_lambda_of_zero_the_other_stream_is_not_read(monkeypatch):
    """Nothing is computed that would be multiplied by 0, unless somebody watches."""
    reads = []

    def spy(own, across, *others):
        reads.append(across is not None)
        return attend_both_ways(own, across, *others)

    monkeypatch.setattr(attention, "attend_both_ways", spy)
    deaf, model = sb_model(sb_lambda=0.0), sb_model(sb_lambda=0.7)
    alone = logits(deaf, streams(deaf))
    assert not any(reads)
    with without("future", [model]):
        torch.testing.assert_close(alone, logits(model, streams(model)), **EXACT)
    reads.clear()
    assert not torch.equal(alone, logits(model, streams(model)))  # the twin
    assert all(reads)
    reads.clear()
    watched, seen = deaf.decoder.layers[0].self_attn, []
    watched.watcher = lambda *parts: seen.append(parts)
    torch.testing.assert_close(logits(deaf, streams(deaf)), alone, **EXACT)
    assert reads == [True, False] and len(seen) == 1


def test_swapping_the_streams_swaps_the_outputs(model):
    """Property 1: swapping the two streams swaps the outputs."""
    prev = streams(model)
    torch.testing.assert_close(
        opposite(logits(model, prev)), logits(model, opposite(prev)), **EXACT
    )


def test_the_swap_check_can_fail(monkeypatch):
    model = sb_model(sb_lambda=0.7)

    def one_sided(*given):
        history, future = attend(*given)
        future[1::2] = 0  # R2L no longer looks at L2R
        return history, future

    attend = attention.attend_both_ways
    monkeypatch.setattr(attention, "attend_both_ways", one_sided)
    with pytest.raises(AssertionError):
        test_swapping_the_streams_swaps_the_outputs(model)


def assert_is_a_transformer(model, plain):
    """Property 2: on each direction alone, fairseq's decoder with the same weights."""
    weights = {k: v for k, v in model.state_dict().items() if "sb_version" not in k}
    plain.load_state_dict(weights)
    for direction in (0, 1):
        assert_scores_as(plain, model, direction)


@pytest.mark.usefixtures("float64_fairseq")
@pytest.mark.parametrize("fusion", ["tanh", "linear", "relu"])
@pytest.mark.parametrize("before", [False, True])
def test_at_lambda_zero_each_direction_is_fairseqs_transformer(fusion, before):
    options = {"decoder_normalize_before": before}
    model = sb_model(sb_fusion=fusion, sb_lambda=0.0, **options)
    assert_is_a_transformer(model, transformer(**options))


@pytest.mark.usefixtures("float64_fairseq")
def test_the_transformer_check_can_fail():
    with pytest.raises(AssertionError):
        assert_is_a_transformer(sb_model(sb_lambda=0.01), transformer())


def test_no_step_sees_a_later_step_of_either_stream(model):
    """Property 3: input position > i of either stream changes no logit at ≤ i."""
    for step, _, own, other in changed_words(model):
        same = own[:, :step].all() and other[:, :step].all()
        assert same, f"a step before {step} depends on step {step}"
        assert not (own[:, step].all() and other[:, step].all())


def test_the_causality_check_can_fail(monkeypatch):
    def without_mask(padding, directions):
        steps = padding.size(1)
        return torch.zeros(1, 1, 2 * steps, steps, dtype=torch.bool)

    model = sb_model(sb_lambda=0.7)
    monkeypatch.setattr(grid, "causal", without_mask)
    with pytest.raises(AssertionError, match="depends on step"):
        test_no_step_sees_a_later_step_of_either_stream(model)


def fusing(kind="tanh", weight=None, learned=False, dropout=0.0):
    """Settings of a fusion."""
    return Namespace(
        sb_fusion=kind,
        sb_lambda=weight,
        sb_learn_lambda=learned,
        sb_future_dropout=dropout,
        decoder=Namespace(attention_heads=H),
    )


def make_attention(kind, learned=False, shift=False, reader=False):
    torch.manual_seed(3)
    weight = None if kind == "gate" else 0.7
    fusion = build_fusion(fusing(kind, weight, learned), C)
    reader = Reader(C, lambda projection: projection) if reader else None
    module = SBSelfAttention(C, H, fusion, shift, reader)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return module.double()


def assert_follows_the_formulas(module, kind):
    """Property 6: equations 3-10 as loops, forward and gradient."""
    torch.manual_seed(4)
    x = torch.randn(T, 2 * B, C, dtype=torch.float64, requires_grad=True)
    padding = torch.zeros(2 * B, T, dtype=torch.bool)
    padding[1, 3:] = True
    padding[4, 2:] = True
    seen = (~padding).T[..., None]
    state = packed(padding)
    fast = module(state.rows(x), incremental_state=state)[0]
    fast = state.on_grid(fast) * seen
    slow = sb_attention(module, kind, x, padding)
    assert_same_gradients(fast, slow, [x, *module.parameters()])


@pytest.mark.parametrize("reader", [False, True])
@pytest.mark.parametrize("shift", [False, True])
@pytest.mark.parametrize("kind", FUSIONS)
def test_attention_follows_the_formulas(kind, shift, reader):
    module = make_attention(kind, shift=shift, reader=reader)
    assert_follows_the_formulas(module, kind)


def test_the_formula_check_sees_a_shift(monkeypatch):
    def unshifted(self, owner, new):
        return self.past(owner, new)[0]

    monkeypatch.setattr(grid.PackedBatch, "past_before", unshifted)
    with pytest.raises(AssertionError):
        assert_follows_the_formulas(make_attention("tanh", shift=True), "tanh")


def test_the_formula_check_sees_a_reader(monkeypatch):
    monkeypatch.setattr(SBSelfAttention, "_across", lambda self, rows, own, *_: own)
    with pytest.raises(AssertionError):
        assert_follows_the_formulas(make_attention("tanh", reader=True), "tanh")


def with_reader(**options):
    """Make a model at λ = 0, and one with a fresh reader that has started from it."""
    alone = sb_model(sb_lambda=0.0)
    torch.manual_seed(5)
    options = {"sb_lambda": 0.7, "sb_reader": True, **options}
    args = Namespace(**SIZES, **options)
    reading = SBTransformerModel.build_model(args, fake_task(9)).double().eval()
    reading.load_state_dict(alone.state_dict())
    reading.requires_grad_(True)  # by which torch chooses its kernel
    return alone, reading


@pytest.mark.parametrize("shift", [False, True])
def test_a_reader_begins_with_nothing_and_leaves_writing_alone_as_it_is(shift):
    alone, reading = with_reader(sb_future_shift=shift)
    prev = streams(alone)
    assert torch.equal(logits(alone, prev), logits(reading, prev))
    for name, parameter in reading.named_parameters():
        if ".reader." in name:
            torch.nn.init.normal_(parameter, std=0.8)
    same = torch.isclose(logits(alone, prev), logits(reading, prev)).all(-1)
    assert not same[:, 1].any()  # at the first step a shifted future is nothing
    with without("future", [reading]):
        assert torch.equal(logits(alone, prev), logits(reading, prev))
    # one that writes alone needs no reader
    alone.load_state_dict(reading.state_dict())


@pytest.mark.parametrize(
    ("option", "flag"),
    [("sb_reader", "--sb-reader"), ("sb_learn_lambda", "--sb-learn-lambda")],
)
def test_a_model_that_reads_needs_what_it_reads_with(option, flag):
    weights = sb_model(**{option: True}).state_dict()
    with pytest.raises(ValueError, match=f"^{flag} is not given, but .*: add it, or"):
        sb_model(sb_lambda=0.7).load_state_dict(weights)
    sb_model(sb_lambda=0.0).load_state_dict(weights)


def test_learned_lambda_follows_the_formulas():
    assert_follows_the_formulas(make_attention("tanh", learned=True), "tanh")


def test_the_formula_check_can_fail():
    with pytest.raises(AssertionError):
        assert_follows_the_formulas(make_attention("tanh"), "linear")


def test_the_formula_check_sees_padding(monkeypatch):
    def blind(padding, directions):
        return causal(torch.zeros_like(padding), directions)

    causal = grid.causal
    monkeypatch.setattr(grid, "causal", blind)
    with pytest.raises(AssertionError):
        assert_follows_the_formulas(make_attention("tanh"), "tanh")


def test_rows_without_padding_come_back():
    """With the streams a b c and d e the rows are a d b e c."""
    streams = packed(torch.tensor([[False] * 3, [False, False, True]]))
    x = torch.tensor([[[1.0], [2.0], [3.0]], [[4.0], [5.0], [9.0]]])
    live = streams.take(x)
    assert live.flatten().tolist() == [1, 4, 2, 5, 3]
    back = streams.give(live)
    assert back.squeeze(-1).tolist() == [[1, 2, 3], [4, 5, 0]]
    assert streams.rows(streams.on_grid(live)).equal(live)
    full = packed(torch.zeros(2, 3, dtype=torch.bool))
    assert full.live is None and full.give(full.take(x)).equal(x)


def test_features_are_what_logits_are_made_of(model):
    prev = streams(model)
    features = model.extract_features(**source(model), prev_output_tokens=prev)[0]
    found = model.decoder.output_layer(features)
    torch.testing.assert_close(found, logits(model, prev), **EXACT)


def decode_step_by_step(model, prev, beam=1, pairing="rank"):
    """Compute the logits of every step with a cache; ranks stay as they are."""
    net_input = source(model)
    encoder_out = model.encoder(**net_input)
    layout = Layout(2, beam, PAIRINGS[pairing])
    cache = model.decoder.start(encoder_out, layout)
    steps = []
    for t in range(prev.size(1)):
        output, _ = model.decoder(
            prev[:, : t + 1], encoder_out=encoder_out, incremental_state=cache
        )
        steps.append(output[:, 0])
    return torch.stack(steps, dim=1)


def test_cached_steps_equal_the_full_pass_at_beam_2(model):
    """Property 4, first half."""
    prev = streams(model, ((5, 5), (5, 5), (5, 5)))
    with torch.no_grad():
        torch.testing.assert_close(
            decode_step_by_step(model, prev), logits(model, prev), **EXACT
        )


def test_the_cache_check_can_fail(monkeypatch):
    model = sb_model(sb_lambda=0.7)
    prev = streams(model, ((5, 5), (5, 5), (5, 5)))
    monkeypatch.setattr(Layout, "read_by", lambda self, streams: streams)
    cached = decode_step_by_step(model, prev)
    monkeypatch.undo()
    with pytest.raises(AssertionError):
        torch.testing.assert_close(cached, logits(model, prev), **EXACT)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_the_only_new_parameters_are_the_fusions(fusion):
    """Property 9 on the big architecture's shape, at a small size."""
    weight = {} if fusion == "gate" else {"sb_lambda": 0.1}
    model = sb_model(sb_fusion=fusion, **weight)
    plain = transformer()
    count = {m: sum(p.numel() for p in m.parameters()) for m in (model, plain)}
    extra = 2 * (2 * C // H) ** 2 if fusion == "gate" else 0  # two layers
    assert count[model] == count[plain] + extra


def test_big_has_the_parameters_of_fairseqs_big():
    """Property 9: shapes alone, so that nothing of 200M parameters is filled."""
    ours, theirs = big_sizes(SBTransformerModel)
    assert ours == theirs > 200_000_000


def test_fusion_bounds_are_checked():
    for bad in ({"kind": "mean"}, {"dropout": 1.0}, {"kind": "gate", "weight": 0.1}):
        with pytest.raises(ValueError, match="--sb-"):
            build_fusion(fusing(**bad), C)
