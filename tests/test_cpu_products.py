"""Decoding with bfloat16 weights: close to float32, packed or not, anywhere.

And with large ones of float32, which are packed for few rows or are oneDNN's where
torch's own are slow, and with 8-bit ones.
"""

import copy
import warnings
from functools import partial

import commands
import pytest
import torch
from commands import (
    best,
    load,
    load_hub,
    run_generate,
    run_train,
)
from fairseq.modules import MultiheadAttention
from helpers import abd_model, live_of, sb_model, source, streams, transformer
from nets import SB
from processor import VNNI
from searching import generate

from sbnmt_plugin import numerics, quiet
from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.layout import L2R
from sbnmt_plugin.network import cpu_products as precision
from sbnmt_plugin.network import encoder
from sbnmt_plugin.network.cpu_products import (
    Int8Linear,
    PackedLinear,
    can_pack,
    for_decoding,
    may_pay,
)
from sbnmt_plugin.network.next_tokens import NextTokens

to_bfloat16, to_int8 = (partial(for_decoding, **{x: True}) for x in ("bf16", "int8"))
STEP = 2.0**-8  # the relative rounding of a bfloat16 number
needs_packing, needs_float32 = (
    pytest.mark.skipif(not can_pack(dtype), reason=f"no packed {dtype} products here")
    for dtype in (torch.bfloat16, torch.float32)
)
READER = {"sb_lambda": 0.7, "sb_reader": True, "sb_future_shift": True}
MODELS = pytest.mark.parametrize(
    "make", [*SB.values(), partial(sb_model, **READER)], ids=[*SB, "reader"]
)


def lprobs(model, prev):
    with torch.no_grad():
        logits, _ = model(**source(model), prev_output_tokens=prev, live=live_of(prev))
    return NextTokens.of_logits(logits).lprobs().float()


def assert_close_to_float32(make):
    """Stated tolerance: 30 roundings of the largest log-probability."""
    model = make().float()
    prev = streams(model)
    expected = lprobs(model, prev)
    names = list(model.state_dict())
    assert list(to_bfloat16(model).state_dict()) == names
    assert all(p.dtype == torch.bfloat16 for p in model.parameters())
    found = lprobs(model, prev)
    assert not torch.equal(found, expected)
    allowed = 30 * STEP * float(expected.abs().max())
    assert float((found - expected).abs().max()) < allowed
    return model


@MODELS
@pytest.mark.parametrize("packed", [False, True])
def test_bfloat16_is_close_to_float32(monkeypatch, packed, make):
    """And is searched with every fusion."""
    if packed and not can_pack(torch.bfloat16):
        pytest.skip("no packed bfloat16 products here")
    if not packed:
        monkeypatch.setattr(precision, "can_pack", lambda dtype: False)
    for hypotheses in generate([assert_close_to_float32(make)], beam=4):
        assert len(hypotheses) == 4
        for hypothesis in hypotheses:
            assert hypothesis["positional_scores"].dtype == torch.float32
            assert hypothesis["positional_scores"].isfinite().all()


def test_the_precision_check_can_fail(monkeypatch):
    def halved(self, x):
        return torch.nn.functional.linear(x, self.weight / 2, self.bias)

    monkeypatch.setattr(precision, "can_pack", lambda dtype: True)
    monkeypatch.setattr(PackedLinear, "forward", halved)
    with pytest.raises(AssertionError):
        assert_close_to_float32(SB["tanh"])


def test_a_teacher_is_searched_in_bfloat16():
    model = to_bfloat16(transformer().float())
    assert len(generate([model], directions=(L2R,), beam=3)) == 3


def layers(inputs=40, outputs=24, kind=PackedLinear, dtype=torch.float32, bias=True):
    """Make torch's layer, and one of ours with the same weights."""
    torch.manual_seed(2)
    layer = torch.nn.Linear(inputs, outputs, bias=bias).to(dtype)
    own = copy.deepcopy(layer)
    own.__class__ = kind
    return layer, own


