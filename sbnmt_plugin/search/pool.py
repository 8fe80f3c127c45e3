"""The pool of finished hypotheses, its ranking, and when a sentence is done.

Pure functions on tensors (paper, section 3.1; algorithm, section 6).  -inf marks an
empty place in the pool.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.numerics import DEAD
from sbnmt_plugin.search.penalties import LengthPenalty

STOPS = ("bound", "first")


@dataclass
class Pool:
    """The best P finished hypotheses of each direction, best first.

    The pool that both directions share (algorithm, 6.4) is the best P of these
    2P: see :func:`ranking`.

    Attributes:
        score: (B, D, P) logP / lp(L), -inf where the place is empty.
        length: (B, D, P) L; also the step at which it ended.
        total: (B, D, P) logP.
        fields: further tensors (B, D, P, t, …) that travel with the entries, such as
            tokens: L of the t entries are the hypothesis's; t grows with the steps.
    """

    score: Tensor
    length: Tensor
    total: Tensor
    fields: dict[str, Tensor]

    @classmethod
    def empty(cls, sentences: int, directions: int, size: int, like: Tensor) -> Pool:
        """A pool without entries on the device of ``like``, in float64."""
        shape = (sentences, directions, size)
        score = torch.full(shape, DEAD, dtype=torch.float64, device=like.device)
        length = torch.zeros(shape, dtype=torch.long, device=like.device)
        return cls(score, length, score.clone(), {})

    def add(
        self, score: Tensor, length: int, total: Tensor, fields: dict[str, Tensor]
    ) -> Pool:
        """Merge M newly finished a direction.

        An entry gives way only to a strictly better one; of equal newcomers the
        one with the lower index stays.

        Args:
            score, total: (B, D, M), -inf where nothing has finished.
            length: L of all newcomers.
            fields: (B, D, M, L, …) each.

        Returns:
            Pool: the merged one.
        """
        size = self.score.size(2)
        scores = torch.cat([self.score, score], dim=2)
        order = scores.sort(dim=2, descending=True, stable=True).indices[..., :size]
        lengths = torch.cat([self.length, torch.full_like(score, length).long()], 2)
        totals = torch.cat([self.total, total], dim=2)
        merged = {}
        for name, new in fields.items():
            old = self.fields.get(name)
            if old is None:
                old = new.new_zeros(*self.score.shape, *new.shape[3:])
            grown = [0, 0] * (new.dim() - 4) + [0, new.size(3) - old.size(3)]
            both = torch.cat([F.pad(old, grown), new], dim=2)
            merged[name] = take_along(both, order)
        return Pool(
            scores.gather(2, order),
            lengths.gather(2, order),
            totals.gather(2, order),
            merged,
        )

    def select(self, sentences: Tensor) -> Pool:
        """The pools of ``sentences`` alone."""
        return Pool(
            self.score[sentences],
            self.length[sentences],
            self.total[sentences],
            {name: field[sentences] for name, field in self.fields.items()},
        )


def take_along(values: Tensor, index: Tensor) -> Tensor:
    """``values`` (B, D, M, …) at ``index`` (B, D, M') along the third dimension."""
    index = index.view(*index.shape, *[1] * (values.dim() - 3))
    return values.gather(2, index.expand(-1, -1, -1, *values.shape[3:]))


def ranking(pool: Pool, direction: int | None = None) -> tuple[Tensor, Tensor]:
    """The answering pool, best first: of both directions, or of one alone.

    Ties: the entry that finished earlier, then L2R before R2L, then the lower
    rank at that time.

    Returns:
        score: (B, P).
        index: (B, P) places in the pool's directions and entries, flattened to DP.
    """
    size = pool.score.size(2)
    score, length = pool.score, pool.length
    offset = 0
    if direction is not None:
        score, length = (x[:, direction : direction + 1] for x in (score, length))
        offset = direction * size
    score, length = score.flatten(1), length.flatten(1)
    by_time = length.sort(dim=1, stable=True).indices
    order = score.gather(1, by_time).sort(dim=1, descending=True, stable=True).indices
    index = by_time.gather(1, order)[:, :size]
    return score.gather(1, index), index + offset


def finished(
    worst: Tensor,
    live: Tensor,
    length: int,
    max_len: Tensor,
    penalty: LengthPenalty,
    stop: str = "bound",
) -> Tensor:
    """Which sentences are done.

    ``bound``: the pool is full and no live hypothesis can still beat its worst
    entry, were it to end at the most favourable length with no further loss:
    :meth:`penalties.LengthPenalty.best_reachable`.  ``first``: the pool is full, as in
    fairseq; only the best K candidates of a direction can have finished then
    (:attr:`options.SearchOptions.finishing`), and one hypothesis alone, ``--beam 1`` of
    a teacher, is greedy search.  Either way a sentence without a live hypothesis is
    done.

    Departs from the paper's code, which looks at L2R only and stops whole batches.

    Args:
        worst: (B,) score of the answering pool's last place, -inf until full.
        live: (B, D', K) scores of the live hypotheses that may still answer.
        length: t, tokens that each of them has.
        max_len: (B,) most tokens before ``</s>``.

    Returns:
        (B,) bool.
    """
    best = live.flatten(1).amax(1).to(torch.float64)
    now = torch.full_like(max_len, length + 1)
    bound = penalty.best_reachable(best, now, max_len + 1)
    full = worst > DEAD
    hopeless = full if stop == "first" else full & (bound <= worst)
    return hopeless | (best == DEAD)
