"""Length penalty: how sums of different lengths are compared, and what that bounds."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sbnmt_plugin.search.lengths import FORMULAS


@dataclass(frozen=True)
class LengthPenalty:
    """``total / lp(L)`` with an lp that only grows, or only falls, with L.

    The stop rule asks how good a hypothesis can still become, so it can be no other.

    Args:
        name: of lp, in :data:`lengths.FORMULAS`.
        alpha: ``--lenpen``; 0 leaves sums as they are (``--unnormalized``).
    """

    name: str = "gnmt"
    alpha: float = 1.0

    def worth(self, length: Tensor) -> Tensor:
        """Compute lp(L) in float64, one by one.

        The search asks once a batch, for all lengths that may come.

        Args:
            length: L, tokens with ``</s>``, of any shape.  0 may be among them; what
                is given for it is not used.
        """
        found: Tensor = FORMULAS[self.name](length.to(torch.float64), self.alpha)
        return found

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
