"""Source embeddings mapped among the target's: ``--enat-input map`` (eq. 6-9)::

    z̃_i     = e(x_i) W
    L_align = ‖ mean_i e(x_i) W - mean_t e(y_t) ‖₂                       a sentence
    L_adv   = mean_t log f(e(y_t)) + mean_i log(1 - f(e(x_i) W))         min W, max f
    f(v)    = σ(MLP(v)),   C -> C -> 1, ReLU

Embeddings are constants in both terms, which are functions of W and f alone: else
L_align is made small by shrinking them.  W begins as the identity: names and numbers
are the same in a joined dictionary.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from fairseq.modules import GradMultiply
from torch import Tensor, nn

from sbnmt_plugin.numerics import wide


def mean_of(values: Tensor, words: Tensor) -> Tensor:
    """Average over words: (B, L, …), (B, L) -> (B, …); 0 of an empty text."""
    count = words.sum(1).clamp(min=1)
    shape = words.shape + (1,) * (values.dim() - 2)
    total = (values * words.view(shape)).sum(1)
    return total / count.view(-1, *(1,) * (values.dim() - 2))


class Mapping(nn.Module):
    """W, and where the adversary has a weight, f.

    Args:
        channels: C.
        align: μ.
        adversary: λ; 0: there is no f.
    """

    def __init__(self, channels: int, align: float, adversary: float) -> None:
        super().__init__()
        self.map = nn.Linear(channels, channels, bias=False)
        nn.init.eye_(self.map.weight)
        self.align, self.adversary = align, adversary
        self.judge = None
        if adversary:
            inner = nn.Linear(channels, channels)
            self.judge = nn.Sequential(inner, nn.ReLU(), nn.Linear(channels, 1))

    def forward(self, embedded: Tensor) -> Tensor:
        """Map embeddings: e(x) W, (…, C)."""
        mapped: Tensor = self.map(embedded)
        return mapped

    def terms(
        self, source: Tensor, words: Tensor, target: Tensor, others: Tensor
    ) -> Tensor:
        """Compute both terms: see the module.

        -L_adv is descended, but its gradient is turned round and multiplied by λ where
        it reaches W, so that one update is a step down for W and a step up for f.

        Args:
            source: e(x), (B, S, C).
            words: (B, S) True at words: not at padding, nor at ``</s>``.
            target: e(y), (B, T, C).
            others: (B, T), likewise.

        Returns:
            (B,) μ L_align - L_adv of each sentence.
        """
        mapped, target = self.map(source.detach()), target.detach()
        numbers = wide(mapped.dtype)
        means = mean_of(mapped.to(numbers), words), mean_of(target.to(numbers), others)
        loss = self.align * torch.linalg.vector_norm(means[0] - means[1], dim=-1)
        if self.judge is not None:
            real = self.judge(target)[..., 0].to(numbers)
            turned = GradMultiply.apply(mapped, -self.adversary)
            false = self.judge(turned)[..., 0].to(numbers)
            adversary = mean_of(F.logsigmoid(real), others)
            adversary = adversary + mean_of(F.logsigmoid(-false), words)
            loss = loss - adversary
        return loss
