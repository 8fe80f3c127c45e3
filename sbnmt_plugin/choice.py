"""Choosing next tokens: normalised scores of a vocabulary, and the best of a row.

The vocabulary is what a step is made of, so nothing here writes a second matrix of its
size.  Scores are natural log-probabilities; -inf marks what cannot be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

DEAD = float("-inf")
BLOCK = 128  # tokens that are looked at together in the search for the best
AT_A_TIME = 2**18  # logits whose exponentials are held at a time, in a CPU's cache


def rows_at_a_time(logits: Tensor) -> int:
    """How many rows of (n, V) logits to work on at a time: all, but on a CPU."""
    if not logits.is_cpu:
        return max(1, len(logits))
    return max(1, AT_A_TIME // logits.size(1))


def log_sum_exp(logits: Tensor) -> Tensor:
    """(N, V) -> (N,) log Σ exp, in float32 at least; not finite if a logit is not."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    largest = wide.amax(-1, keepdim=True)
    return (wide - largest).exp_().sum(-1).log_() + largest[:, 0]


@dataclass
class NextTokens:
    """Scores of the next tokens, not yet normalised: log p = logits - norm.

    A normaliser a row takes the place of a second matrix of the vocabulary's size.

    Attributes:
        logits: (N, V); -inf for a token that may not come.
        norm: (N,) log Σ exp of all logits, in float32 at least; not finite where the
            model has given what is not a number.
    """

    logits: Tensor
    norm: Tensor

    @classmethod
    def of_logits(cls, logits: Tensor) -> NextTokens:
        """Normalised by their own sum, that is a softmax, in float32 at least."""
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        parts = logits.split(rows_at_a_time(logits))
        return cls(logits, torch.cat([log_sum_exp(part) for part in parts]))

    @classmethod
    def of_lprobs(cls, lprobs: Tensor) -> NextTokens:
        """Log-probabilities as they are; a row with one that is no number has none."""
        wide = torch.promote_types(lprobs.dtype, torch.float32)
        norm = torch.zeros(len(lprobs), dtype=wide, device=lprobs.device)
        return cls(lprobs, norm.masked_fill_(lprobs.isnan().any(-1), math.nan))

    def lprobs(self) -> Tensor:
        """(N, V) log-probabilities."""
        return self.logits - self.norm[:, None]

    def lprob(self, rows: Tensor, tokens: Tensor | int) -> Tensor:
        """Log-probability of ``tokens`` in ``rows``."""
        return self.logits[rows, tokens] - self.norm[rows]


def top_in_order(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` best of the last dimension; among equals the lower index first.

    ``torch.topk`` promises no order among equals, nor which of them it takes, so
    one more is asked for: rows where it ties with the last are sorted.

    Returns:
        values, indices: (..., count) each.
    """
    size = scores.size(-1)
    values, index = scores.topk(min(count + 1, size))
    if size > count:
        last, next_one = values[..., count - 1], values[..., count]
        tied = (last == next_one) & (next_one > DEAD)
        if bool(tied.any()):
            ordered = scores[tied].sort(dim=-1, descending=True, stable=True).indices
            index[tied] = ordered[:, : count + 1]
    index = index[..., :count].sort(dim=-1).values
    values, order = scores.gather(-1, index).sort(dim=-1, descending=True, stable=True)
    return values, index.gather(-1, order)


def top_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` best tokens of each row; among equals the lower id first.

    Blocks are ranked by their best token first.  The M best tokens lie in the M best
    blocks: a block that is not among these has M better ones before it, each with a
    token that is better than all of its own.  With M = 2, blocks of 3 and the row

        2 9 1 | 4 7 7 | 8 0 0      blocks' best: 9 7 8

    only the first and the third block are looked into, and hold 9 and 8.

    Args:
        logits: (..., V).

    Returns:
        values, tokens: (..., count) each.
    """
    size = logits.size(-1)
    blocks, rest = divmod(size, BLOCK)
    if blocks <= count:
        return top_in_order(logits, count)
    best = logits[..., : blocks * BLOCK].unflatten(-1, (blocks, BLOCK)).amax(-1)
    if rest:
        best = torch.cat([best, logits[..., -rest:].amax(-1, keepdim=True)], dim=-1)
    _, chosen = top_in_order(best, count)
    chosen = chosen.sort(dim=-1).values  # lower ids first, as ties want it
    within = torch.arange(BLOCK, device=logits.device)
    tokens = (chosen[..., None] * BLOCK + within).flatten(-2)  # (..., count * BLOCK)
    found = logits.gather(-1, tokens.clamp(max=size - 1))
    found = found.masked_fill_(tokens >= size, DEAD)
    values, index = top_in_order(found, count)
    return values, tokens.gather(-1, index)
