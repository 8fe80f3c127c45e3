"""Section 5 (Table 6): how many parameters a checkpoint holds."""

from __future__ import annotations

import torch
from torch import Tensor

NO_PARAMETERS = ("version", "_float_tensor")
TIED = ("embed_tokens.weight", "output_projection.weight")


def count_parameters(weights: dict[str, Tensor]) -> int:
    """Parameters among a model's weights, shared ones once.

    Embeddings and the output matrix count once where they are one tensor, or equal
    copies of one, as in files whose writer did not keep the sharing.
    """
    seen: list[Tensor] = []
    total = 0
    for name, value in weights.items():
        if name.endswith(NO_PARAMETERS):
            continue
        if name.endswith(TIED):
            if any(x.shape == value.shape and torch.equal(x, value) for x in seen):
                continue
            seen.append(value)
        total += value.numel()
    return total
