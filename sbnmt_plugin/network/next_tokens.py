"""Scores of the next tokens, as a decoder hands them to the search.

The vocabulary takes most of a step's time, so nothing here writes a second matrix of
its size.  Scores are natural log-probabilities; -inf marks what cannot be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sbnmt_plugin.numerics import log_sum_exp, rows_at_a_time, wide


@dataclass
class NextTokens:
    """Scores of the next tokens, not yet normalised: log p = logits - norm.

    A normaliser a row takes the place of a second matrix of the vocabulary's size.

    Attributes:
        logits: (N, V); -inf for a token that may not come.
        norm: (N,) log Σ exp of all logits, in float32 at least; not finite where the
            model has given a NaN.
    """

    logits: Tensor
    norm: Tensor

    @classmethod
    def of_logits(cls, logits: Tensor) -> NextTokens:
        """Normalise (N, V) by their own sum, a softmax, in float32 at least."""
        logits = logits.to(wide(logits.dtype))
        parts = logits.split(rows_at_a_time(logits))
        norms = [log_sum_exp(part) for part in parts]
        return cls(logits, norms[0] if len(norms) == 1 else torch.cat(norms))

    @classmethod
    def of_lprobs(cls, lprobs: Tensor) -> NextTokens:
        """Take (N, V) log-probabilities; a row with a NaN has a norm of NaN."""
        norm = torch.zeros(len(lprobs), dtype=wide(lprobs.dtype), device=lprobs.device)
        return cls(lprobs, norm.masked_fill_(lprobs.isnan().any(-1), math.nan))

    def lprobs(self) -> Tensor:
        """Return log-probabilities (N, V)."""
        return self.logits - self.norm[:, None]

    def lprob(self, rows: Tensor, tokens: Tensor | int) -> Tensor:
        """Return log-probabilities (rows,) of ``tokens``, or of one, in ``rows``."""
        return self.logits[rows, tokens] - self.norm[rows]
