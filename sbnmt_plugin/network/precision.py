"""Decoding with bfloat16 weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn


def to_bfloat16(model: Any) -> Any:
    """Turn a model's weights into bfloat16, in place, for decoding.

    On a CPU the weights of linear layers are also packed once, in the order in which
    oneDNN reads them; torch's ``linear`` packs them at every call, which takes as long
    as the product itself while there are few rows.
    """
    model.bfloat16()
    if can_pack():
        for module in model.modules():
            if type(module) is nn.Linear and module.weight.is_cpu:
                pack(module)
    return model


def can_pack() -> bool:
    """Whether this torch and this processor multiply packed bfloat16 weights.

    The two operators are those of torch's own compiler; where a version has none,
    products are torch's ``linear``: slower, and otherwise the same.
    """
    operators = torch.ops.mkldnn
    return (
        torch.backends.mkldnn.is_available()
        and hasattr(operators, "_reorder_linear_weight")
        and hasattr(operators, "_linear_pointwise")
        and operators._is_mkldnn_bf16_supported()
    )


def pack(linear: nn.Linear) -> None:
    """Make a layer multiply by a packed copy of its weight, from now on."""
    packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach())
    vars(linear)["forward"] = partial(packed_linear, packed, linear.bias)


def packed_linear(packed: Tensor, bias: Tensor | None, x: Tensor) -> Tensor:
    """``x`` (…, inputs) -> (…, outputs)."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return result
