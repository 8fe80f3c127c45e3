"""Section 5 (Table 6): how many parameters a checkpoint holds."""

from __future__ import annotations

import zipfile
from typing import Any

import torch
from texts import ROOT as ROOT  # finds the checkout's package
from torch import Tensor

NO_PARAMETERS = ("version", "_float_tensor")
TIED = ("embed_tokens.weight", "output_projection.weight")


def count_parameters(state: dict[str, Tensor]) -> int:
    """Parameters of a model's state, shared ones once.

    Embeddings and the output matrix count once where they are one tensor, or equal
    copies of one, as in files whose writer did not keep the sharing.
    """
    seen: list[Tensor] = []
    total = 0
    for name, value in state.items():
        if name.endswith(NO_PARAMETERS):
            continue
        if name.endswith(TIED):
            if any(x.shape == value.shape and torch.equal(x, value) for x in seen):
                continue
            seen.append(value)
        total += value.numel()
    return total


def read_state(path: str) -> dict[str, Any]:
    """A checkpoint, loaded without running any code that it may hold.

    Raises:
        ValueError: it is no whole checkpoint, or holds more than tensors, settings
            and counters.
    """
    from sbnmt_plugin.checkpoints import allow_checkpoint_contents

    allow_checkpoint_contents()
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"--checkpoint {path} must be a whole checkpoint, but was cut off or is "
            "another kind of file: give the .pt file of a training"
        )
    try:
        state: dict[str, Any] = torch.load(
            path, map_location="cpu", weights_only=True, mmap=True
        )
    except Exception as error:
        raise ValueError(
            f"--checkpoint {path} must hold tensors, settings and counters only, but "
            f"torch's safe loading refuses it ({str(error).splitlines()[0][:120]}): "
            "use a checkpoint of fairseq's or of this plugin's"
        ) from error
    if not isinstance(state, dict) or "model" not in state:
        raise ValueError(
            f"--checkpoint {path} must be a fairseq checkpoint with a model, but has "
            "none: give the .pt file of a training"
        )
    return state
