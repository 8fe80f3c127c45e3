"""Length penalties: how sums of different lengths are compared, and what that bounds.

A penalty is a class with what :class:`LengthPenalty` has, under a name in
:data:`LENGTH_PENALTIES`; that is all there is to a new one.  The stop rule asks it how
good a hypothesis can still become, so a penalty for which that is not known cannot be.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sbnmt_plugin.search.lengths import gnmt, power


@dataclass(frozen=True)
class LengthPenalty:
    """``total / lp(L)`` with an lp that only grows, or only falls, with L.

    A subclass says what lp is; one of another form says all three methods anew.

    Args:
        alpha: ``--lenpen``; 0 leaves sums as they are (``--unnormalized``).
    """

    alpha: float = 1.0

    def worth(self, length: Tensor) -> Tensor:
        """Value of lengths for the other methods, lp(L) in float64, one by one.

        The search asks once a batch, for all lengths that may come.

        Args:
            length: L, tokens with ``</s>``, of any shape.  0 may be among them; what
                is given for it is not used.
        """
        raise NotImplementedError

    def score(self, total: Tensor, worth: Tensor) -> Tensor:
        """Score finished hypotheses.

        Args:
            total: log-probability, ≤ 0.
            worth: of their lengths; of a shape that goes with ``total``.
        """
        return total / worth

    def best_reachable(self, total: Tensor, now: Tensor, longest: Tensor) -> Tensor:
        """Return the best score that live hypotheses can still get.

        No hypothesis whose log-probability is ≤ ``total`` and whose length is between
        the two may score better.  Here it is a negative sum divided by as much as can
        be, which is at one of the two ends.

        Args:
            total: log-probability so far, ≤ 0.
            now: worth of the length if it ended in the next step.
            longest: worth of the longest that is allowed, which is not shorter.
        """
        return total / torch.maximum(now, longest)


@dataclass(frozen=True)
class Gnmt(LengthPenalty):
    """The paper's penalty: see :func:`lengths.gnmt`."""

    def worth(self, length: Tensor) -> Tensor:
        """lp(L), in float64."""
        found: Tensor = gnmt(length.to(torch.float64), self.alpha)
        return found


@dataclass(frozen=True)
class Power(LengthPenalty):
    """fairseq's penalty: see :func:`lengths.power`."""

    def worth(self, length: Tensor) -> Tensor:
        """lp(L), in float64."""
        found: Tensor = power(length.to(torch.float64), self.alpha)
        return found


LENGTH_PENALTIES: dict[str, type[LengthPenalty]] = {"gnmt": Gnmt, "power": Power}


def name_of(penalty: LengthPenalty) -> str:
    """Return the name by which a penalty is chosen."""
    return next(n for n, kind in LENGTH_PENALTIES.items() if type(penalty) is kind)
