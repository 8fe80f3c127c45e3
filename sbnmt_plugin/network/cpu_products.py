"""Matrix products on a CPU: in bfloat16 or 8 bits, by weights packed for decoding."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from sbnmt_plugin.network.encoder import EncoderSelfAttention
from sbnmt_plugin.numerics import (
    NARROW,
    by_onednn,
    mkl_lags_at_256_bits,
    narrow_products,
)

FEW_ROWS = 64  # for which packing a float32 weight of so many elements pays:
LARGE, LESS_LARGE = 2**22, 2**18  # the latter where MKL lags at 256 bits
MANY_OUTPUTS = 2**17  # there it pays for all rows, given more outputs than inputs
# multiplications of a product from which oneDNN's pays where MKL lags: it makes a
# kernel for every new shape, which takes as long as MKL takes for these
MUCH = 2**24


def for_decoding(model: Any, bf16: bool = False, int8: bool = False) -> Any:
    """Convert a model, in place, as ``--sb-bf16`` or ``--sb-int8`` ask for it.

    With bfloat16 a CPU's linear layers multiply by packed weights, and the encoder's
    attention is computed in float32 as the decoder's is.  Calling it again changes
    nothing, and the model may be moved to another device at any time.

    Raises:
        ValueError: both of them, or a model of other narrow numbers, which were asked
            for too; see :func:`to_int8`.
    """
    dtypes = {p.dtype for p in model.parameters()}
    wide = dtypes == {torch.float32}
    if (int8 and (bf16 or not wide)) or (
        bf16 and (has_8_bits(model) or torch.float16 in dtypes)
    ):
        raise ValueError(NARROW)
    if int8:
        return to_int8(model)
    return for_processor(model.bfloat16() if bf16 else model)


def has_8_bits(model: Any) -> bool:
    """Tell whether :func:`to_int8` has changed a model."""
    return any(isinstance(module, Int8Linear) for module in model.modules())


def to_int8(model: Any) -> Any:
    """Let a decoder's linear layers multiply by 8-bit weights, in place.

    Each output has a scale of its own, and so has every product's input, found anew
    (:class:`Int8Linear`).  All the rest stays float32, and so does the encoder, which
    is run once a sentence.  Calling it again changes nothing.

    Raises:
        ValueError: a model that is not on a CPU; weights that are not finite, which 8
            bits would hide.
    """
    places = {p.device.type for p in model.parameters()}
    if places != {"cpu"}:
        raise ValueError(
            f"--sb-int8 multiplies on a CPU, but the model is on {', '.join(places)}: "
            "give --cpu, or leave it out (--fp16 is for a GPU)"
        )
    if has_8_bits(model):
        return model
    ends = [torch.stack(p.aminmax()) for p in model.parameters() if p.numel()]
    if not torch.stack(ends).isfinite().all():
        raise ValueError(
            "--sb-int8 needs a model whose weights are finite, but this one has some "
            "that are not: its training has diverged, take an earlier checkpoint"
        )
    encoder = set(model.encoder.modules())
    for module in set(model.modules()) - encoder:
        if type(module) in (nn.Linear, PackedLinear):
            module.__class__ = Int8Linear
    return pack(model)


def for_processor(model: Any) -> Any:
    """Choose a model's fastest products here, in place: see :class:`PackedLinear`.

    For training as for decoding.
    """
    widen_attention(model)
    return pack(model)


def pack(model: Any) -> Any:
    """Turn linear layers for which it may pay into :class:`PackedLinear`, in place."""
    for module in model.modules():
        if type(module) is nn.Linear and may_pay(module.weight):
            module.__class__ = PackedLinear
    return model


def widen_attention(model: Any) -> None:
    """Make a Transformer's encoder compute attention as our decoders do, in place."""
    layers = getattr(model.encoder, "layers", nn.ModuleList())
    for layer in layers._modules.values():  # those left out by layerdrop as well
        if type(getattr(layer, "self_attn", None)) is MultiheadAttention:
            layer.self_attn.__class__ = EncoderSelfAttention


def bfloat16_products(device: torch.device, wanted: bool = True) -> torch.autocast:
    """Return a context in which linear layers compute in bfloat16, on copied weights.

    For training (``--sb-autocast``).  Weights, their gradients, norms, residual sums,
    softmax and loss stay float32, and so does attention on a CPU where it is ours or
    :func:`widen_attention` has seen it; only the decoder of a teacher has fairseq's.
    fairseq's ``--bf16`` keeps no float32 weights on a CPU, and switches CUDA off.
    """
    return torch.autocast(device.type, torch.bfloat16, enabled=wanted)


@cache
def can_pack(dtype: torch.dtype) -> bool:
    """Tell whether this torch and this processor multiply packed weights of a dtype."""
    if not torch.backends.mkldnn.is_available():
        return False
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return dtype == torch.float32


def gets_copy(weight: Tensor) -> bool:
    """Tell whether a copy of a weight in oneDNN's own order pays."""
    least = LESS_LARGE if mkl_lags_at_256_bits() else LARGE
    return weight.numel() >= least or pays_for_all_rows(weight)


def pays_for_all_rows(weight: Tensor) -> bool:
    """Tell whether the copy of (outputs, inputs) pays for more than few rows, too."""
    if weight.dtype == torch.bfloat16:
        return True
    many = weight.size(0) > weight.size(1) and weight.numel() > MANY_OUTPUTS
    return many and weight.dtype == torch.float32 and mkl_lags_at_256_bits()