def packed_layer(bias=True):
    return layers(dtype=torch.bfloat16, bias=bias)


def assert_same_product(layer, packed, inputs):
    with torch.no_grad():
        expected, found = layer(inputs), packed(inputs)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=2 * STEP, atol=2 * STEP)


INPUTS = torch.randn(3, 5, 40, generator=torch.Generator().manual_seed(3)).bfloat16()


@needs_packing
@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_layer_gives_what_the_layer_gives(bias):
    assert_same_product(*packed_layer(bias), INPUTS)


@pytest.fixture
def copies(monkeypatch):
    """Weights of which copies have been made, in order."""
    made, copy_of = [], PackedLinear._copy_of

    def counted(self, weight):
        before = self._packed
        found = copy_of(self, weight)
        if self._packed is not before:
            made.append(weight)
        return found

    monkeypatch.setattr(PackedLinear, "_copy_of", counted)
    return made


def changed_in_place(layer):
    with torch.no_grad():
        layer.weight.mul_(0.5)


def loaded(layer):
    layer.load_state_dict({k: -v for k, v in layer.state_dict().items()})


def replaced(layer):
    layer.weight = torch.nn.Parameter(layer.weight.detach().flip(0))


def given_other_data(layer):
    layer.weight.data = layer.weight.detach().flip(0)


def to_and_fro(layer):
    layer.float().bfloat16()


UNSEEN = pytest.mark.xfail(raises=AssertionError, strict=True)
CHANGES = [changed_in_place, loaded, replaced, given_other_data, to_and_fro]


@needs_packing
@pytest.mark.parametrize("change", CHANGES)
def test_a_weight_that_has_changed_is_packed_anew(copies, change):
    layer, packed = packed_layer()
    assert_same_product(layer, packed, INPUTS)
    assert_same_product(layer, packed, INPUTS)
    assert len(copies) == 1
    for module in (layer, packed):
        change(module)
    assert_same_product(layer, packed, INPUTS)
    assert len(copies) == 2


def test_training_drops_a_copy_and_evaluation_keeps_it():
    layer = PackedLinear(3, 3)
    layer._packed = known = layer.weight, 0, None
    assert layer.eval()._packed is known
    assert layer.train()._packed is None


@needs_packing
@pytest.mark.parametrize("trained", [True, pytest.param(False, marks=UNSEEN)])
def test_an_optimiser_changes_weights_without_a_new_version(trained):
    """Also those of a layer that --decoder-layerdrop leaves out of every update."""
    layer, packed = packed_layer()
    assert_same_product(layer, packed, INPUTS)
    for module in (layer, packed):
        torch.nn.ModuleList([module]).train(trained)
        module.weight.data.mul_(0.5)  # as fairseq's Adam does
        module.eval()
    assert_same_product(layer, packed, INPUTS)


@needs_packing
def test_the_check_of_changed_weights_can_fail(monkeypatch):
    def stale(self, weight):
        if self._packed is None:
            copy = torch.ops.mkldnn._reorder_linear_weight(weight.detach())
            self._packed = weight, 0, copy
        return self._packed[2]

    monkeypatch.setattr(PackedLinear, "_copy_of", stale)
    for change in CHANGES[:-1]:
        layer, packed = packed_layer()
        assert_same_product(layer, packed, INPUTS)
        for module in (layer, packed):
            change(module)
        with pytest.raises(AssertionError):
            assert_same_product(layer, packed, INPUTS)


@needs_packing
def test_a_packed_layer_may_go_anywhere():
    """As with .cuda(), .float() or .half() of the Python interface."""
    layer, packed = packed_layer()
    assert_same_product(layer, packed, INPUTS)
    for dtype in (torch.float32, torch.float64):
        assert_same_product(layer.to(dtype), packed.to(dtype), INPUTS.to(dtype))
        assert packed._packed is None  # nothing of the CPU's is kept
    packed = packed_layer()[1]
    with torch.no_grad():
        packed(INPUTS)
    assert packed._packed is not None
    twin = copy.deepcopy(packed)
    assert_same_product(packed, twin, INPUTS)
    assert packed.to("meta")(INPUTS.to("meta")).device.type == "meta"


