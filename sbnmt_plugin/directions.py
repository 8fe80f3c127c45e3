"""The two writing directions: their tags, how rows are laid out, who looks at whom.

Shape letters, used in every docstring of the package:

    B  sentences                      T  target steps
    D  directions (0 = L2R, 1 = R2L)  S  source steps
    K  hypotheses per direction       C  channels, H heads
    N  rows = B * D * K               V  target vocabulary

Rows are sentence-major everywhere: ``row = (b * D + d) * K + k``.  Training is
the case K = 1; a one-directional teacher is the case D = 1.  All hypotheses of
a sentence are therefore neighbours, and "look at the other direction" is one
function, :func:`opposite`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

L2R, R2L = 0, 1
NAMES = ("l2r", "r2l")
TAGS = ("<l2r>", "<r2l>")
PAIRINGS = ("rank", "best")


@dataclass(frozen=True)
class Layout:
    """How the N rows of a batch split into sentences, directions and hypotheses.

    Args:
        directions: D, 2 for SB-NMT and 1 for a one-directional model.
        beam: K, hypotheses per direction.
        pairing: whom a hypothesis attends to on the other side: the one of the
            same ``rank``, or the ``best`` one (paper, footnote 2).
    """

    directions: int = 2
    beam: int = 1
    pairing: str = "rank"

    @property
    def group(self) -> int:
        """Rows of one sentence, D * K."""
        return self.directions * self.beam

    def split(self, rows: Tensor) -> Tensor:
        """View rows (N, ...) as (B, D, K, ...)."""
        split: Tensor = rows.unflatten(0, (-1, self.directions, self.beam))
        return split

    def rows_of(self, sentences: Tensor) -> Tensor:
        """Row numbers (len(sentences) * D * K) that belong to ``sentences``."""
        offsets = torch.arange(self.group, device=sentences.device)
        return (sentences[:, None] * self.group + offsets).flatten()


TRAINING = Layout()


def opposite(rows: Tensor, beam: int = 1, dim: int = 0) -> Tensor:
    """Give row (b, d, k) what row (b, 1 - d, k) holds.  Its own inverse.

    For B = 1 and K = 2 the rows l1 l2 r1 r2 become r1 r2 l1 l2.

    Args:
        rows: any tensor whose dimension ``dim`` has N = 2BK entries.
        beam: K.
    """
    grouped: Tensor = rows.unflatten(dim, (-1, 2, beam))  # N -> (B, 2, K)
    return grouped.flip(dim + 1).flatten(dim, dim + 2)


def reverse_tokens(tokens: Tensor) -> Tensor:
    """Turn one line, whose last entry is ``</s>``, into the other direction.

    Subword tokens are units: ``y_1 … y_n </s>`` becomes ``y_n … y_1 </s>``.
    Its own inverse.

    Args:
        tokens: (n + 1,) token ids, or the values that belong to them.
    """
    return torch.cat([tokens[:-1].flip(0), tokens[-1:]])
