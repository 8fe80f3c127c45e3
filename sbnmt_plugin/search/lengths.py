"""Length penalties, for numbers and tensors alike, and the horizon; no torch.

The search takes them through :mod:`penalties`, an exported model through
:mod:`tools.models.ctranslate2_engine`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

LARGEST_ALPHA = 20  # with more, scores can no longer be told apart
LARGEST_WEIGHT = 10**6  # of rescoring: with more, the search's own counts no more


def gnmt(length: Any, alpha: float) -> Any:
    """Return ((5 + L) / 6) ** α, the paper's (Wu et al., 2016)."""
    return ((5 + length) / 6) ** alpha


def power(length: Any, alpha: float) -> Any:
    """Return L ** α, fairseq's."""
    return length**alpha


# each only grows, or only falls, with L, whatever α is
FORMULAS: dict[str, Callable[[Any, float], Any]] = {"gnmt": gnmt, "power": power}


def horizon(length: int) -> int:
    """Return h = ⌊1.25 n⌋ + 5, most tokens with ``</s>`` that a full pool waits for.

    Departs from the paper, which knows a limit by the source's length alone.  With 2
    for 5 short texts would have no room for a longer, better one.

    Args:
        length: n, the tokens of the hypothesis with which the pool has become full.
    """
    return 5 * length // 4 + 5