def large_layer():
    """Make a float32 layer of the smallest size that is packed, and a packed one."""
    return layers(1024, precision.LARGE // 1024)


def rows_of(count):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(count, 1024, generator=generator)


@pytest.fixture
def mkl_keeps_up(monkeypatch):
    """A processor of Intel's."""
    monkeypatch.setattr(numerics, "mkl_lags", lambda: False)
    monkeypatch.setattr(precision, "mkl_lags_at_256_bits", lambda: False)


@pytest.fixture(params=[True, False])
def lags(request, monkeypatch, mkl_keeps_up):
    """Whether it is one of AMD's, of 256 bits."""
    monkeypatch.setattr(precision, "mkl_lags_at_256_bits", lambda: request.param)
    return request.param


@needs_float32
@pytest.mark.usefixtures("mkl_keeps_up")
def test_a_large_float32_weight_is_packed_for_few_rows(copies):
    layer, packed = large_layer()
    with torch.no_grad():
        for count in (1, 4, precision.FEW_ROWS):
            rows = rows_of(count)
            torch.testing.assert_close(packed(rows), layer(rows), rtol=0, atol=1e-5)
        assert len(copies) == 1
        many = rows_of(precision.FEW_ROWS + 1)
        assert torch.equal(packed(many), layer(many))  # torch's own product
        assert packed._packed is not None  # few rows will come again
    assert len(copies) == 1


@needs_float32
def test_an_output_layer_is_packed_for_all_rows_where_mkl_lags(
    monkeypatch, copies, lags
):
    monkeypatch.setattr(precision, "MANY_OUTPUTS", 40 * 48 - 1)
    for outputs, inputs in (48, 40), (47, 40), (40, 48):  # large and wide, and neither
        layer, packed = layers(inputs, outputs)
        rows = torch.randn(precision.FEW_ROWS + 1, inputs)
        assert may_pay(layer.weight) == (lags and outputs == 48)
        packed(rows).sum().backward()  # a training multiplies as ever
        with torch.no_grad():
            torch.testing.assert_close(packed(rows), layer(rows), rtol=0, atol=1e-5)
        assert (packed._packed is not None) == (lags and outputs == 48)
    assert len(copies) == lags


@needs_float32
def test_a_less_large_weight_is_packed_for_few_rows_where_mkl_lags(copies, lags):
    layer, packed = layers(1024, precision.LESS_LARGE // 1024)
    many = rows_of(precision.FEW_ROWS + 1)
    with torch.no_grad():
        assert torch.equal(packed(many), layer(many))  # torch's own product
        rows = many[1:]
        torch.testing.assert_close(packed(rows), layer(rows), rtol=0, atol=1e-5)
    assert len(copies) == lags


@needs_float32
def test_training_goes_on_as_ever_after_a_search(copies):
    """Validation with a search, an update that torch cannot see, and validation."""
    layer, packed = large_layer()
    rows = rows_of(2)
    with torch.no_grad():
        packed(rows)
    assert len(copies) == 1
    for module in (layer, packed):
        module(rows).sum().backward()
        module.weight.data.sub_(module.weight.grad)  # fairseq's optimisers do so
    assert torch.equal(packed.weight.grad, layer.weight.grad)
    assert packed._packed is None
    with torch.no_grad():
        torch.testing.assert_close(packed(rows), layer(rows), rtol=1e-5, atol=1e-4)
    assert len(copies) == 2


@needs_float32
def test_the_check_of_training_can_fail():
    """Without the update's own forward pass the copy would be an old one."""
    layer, packed = large_layer()
    rows = rows_of(2)
    with torch.no_grad():
        packed(rows)
        for module in (layer, packed):
            module.weight.data.mul_(2)
        with pytest.raises(AssertionError):
            torch.testing.assert_close(packed(rows), layer(rows), rtol=1e-5, atol=1e-4)


def test_every_search_packs(monkeypatch, data, trained):
    """Large float32 layers are ours as well as soon as there is a search."""
    monkeypatch.setattr(precision, "LARGE", 1)
    monkeypatch.setattr(precision, "LESS_LARGE", 1)
    hub = load_hub(SBTransformerModel, trained, data)
    hub.translate(["w1 w2"])
    kinds = {type(m) for m in hub.modules() if isinstance(m, torch.nn.Linear)}
    assert kinds == {PackedLinear}


@pytest.mark.usefixtures("mkl_keeps_up")
def test_small_layers_of_float32_stay_torchs():
    model = for_decoding(sb_model().float())
    kinds = {type(m) for m in model.modules() if isinstance(m, torch.nn.Linear)}
    assert kinds == {torch.nn.Linear}


@needs_packing
def test_the_python_interface_packs_once(copies, data, trained):
    hub = load_hub(SBTransformerModel, trained, data, sb_bf16=True)
    first = hub.translate(["w1 w2", "w3 w4 w5"])
    assert len(copies) > 10
    count = len(copies)
    assert len({id(weight) for weight in copies}) == count
    assert hub.translate(["w1 w2", "w3 w4 w5"]) == first
    assert len(copies) == count


BOTH = r"sb.bf16, (--)?sb.int8 and (--)?fp16 .* only one of them can be given"
PAIRS = [["--sb-bf16", "--fp16"], ["--sb-int8", "--fp16"], ["--sb-bf16", "--sb-int8"]]


@pytest.mark.parametrize("flags", PAIRS, ids=" ".join)
def test_two_kinds_of_narrow_numbers_are_refused(flags, data, trained):
    with pytest.raises(ValueError, match=BOTH):
        run_generate(data, trained, *flags)


def test_two_kinds_of_narrow_numbers_are_refused_in_python(data, trained):
    for flags in PAIRS:
        given = {flag[2:].replace("-", "_"): True for flag in flags}
        with pytest.raises(ValueError, match=BOTH):
            load_hub(SBTransformerModel, trained, data, **given)
    with pytest.raises(ValueError, match=BOTH):
        load_hub(SBTransformerModel, trained, data, sb_bf16=True).half().translate("w1")


# of an input: without VNNI products are added up two by two in 16 bits, so it has 7
LARGEST = 127 if precision.short_sums() else 255


def rounded_product(layer, x):
    """Multiply by the definition: both are rounded, then multiplied exactly."""
    scales = layer.weight.abs().amax(1).double() / 127
    weight = (layer.weight.double() / scales[:, None]).round() * scales[:, None]
    low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
    scale = (high - low) / LARGEST
    offset = round(-low / scale)
    inputs = (x.double() / scale + offset).round().clamp(0, LARGEST)
    found = (inputs - offset) * scale @ weight.T
    return (found if layer.bias is None else found + layer.bias.double()).float()


def eight_bit_layer():
    return layers(kind=Int8Linear)[1], torch.randn(3, 5, 40)


def assert_products_of_8_bits(layer, x, weight):
    """Compare with the definition: at most an input's last bit away."""
    with torch.no_grad():
        found = layer(x)
        layer.weight.copy_(weight)
        expected = rounded_product(layer, x)
    step = (float(x.max()) - float(x.min())) / LARGEST * float(weight.abs().max())
    assert float((found - expected).abs().max()) < 2 * step


def test_8_bit_products_are_those_of_rounded_numbers():
    layer, x = eight_bit_layer()
    assert_products_of_8_bits(layer, x, layer.weight.detach().clone())


def test_the_check_of_8_bit_products_can_fail():
    layer, x = eight_bit_layer()
    with pytest.raises(AssertionError):
        assert_products_of_8_bits(layer, x, layer.weight.detach() * 1.05)


def test_a_layer_of_8_bits_is_in_training_as_any():
    layer, x = eight_bit_layer()
    with torch.no_grad():
        layer(x)
    layer(x).sum().backward()
    assert layer._packed is None
    torch.testing.assert_close(layer.weight.grad[0], x.sum((0, 1)))


def test_torchs_announcement_is_not_the_users():
    """That 8-bit tensors will go some day, which torch says once in a process."""
    told = []
    for silent in False, True:
        layer, x = eight_bit_layer()
        with (
            quiet.while_importing(),  # which takes the filters of loggers back
            warnings.catch_warnings(record=True) as caught,
            torch.no_grad(),
        ):
            warnings.simplefilter("always")
            if silent:
                quiet.silence()
            torch.set_warn_always(True)
            layer(x)
            torch.set_warn_always(False)
        told.append([str(warning.message) for warning in caught])
    if not told[0]:
        pytest.skip("this torch announces nothing")
    assert told[1] == []


@MODELS
def test_8_bits_are_close_to_float32(monkeypatch, make):
    """And ten times as close to what the definition of every product gives: an input
    that lies between two steps may be rounded to either."""
    model = make().float()
    prev = streams(model)
    expected = lprobs(model, prev)
    found = lprobs(to_int8(model), prev)
    kinds = {type(m) for m in model.decoder.modules() if isinstance(m, torch.nn.Linear)}
    assert kinds == {Int8Linear}
    assert not any(isinstance(m, Int8Linear) for m in model.encoder.modules())
    with monkeypatch.context() as patched:  # a generator is made for every call
        patched.setattr(torch.Tensor, "aminmax", None)
        assert to_int8(model) is model

    def apart(other):
        return float((found - other).abs().mean() / expected.abs().max())

    assert 0 < apart(expected) < 0.02
    if not VNNI:
        pytest.skip("products of 8 bits are not exact on this processor")
    with monkeypatch.context() as patched:
        patched.setattr(Int8Linear, "forward", rounded_product)
        assert apart(lprobs(model, prev)) < apart(expected) / 10
        patched.setattr(Int8Linear, "forward", lambda *of: rounded_product(*of) * 1.02)
        assert apart(lprobs(model, prev)) > apart(expected) / 10
    assert len(generate([model], beam=4)) == 3


def test_8_bits_are_for_a_cpu_and_for_float32():
    with pytest.raises(ValueError, match=r"on a CPU, but the model is on meta: give"):
        to_int8(sb_model().float().to("meta"))
    with pytest.raises(ValueError, match=r"on a CPU, but the model is on meta: give"):
        to_int8(to_int8(sb_model().float()).to("meta"))
    for other in (torch.float16, torch.bfloat16, torch.float64):
        with pytest.raises(ValueError, match=BOTH):
            to_int8(sb_model().to(other))
    for narrow in to_int8(sb_model().float()), sb_model().half():
        with pytest.raises(ValueError, match=BOTH):
            to_bfloat16(narrow)


@pytest.mark.parametrize("part", ["encoder", "decoder"])
def test_weights_that_8_bits_would_hide_are_refused(part):
    model = sb_model().float()
    next(getattr(model, part).parameters()).data.flatten()[5] = torch.nan
    with pytest.raises(ValueError, match="--sb-int8 needs a model whose weights are"):
        to_int8(model)


def test_8_bits_are_of_both_decoders_of_abd_nmt():
    model = to_int8(abd_model().float())
    for decoder in (model.decoder, model.backward_decoder):
        layers = [m for m in decoder.modules() if isinstance(m, torch.nn.Linear)]
        assert len(layers) > 8
        assert {type(layer) for layer in layers} == {Int8Linear}


@needs_float32
@pytest.mark.parametrize("kind", [PackedLinear, Int8Linear])
def test_weights_of_inference_mode_are_packed(kind, copies):
    with torch.inference_mode():
        layer = torch.nn.Linear(1024, precision.LARGE // 1024)
        expected = layer(rows_of(2))
        layer.__class__ = kind
        found = layer(rows_of(2))
        assert torch.equal(layer(rows_of(2)), found)
    torch.testing.assert_close(found, expected, rtol=0, atol=0.1)
    assert len(copies) == 1


def encoder_of(lengths, attention_of_ours=True):
    """Encode, (S, B, C), by a model of 64 channels in bfloat16."""
    torch.manual_seed(1)
    model = sb_model(encoder_embed_dim=64, encoder_layers=2).float()
    to_bfloat16(model)
    if not attention_of_ours:
        for layer in model.encoder.layers:
            layer.self_attn.__class__ = MultiheadAttention
    with torch.no_grad():
        alone = model.encoder(**source(model, lengths[:1]))["encoder_out"][0]
        every = model.encoder(**source(model, lengths))["encoder_out"][0]
    return alone[:, 0], every[-lengths[0] :, 0]


def share_that_differs(*ours):
    alone, together = encoder_of(*ours)
    return float((alone != together).float().mean())


@needs_packing
def test_company_hardly_touches_what_bfloat16_encodes():
    """Never exactly: sums of float32 are rounded to bfloat16 in the end."""
    for lengths in ((12,) * 32, (12, 15, 9, 30)):
        assert share_that_differs(lengths) < 0.02


@needs_packing
def test_the_check_of_company_can_fail():
    """With fairseq's attention, whose kernels depend on the size of the batch."""
    assert share_that_differs((12,) * 32, False) > 0.02


def test_the_encoders_attention_is_fairseqs(monkeypatch):
    """It has the same formula whether it has the model's own dtype or not."""
    model = transformer(encoder_layers=2)
    expected = model.encoder(**source(model))["encoder_out"][0]
    for layer in model.encoder.layers:
        layer.self_attn.__class__ = encoder.EncoderSelfAttention
    exact = {"rtol": 0, "atol": 1e-6}  # fairseq's softmax is float32
    found = model.encoder(**source(model))["encoder_out"][0]
    torch.testing.assert_close(found, expected, **exact)
    model.float()
    monkeypatch.setattr(encoder, "attention_dtype", lambda _: torch.float64)
    found = model.encoder(**source(model))["encoder_out"][0]
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-4)


# float32 where MKL lags


@pytest.fixture
def mkl_lags(monkeypatch):
    """A processor of another maker, on which every product is large enough."""
    monkeypatch.setattr(numerics, "mkl_lags", lambda: True)
    monkeypatch.setattr(precision, "MUCH", 1)


def assert_multiplies_as_torch(layer, rows):
    """Compare forward and backward passes: as near to float64's as torch's are."""
    own, exact = copy.deepcopy(layer), copy.deepcopy(layer).double()
    own.__class__ = PackedLinear
    found, expected = [], []
    for module, gathered in (own, found), (exact, expected):
        x = rows.clone().to(module.weight.dtype).requires_grad_()
        y = module(x)
        y *= 0.5  # in place, as fairseq's attention does
        (y * y.detach().cos()).sum().backward()
        gathered += [y, x.grad, *(p.grad for p in module.parameters())]
    for a, b in zip(found, expected):
        assert a.dtype == torch.float32 and a.shape == b.shape
        torch.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-4)


SHAPES = [(7, 40), (3, 5, 40), (1, 40), (40,), (0, 40)]


@needs_float32
@pytest.mark.usefixtures("mkl_lags")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_onednn_multiplies_as_torch_does(monkeypatch, shape, bias):
    called = counting(monkeypatch)
    torch.manual_seed(6)
    layer = torch.nn.Linear(40, 24, bias=bias)
    assert_multiplies_as_torch(layer, torch.randn(shape))
    assert len(called) == (0 if shape[0] == 0 else 1)


def counting(monkeypatch):
    """Shapes of the products that are oneDNN's."""
    called, forward = [], precision.Product.forward

    def counted(ctx, x, weight, bias):
        called.append((*x.shape, *weight.shape))
        return forward(ctx, x, weight, bias)

    monkeypatch.setattr(precision.Product, "forward", staticmethod(counted))
    return called


@needs_float32
@pytest.mark.usefixtures("mkl_lags")
def test_the_check_of_onednns_products_can_fail(monkeypatch):
    layer, rows = torch.nn.Linear(40, 40), torch.randn(7, 40)
    right = precision.multiplied

    def forward_alone(x, weight, bias=None):
        found = right(x, weight, bias)
        return found if bias is not None else found.roll(1, -1)

    monkeypatch.setattr(precision, "multiplied", forward_alone)
    with pytest.raises(AssertionError):
        assert_multiplies_as_torch(layer, rows)


@needs_float32
@pytest.mark.usefixtures("mkl_lags")
def test_gradients_that_nobody_wants_are_not_made():
    _, layer = layers()
    layer.weight.requires_grad_(False)
    rows = torch.randn(7, 40)
    layer(rows).sum().backward()
    assert layer.weight.grad is None
    torch.testing.assert_close(layer.bias.grad, torch.full((24,), 7.0))


@needs_float32
@pytest.mark.usefixtures("mkl_lags")
def test_no_product_is_of_an_expanded_matrix(monkeypatch):
    """oneDNN takes minutes for what it does in milliseconds otherwise."""
    seen, right = [], precision.multiplied

    def noted(x, weight, bias=None):
        seen.extend(stride for y in (x, weight) for stride in y.stride())
        return right(x, weight, bias)

    monkeypatch.setattr(precision, "multiplied", noted)
    _, layer = layers()
    layer(torch.randn(7, 40, requires_grad=True)).sum().backward()
    assert len(seen) == 3 * 4 and 0 not in seen


def test_who_has_made_the_processor_decides(monkeypatch):
    lags = numerics.mkl_lags.__wrapped__
    at_256_bits = numerics.mkl_lags_at_256_bits.__wrapped__
    makers = {"vendor_id: GenuineIntel": False, "vendor_id: AuthenticAMD": True}
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    for capability in "AVX512", "AVX2":
        monkeypatch.setattr(
            torch.backends.cpu, "get_cpu_capability", lambda found=capability: found
        )
        for maker, slow in makers.items():
            monkeypatch.setattr(numerics, "maker", lambda found=maker: found)
            assert lags() == (slow and capability == "AVX512")
            assert at_256_bits() == (slow and capability == "AVX2")


def test_a_processor_names_its_maker():
    assert numerics.maker()


@needs_float32
@pytest.mark.parametrize(
    "family",
    [
        commands.SB,
        commands.ABD,
        ["--arch", "transformer_tiny", "--sb-direction", "r2l"],
    ],
    ids=["sb", "abd", "teacher"],
)
def test_a_whole_training_may_be_onednns(monkeypatch, data, tmp_path, family):
    """The same weights and hypotheses, whoever multiplies."""
    words = [*family, "--max-epoch", 2, "--no-epoch-checkpoints"]
    called = counting(monkeypatch)
    monkeypatch.setattr(precision, "MUCH", 1)
    weights, answers, counts = [], [], []
    for lags in False, True:
        monkeypatch.setattr(numerics, "mkl_lags", lambda found=lags: found)
        path = run_train(data, tmp_path / str(lags), *words)
        weights.append(load(path)["model"])
        answers.append(best(run_generate(data, path, *family[2:])))
        counts.append(len(called))
    assert counts[0] == 0 and counts[1] > 100
    for name, value in weights[0].items():
        torch.testing.assert_close(weights[1][name], value, rtol=0, atol=1e-3)
    for i, (score, text) in answers[0].items():
        assert answers[1][i][1] == text
        assert float(answers[1][i][0]) == pytest.approx(float(score), abs=1e-2)
