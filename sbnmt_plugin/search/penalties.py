"""Length penalties: how sums of different lengths are compared, and what that bounds.

A penalty is a class with the three methods of :class:`LengthPenalty`, under a name in
:data:`LENGTH_PENALTIES`; that is all there is to a new one.  The stop rule asks it how
good a hypothesis can still become, so a penalty for which that is not known cannot be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class LengthPenalty(Protocol):
    """Turns log-probabilities of hypotheses of different lengths into scores."""

    @property
    def alpha(self) -> float:
        """``--lenpen``; 0 leaves sums as they are (``--unnormalized``)."""

    def worth(self, length: Tensor) -> Tensor:
        """Value of lengths for the other methods, in float64, element by element.

        The search asks once a batch, for all lengths that may come.

        Args:
            length: L, tokens with ``</s>``, of any shape.  0 may be among them; what
                is given for it is not used.
        """

    def score(self, total: Tensor, worth: Tensor) -> Tensor:
        """Score finished hypotheses.

        Args:
            total: log-probability, ≤ 0.
            worth: of their lengths; of a shape that goes with ``total``.
        """

    def best_reachable(self, total: Tensor, now: Tensor, longest: Tensor) -> Tensor:
        """Return the best score that live hypotheses can still get.

        No hypothesis whose log-probability is ≤ ``total`` and whose length is between
        the two may score better.

        Args:
            total: log-probability so far, ≤ 0.
            now: worth of the length if it ended in the next step.
            longest: worth of the longest that is allowed, which is not shorter.
        """


@dataclass(frozen=True)
class Division:
    """``total / lp(L)`` with an lp that only grows, or only falls, with L."""

    alpha: float = 1.0

    def worth(self, length: Tensor) -> Tensor:
        """lp(L), in float64."""
        raise NotImplementedError

    def score(self, total: Tensor, worth: Tensor) -> Tensor:
        """See :class:`LengthPenalty`."""
        return total / worth

    def best_reachable(self, total: Tensor, now: Tensor, longest: Tensor) -> Tensor:
        """See :class:`LengthPenalty`: a negative sum divided by as much as can be,
        which is at one of the two ends."""
        return total / torch.maximum(now, longest)


@dataclass(frozen=True)
class Gnmt(Division):
    """lp(L) = ((5 + L) / 6) ** α, the paper's (Wu et al., 2016)."""

    def worth(self, length: Tensor) -> Tensor:
        """lp(L), in float64."""
        return ((5 + length.to(torch.float64)) / 6) ** self.alpha


@dataclass(frozen=True)
class Power(Division):
    """lp(L) = L ** α, fairseq's."""

    def worth(self, length: Tensor) -> Tensor:
        """lp(L), in float64."""
        return length.to(torch.float64) ** self.alpha


LENGTH_PENALTIES: dict[str, Callable[[float], LengthPenalty]] = {
    "gnmt": Gnmt,
    "power": Power,
}


def name_of(penalty: LengthPenalty) -> str:
    """Return the name by which a penalty is chosen."""
    return next(n for n, kind in LENGTH_PENALTIES.items() if type(penalty) is kind)
