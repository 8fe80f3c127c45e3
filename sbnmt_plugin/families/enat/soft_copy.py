"""Stretching a sequence to another length: the decoder input of ENAT (§4.2)::

    z_t = Σ_i ω_ti z̃_i ,   ω_ti ∝ exp(-(t - i T/Z)² / τ) ,   i, t from 1

from Z inputs to T outputs.  i and t count tokens, wherever padding stands.

Departs from the paper, whose ω are not normalised: an input has a total weight of
0.74-1.02 at T/Z = 1.1, but of 0.44 at 1.5 and 0.04 at 2, where every second output is
all but empty.  Here those of an output sum to 1; ``raw`` gives the paper's.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sbnmt_plugin.numerics import DEAD, wide

TEMPERATURE = 0.3  # τ


def stretch_weights(
    read: Tensor,
    written: Tensor,
    raw: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """ω, (B, T, Z), in numbers of this type.

    Args:
        read: (B, Z) True at inputs, False at padding.
        written: (B, T) True at outputs.
        raw: whether they are left as they are.
    """
    i, t = (places.cumsum(1, dtype=dtype) for places in (read, written))
    rate = t.amax(1, keepdim=True) / i.amax(1, keepdim=True).clamp(min=1)  # T/Z
    distance = t[:, :, None] - (i * rate)[:, None]
    logits = (-(distance**2) / TEMPERATURE).masked_fill(~read[:, None], DEAD)
    return logits.exp() if raw else logits.softmax(-1)


def stretch(inputs: Tensor, read: Tensor, written: Tensor, raw: bool = False) -> Tensor:
    """z (B, T, C) of z̃ (B, Z, C), in its numbers: see :func:`stretch_weights`."""
    weights = stretch_weights(read, written, raw, wide(inputs.dtype))
    return (weights @ inputs.to(weights.dtype)).to(inputs.dtype)
