"""Label-smoothed cross-entropy of logits, in place of the logits' own gradient."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sbnmt_plugin.numerics import rows_at_a_time, wide


class SmoothedLoss(torch.autograd.Function):
    """Label-smoothed cross-entropy of (n, V) logits, fairseq's formula::

        loss = (1 - ε - ε') · -log p(y) + ε' · Σ_v -log p(v),   ε' = ε / (V - 1)

    whose gradient is p - ε' - (1 - ε - ε') · [v = y].  Log-probabilities are never
    written down, and the gradient takes the place of the logits, so that they are the
    only matrix of their size: torch refuses a second backward pass.  Logits that are a
    leaf of the graph keep their values.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, labels: Tensor, epsilon: float, spend: bool
    ) -> tuple[Tensor, Tensor]:
        norms, sums = [], []
        for part in logits.split(rows_at_a_time(logits)):
            norms.append(part.to(wide(part.dtype)).logsumexp(-1))
            sums.append(part.sum(-1, dtype=norms[-1].dtype))
        norm, vocabulary = torch.cat(norms), logits.size(-1)
        nll = norm - logits.gather(1, labels[:, None])[:, 0]
        each = epsilon / (vocabulary - 1)
        smooth = vocabulary * norm - torch.cat(sums)
        ctx.save_for_backward(logits, labels, norm)
        ctx.epsilon, ctx.spend = epsilon, spend
        ctx.mark_non_differentiable(nll)
        return (1 - epsilon - each) * nll + each * smooth, nll

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, gradient: Tensor, _: Tensor
    ) -> tuple[Tensor, None, None, None]:
        logits, labels, norm = ctx.saved_tensors
        each = ctx.epsilon / (logits.size(-1) - 1)
        result = logits.detach() if ctx.spend else torch.empty_like(logits)
        size = rows_at_a_time(logits)
        parts = (x.split(size) for x in (logits, labels, norm, gradient, result))
        for part, label, row_norm, row_gradient, out in zip(*parts):
            p = (part - row_norm[:, None]).exp_().sub_(each)
            right = torch.full_like(row_norm, each + ctx.epsilon - 1)
            p.scatter_add_(1, label[:, None], right[:, None])
            out.copy_(p.mul_(row_gradient[:, None]))
        return result, None, None, None


def smoothed_loss(
    logits: Tensor, labels: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """Compute loss and -log p of each row's label, (n,), in float32 at least.

    Args:
        logits: (n, V).
        labels: (n,).
    """
    owner = logits if logits._base is None else logits._base
    spend = not owner.is_leaf
    loss, nll = SmoothedLoss.apply(logits, labels, epsilon, spend)
    return loss, nll
