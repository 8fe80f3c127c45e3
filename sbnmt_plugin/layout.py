"""Layout of rows by writing direction, and pairing of the directions.

Shape letters, used in every docstring of the package:

    B  sentences                      T  target steps         C  channels
    D  directions (0 = L2R, 1 = R2L)  S  source steps         H  heads
    K  hypotheses per direction       V  target vocabulary    n  rows that are computed
    G  rows of a sentence = D * K     Q  queries of a stream: the T steps of training,
    N  rows = B * D * K                  the K hypotheses of a step of the search
    P  places in a pool of finished   T' keys of a stream: the T steps of training,
       hypotheses, and the tokens        K slots for each step of the search
       of a forced prefix             M  candidates that are looked at, best first
    t  steps of the search so far     L  tokens of a finished hypothesis, with </s>

A stream is what one direction of a sentence writes; a batch has BD of them.  Rows are
sentence-major everywhere: ``row = (b * D + d) * K + k``.  Training is the case K = 1; a
one-directional teacher is the case D = 1.  All hypotheses of a sentence are therefore
neighbours, and "look at the other direction" is one function, :func:`opposite`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sbnmt_plugin.symbols import NAMES as NAMES

L2R, R2L = 0, 1
DEFAULT_BEAM = 4  # k, over both directions; fairseq's 5 is odd


@dataclass(frozen=True)
class Pairing:
    """Choice of the hypothesis of the other side that a hypothesis attends to.

    The partner of hypothesis k of sentence b is the one of rank :meth:`rank` (k) of the
    other direction of sentence b - :attr:`shift`, counted round the batch.

    Attributes:
        name: for options and messages.
        best: everyone's partner is the other side's best (paper, footnote 2), not the
            one of the same rank.
        shift: sentences that partners are moved by; 0 but in a probe.
    """

    name: str
    best: bool = False
    shift: int = 0

    def rank(self, rank: int) -> int:
        """Return the rank of the partner of the hypothesis of this rank."""
        return 0 if self.best else rank

    def partners(self, values: Tensor, dim: int) -> Tensor:
        """Give hypotheses what their partners hold along ``dim`` (K entries)."""
        return values.narrow(dim, 0, 1).expand_as(values) if self.best else values


RANK = Pairing("rank")
BEST = Pairing("best", best=True)
PAIRINGS = {pairing.name: pairing for pairing in (RANK, BEST)}  # a user's choice


@dataclass(frozen=True)
class Layout:
    """Split of the N rows of a batch into sentences, directions and hypotheses.

    Args:
        directions: D, 2 for SB-NMT and 1 for a one-directional model.
        beam: K, hypotheses per direction.
        pairing: whom a hypothesis attends to on the other side.
    """

    directions: int = 2
    beam: int = 1
    pairing: Pairing = RANK

    @property
    def group(self) -> int:
        """Rows of one sentence, G."""
        return self.directions * self.beam

    def split(self, rows: Tensor) -> Tensor:
        """View rows (N, ...) as (B, D, K, ...)."""
        return rows.view(-1, self.directions, self.beam, *rows.shape[1:])

    def read_by(self, streams: Tensor) -> Tensor:
        """Give stream (b, d) what the stream holds that reads it across.

        Args:
            streams: (BD, ...), D = 2.
        """
        return moved(opposite(streams), -2 * self.pairing.shift)

    def reads(self, streams: Tensor) -> Tensor:
        """Give stream (b, d) what the stream holds that it reads across.

        This is the inverse of :meth:`read_by`.
        """
        return opposite(moved(streams, 2 * self.pairing.shift))

    def partners(self, rows: Tensor) -> Tensor:
        """Give row (b, d, k) what its partner's row holds.

        Args:
            rows: (N, ...), D = 2.
        """
        streams = rows.unflatten(0, (-1, self.beam))  # N -> (BD, K)
        return self.pairing.partners(self.reads(streams), 1).flatten(0, 1)

    def rows_of(self, sentences: Tensor) -> Tensor:
        """Return the row numbers (B' * G,) that belong to ``sentences`` (B',)."""
        offsets = torch.arange(self.group, device=sentences.device)
        return (sentences[:, None] * self.group + offsets).flatten()


TRAINING = Layout()


def opposite(streams: Tensor) -> Tensor:
    """Give stream (b, d) what stream (b, 1 - d) holds.  Its own inverse.

    Args:
        streams: (2B, …).
    """
    grouped: Tensor = streams.unflatten(0, (-1, 2))
    return grouped.flip(1).flatten(0, 1)


def moved(streams: Tensor, by: int) -> Tensor:
    """Move every stream ``by`` places further on, round the batch."""
    return streams.roll(by, 0) if by else streams


def live_places(real: Tensor) -> Tensor:
    """Find the places at which streams have a token, in the order of a packed batch.

    Args:
        real: (BD, T) True where a stream has a token.

    Returns:
        (n,) places of the time-major grid (T, BD), ascending.
    """
    return real.t().flatten().nonzero().squeeze(1)


def reverse_tokens(tokens: Tensor) -> Tensor:
    """Turn one line, whose last entry is ``</s>``, into the other direction.

    Subword tokens are units: ``y_1 y_2 y_3 </s>`` becomes ``y_3 y_2 y_1 </s>``.
    Its own inverse.

    Args:
        tokens: (L, …) token ids, or the values that belong to them.
    """
    return torch.cat([tokens[:-1].flip(0), tokens[-1:]])
