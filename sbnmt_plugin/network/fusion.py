"""Fusion of history and future attention (paper, section 3.2.1, equations 4-6)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sbnmt_plugin.network.dot_product import Parts

FUSIONS = ("tanh", "linear", "relu", "gate")
ACTIVATIONS = {"linear": nn.Identity, "tanh": nn.Tanh, "relu": nn.ReLU}
DEFAULT_LAMBDA = 0.1


class Interpolation(nn.Module):
    """``history + λ · f(future)``, equations 4 (f = identity) and 5 (tanh, relu).

    Args:
        kind: ``linear``, ``tanh`` or ``relu``.
        weight: λ; 0 in a model of one direction, which has no future.
        channels: C.  Where given, λ is learned: C values that start at
            ``weight`` (the paper's footnote 3 leaves this to the future).
        dropout: rate on the future in training, before f.  The authors' release
            uses 0.3; the paper does not mention it.
    """

    def __init__(
        self,
        kind: str,
        weight: float,
        channels: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[kind]()
        self.dropout = nn.Dropout(dropout)
        self.weight: float | nn.Parameter = weight
        if channels is not None:
            del self.weight
            self.weight = nn.Parameter(torch.full((channels,), float(weight)))

    @property
    def adds(self) -> bool:
        """Tell whether anything is added of the future: not with a fixed λ of 0."""
        return isinstance(self.weight, Tensor) or self.weight != 0

    def forward(self, history: Tensor, future: Tensor | None = None) -> Parts:
        """Return the contributions of both, per head, whose sum is the fusion."""
        if future is None:
            return Parts(history, None)
        addition: Tensor = self.activation(self.dropout(future))
        if isinstance(self.weight, Tensor):  # C -> (H, 1, C/H)
            return Parts(history, self.weight.view(history.size(1), 1, -1) * addition)
        return Parts(history, self.weight * addition)


class Gate(nn.Module):
    """``r ⊙ history + z ⊙ future``, ``[r; z] = σ(W_g [history; future])``, eq. 6.

    One W_g of 2(C/H) x 2(C/H) a layer, shared by its heads, without a bias.

    Args:
        head_dim: C/H.
        dropout: as in :class:`Interpolation`.
    """

    adds = True

    def __init__(self, head_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.projection = nn.Linear(2 * head_dim, 2 * head_dim, bias=False)
        nn.init.xavier_uniform_(self.projection.weight)

    def forward(self, history: Tensor, future: Tensor | None = None) -> Parts:
        """Return the contributions of both; no future counts as one of zeros."""
        if future is None:
            kept, _ = self.forward(history, torch.zeros_like(history))
            return Parts(kept, None)
        future = self.dropout(future)
        joined = torch.cat([history, future], dim=-1)
        weight = self.projection.weight.to(joined.dtype)  # attention's may be wider
        gates = F.linear(joined, weight).sigmoid()
        keep, take = gates.chunk(2, dim=-1)
        return Parts(keep * history, take * future)


def build_fusion(cfg: Any, channels: int) -> nn.Module:
    """Build the fusion of ``--sb-fusion``, ``--sb-lambda`` and their like.

    Raises:
        ValueError: an unknown kind, a λ for the gate or one that is not
            finite, a rate outside [0, 1).
    """
    kind, weight, dropout = str(cfg.sb_fusion), cfg.sb_lambda, cfg.sb_future_dropout
    if kind not in FUSIONS:
        raise ValueError(
            f"--sb-fusion must be one of {', '.join(FUSIONS)}, but is {kind!r} instead"
        )
    if not 0 <= dropout < 1:
        raise ValueError(
            f"--sb-future-dropout must be in [0, 1), but is {dropout} instead"
        )
    if kind == "gate":
        if weight is not None or cfg.sb_learn_lambda:
            raise ValueError(
                "--sb-fusion gate has no λ: drop --sb-lambda and --sb-learn-lambda"
            )
        return Gate(channels // cfg.decoder.attention_heads, dropout)
    weight = DEFAULT_LAMBDA if weight is None else weight
    if not abs(weight) < float("inf"):
        raise ValueError(f"--sb-lambda must be finite, but is {weight} instead")
    learned = channels if cfg.sb_learn_lambda else None
    return Interpolation(kind, weight, learned, dropout)
