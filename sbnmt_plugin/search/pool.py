"""Pool of finished hypotheses, its ranking, and the rule that ends a search.

Pure functions on tensors (paper, section 3.1).  -inf marks an
empty place in the pool.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sbnmt_plugin.numerics import DEAD
from sbnmt_plugin.search.lengths import horizon
from sbnmt_plugin.search.penalties import LengthPenalty

STOPS = ("horizon", "bound", "first")  # the default first


@dataclass
class Pool:
    """The best P finished hypotheses of each direction, best first.

    The pool that both directions share is the best P of these
    2P: see :func:`ranking`.  What a hypothesis says is not kept here but read back from
    where it ended: see :mod:`backpointers`.

    Attributes:
        score: (B, D, P) logP / lp(L), -inf where the place is empty.
        ended: (B, D, P) where it ended, L · K + rank.
        beam: K.
    """

    score: Tensor
    ended: Tensor
    beam: int

    @property
    def length(self) -> Tensor:
        """(B, D, P) L; also the step at which it ended."""
        return self.ended // self.beam

    @property
    def rank(self) -> Tensor:
        """(B, D, P) its rank among the live ones before that step."""
        return self.ended % self.beam

    @classmethod
    def empty(cls, live: Tensor, size: int) -> Pool:
        """Make a pool of P = ``size`` places without entries, in float64.

        Args:
            live: (B, D, K) scores of hypotheses.
        """
        sentences, directions, beam = live.shape
        shape = sentences, directions, size
        score = torch.full(shape, DEAD, dtype=torch.float64, device=live.device)
        return cls(score, torch.zeros_like(score, dtype=torch.long), beam)

    def add(self, score: Tensor, length: int, rank: Tensor) -> Pool:
        """Merge M newly finished a direction.

        An entry gives way only to a strictly better one; of equal newcomers the
        one with the lower index stays.

        Args:
            score, rank: (B, D, M); the score is -inf where nothing has finished.
            length: L of all newcomers.
        """
        size = self.score.size(2)
        scores = torch.cat([self.score, score], dim=2)
        scores, order = scores.sort(dim=2, descending=True, stable=True)
        ended = torch.cat([self.ended, rank + length * self.beam], dim=2)
        return Pool(scores[..., :size], ended.gather(2, order[..., :size]), self.beam)

    def select(self, sentences: Tensor) -> Pool:
        """Return the pools of ``sentences`` alone."""
        score, ended = (x.index_select(0, sentences) for x in (self.score, self.ended))
        return Pool(score, ended, self.beam)

    @classmethod
    def of_parts(cls, parts: list[tuple[Tensor, Pool]]) -> Pool:
        """Join the pools of a sample's sentences, which are given piece by piece.

        Args:
            parts: places of sentences in the sample, and their pools; all places once.
        """
        order = torch.cat([index for index, _ in parts]).argsort()
        pools = [pool for _, pool in parts]
        columns = [pool.score for pool in pools], [pool.ended for pool in pools]
        score, ended = (torch.cat(column).index_select(0, order) for column in columns)
        return cls(score, ended, pools[0].beam)


def ranking(pool: Pool, answering: slice) -> tuple[Tensor, Tensor]:
    """Rank the finished hypotheses, best first: of both directions, or of one alone.

    Ties: the entry that finished earlier, then L2R before R2L, then the lower
    rank at that time.

    Args:
        answering: see :attr:`options.SearchOptions.answering`.

    Returns:
        score: (B, P).
        index: (B, P) places in the pool's directions and entries, flattened to DP.
    """
    size = pool.score.size(2)
    score, length = (x[:, answering].flatten(1) for x in (pool.score, pool.length))
    by_time = length.sort(dim=1, stable=True).indices
    order = score.gather(1, by_time).sort(dim=1, descending=True, stable=True).indices
    index = by_time.gather(1, order)[:, :size]
    return score.gather(1, index), index + answering.start * size


def best_scores(pool: Pool, answering: slice) -> Tensor:
    """Return the scores of :func:`ranking`, (B, P), -inf where a place is empty.

    Args:
        answering: as for :func:`ranking`.
    """
    size = pool.score.size(2)
    return pool.score[:, answering].flatten(1).topk(size).values


def within_horizon(limit: Tensor, best: Tensor, length: int) -> Tensor:
    """Lower the limits of sentences whose pool is full to :func:`lengths.horizon`.

    Asked after every step: that of the step which fills the pool is the least, and
    stays.  All places of the pool count, however many answers are asked for, which
    therefore are the same.

    Args:
        limit: (B,) most tokens with ``</s>`` that have been sought so far.
        best: (B, P): see :func:`best_scores`.
        length: tokens of what has finished in this step.
    """
    full = best[:, -1] > DEAD
    return torch.where(full, limit.clamp(max=horizon(length)), limit)


def finished(
    worst: Tensor,
    live: Tensor,
    now: Tensor,
    longest: Tensor,
    penalty: LengthPenalty,
    stop: str,
) -> Tensor:
    """Tell which sentences are done.

    ``bound``: no live hypothesis can still beat the last answer that is asked for, were
    it to end at the most favourable length with no further loss:
    :meth:`penalties.LengthPenalty.best_reachable`.  ``horizon``: the same, but once the
    pool is full, ``longest`` is no more than :func:`lengths.horizon` says.  ``first``:
    the pool is full, as in fairseq; only the best K candidates of a direction can have
    finished then (:attr:`options.SearchOptions.eos_candidates`), and one hypothesis
    alone, ``--beam 1`` of a teacher, is greedy search.  A sentence without a live
    hypothesis is done in any case.

    Departs from the paper's code, which looks at L2R only and stops whole batches.

    Args:
        worst: (B,) score of the last hypothesis that is to be final: of rank
            :attr:`options.SearchOptions.stop_rank`, -inf until that is taken.
        live: (B, D', K) scores of the live hypotheses that may still answer.
        now: () worth of their length if they ended in the next step.
        longest: (B,) worth of the longest output that is sought.

    Returns:
        (B,) bool.
    """
    best = live.flatten(1).amax(1).to(torch.float64)
    if stop == "first":
        return (worst > DEAD) | (best == DEAD)
    # -inf, for nobody lives, is the one bound that does not beat an empty place
    return penalty.best_reachable(best, now, longest) <= worst