def may_pay(weight: Tensor) -> bool:
    """Tell whether oneDNN multiplies a weight here faster, for some number of rows."""
    faster = gets_copy(weight) or by_onednn(weight)
    return weight.is_cpu and faster and can_pack(weight.dtype)


class Product(torch.autograd.Function):
    """torch's ``linear`` by oneDNN, forward and backward: weights as they are."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Multiply (n, inputs) by (outputs, inputs), add (outputs,): (n, outputs)."""
        ctx.save_for_backward(x, weight)
        return multiplied(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of the arguments of :meth:`forward`."""
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        gradient = gradient.contiguous()  # oneDNN is very slow where it is expanded
        return (
            multiplied(gradient, weight.t()) if of_x else None,
            # this way round oneDNN needs no copy of the gradient, often the largest
            multiplied(x.t(), gradient.t()).t() if of_weight else None,
            gradient.sum(0) if of_bias else None,
        )


def multiplied(x: Tensor, weight: Any, bias: Tensor | None = None) -> Tensor:
    """Compute torch's ``linear`` by oneDNN; the weight may be in oneDNN's order."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


class PackedLinear(nn.Linear):
    """A linear layer whose products are oneDNN's where that is faster.

    Few rows are multiplied by a copy of the weight in oneDNN's own order.  torch's
    ``linear`` brings a bfloat16 weight into that order at every call, which takes as
    long as the product itself while there are few rows.  For float32 it calls MKL,
    which reads large weights for few rows (one sentence at a time) at half the speed,
    and on some processors smaller ones too, and those of more outputs than inputs for
    any number of rows (:func:`~sbnmt_plugin.numerics.mkl_lags_at_256_bits`); elsewhere
    a copy would not be worth its memory.  It is made at the first call and belongs to
    that very weight: another one, one that has been changed in place or one that is
    elsewhere now gets its own, and training drops it.

    Where MKL lags (:func:`~sbnmt_plugin.numerics.mkl_lags`) oneDNN multiplies by
    float32 weights as they are, for training too, if there is :data:`MUCH` to do.  All
    else is multiplied as ever, and the copy dropped where there may be a gradient.
    """

    _packed: tuple[Tensor, int, Any] | None = None  # weight, its version, the copy

    def train(self, mode: bool = True) -> PackedLinear:
        """Drop the copy: optimisers change weights without a new version."""
        if mode:
            self._packed = None
        return super().train(mode)

    def forward(self, x: Tensor) -> Tensor:
        """Turn (…, inputs) into (…, outputs)."""
        weight = self.weight
        pays = may_pay(weight) and not narrow_products(x)
        copied = pays and gets_copy(weight) and not torch.is_grad_enabled()
        rows = x.numel() // self.in_features
        if not copied:
            self._packed = None
        elif rows <= FEW_ROWS or pays_for_all_rows(weight):
            return multiplied(x, self._copy_of(weight), self.bias)
        if pays and by_onednn(x) and rows * weight.numel() >= MUCH:
            # of rows: more dimensions come as a view, which nobody may change in place
            result: Tensor = Product.apply(
                x.reshape(rows, self.in_features), weight, self.bias
            )
            return result.view(*x.shape[:-1], self.out_features)
        return super().forward(x)

    def _copy_of(self, weight: Tensor) -> Any:
        """Return the copy of this weight as it is now."""
        now = 0 if weight.is_inference() else weight._version  # such ones have none
        if self._packed is not None:
            known, version, copy = self._packed
            same = known.data_ptr() == weight.data_ptr()  # the known one still lives
            if same and version == now:
                return copy
        known = weight.detach()
        made = self._made_of(known)
        self._packed = known, now, made
        return made

    def _made_of(self, weight: Tensor) -> Any:
        """Make a weight's copy."""
        return torch.ops.mkldnn._reorder_linear_weight(weight)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the copy, which only oneDNN can read."""
        return {**vars(self), "_packed": None}


@cache
def short_sums() -> bool:
    """Tell whether the processor adds up products in 16 bits, as far as torch says."""
    if torch.backends.quantized.engine == "qnnpack":  # ARM's has sums of 32
        return False
    asked = getattr(torch.cpu, "_is_vnni_supported", None)
    return asked is None or not asked()


class Int8Linear(PackedLinear):
    """A linear layer that multiplies in 8 bits, and adds up in 32.

    Weights are rounded once, with a scale for each output; inputs at every call, with
    one scale and offset for all rows, so that a result depends a little on other rows.
    Where two products are added up in 16 bits, for want of VNNI, inputs have 7 bits.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Turn (…, inputs) into (…, outputs)."""
        weight = self.weight
        own = weight.is_cpu and weight.dtype == x.dtype == torch.float32
        if torch.is_grad_enabled() or not own:
            self._packed = None
            return nn.Linear.forward(self, x)
        copy = self._copy_of(weight)
        result: Tensor = torch.ops.quantized.linear_dynamic(x, copy, short_sums())
        return result if self.bias is None else result.add_(self.bias)

    def _made_of(self, weight: Tensor) -> Any:
        largest = weight.abs().amax(1).double().clamp_min(1e-12)
        zeros = torch.zeros(len(weight), dtype=torch.long)
        rounded = torch.quantize_per_channel(
            weight, largest / 127, zeros, 0, torch.qint8
        )
        return torch.ops.quantized.linear_prepack(rounded, None)
