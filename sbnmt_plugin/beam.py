"""One step of the synchronous bidirectional beam, and the pool of finished hypotheses.

Pure functions on tensors (paper, section 3.1; algorithm, section 6).  Scores are
sums of natural log-probabilities; -inf marks what cannot be: a dead slot, an
empty place in the pool.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.choice import DEAD, NextTokens, top_in_order, top_tokens

LENGTH_PENALTIES = ("gnmt", "power")
STOPS = ("bound", "first")
DEFAULT_BEAM = 4  # over both directions; fairseq's 5 is odd


@dataclass(frozen=True)
class LengthPenalty:
    """lp(n) by which the log-probability of n tokens, ``</s>`` counted, is divided.

    ``gnmt``: ((5 + n) / 6) ** α, the paper's.  ``power``: n ** α, fairseq's.
    α = 0 leaves the sum as it is (``--unnormalized``).
    """

    kind: str = "gnmt"
    alpha: float = 1.0

    def __call__(self, length: Tensor) -> Tensor:
        length = length.to(torch.float64)
        base = (5 + length) / 6 if self.kind == "gnmt" else length
        return base**self.alpha


@dataclass
class Candidates:
    """M continuations per direction, best first.

    Attributes:
        score: (B, D, M) log-probability of the continued hypothesis.
        parent: (B, D, M) rank of the hypothesis that is continued, 0 … K - 1.
        token: (B, D, M) what continues it.
    """

    score: Tensor
    parent: Tensor
    token: Tensor

    def take(self, index: Tensor) -> Candidates:
        """Keep, per direction, the candidates at ``index`` (B, D, M')."""
        return Candidates(
            *(x.gather(2, index) for x in (self.score, self.parent, self.token))
        )


def expand(scores: Tensor, following: NextTokens) -> Candidates:
    """The top 2K of each direction's K · V continuations.

    Each direction expands on its own.  2K, because at most K of them end (one a
    parent), so K that do not end are always among them.  They are among the 2K best
    of each hypothesis.  Ties: lower rank of the parent, then lower token id.

    Args:
        scores: (B, D, K) of the live hypotheses.
        following: (N, V) the next tokens.
    """
    beam = scores.size(2)
    vocabulary = following.logits.size(1)
    each = min(2 * beam, vocabulary)
    logits, tokens = top_tokens(following.logits, each)  # (N, 2K)
    gained = (logits - following.norm[:, None]).view(*scores.shape, each)
    totals = scores[..., None] + gained
    totals = totals.masked_fill_(totals.isnan(), DEAD).flatten(2)  # (B, D, K * 2K)
    score, index = top_in_order(totals, min(2 * beam, beam * vocabulary))
    tokens = tokens.view(*scores.shape, each).flatten(2).gather(2, index)
    return Candidates(score, index // each, tokens)


def survivors(candidates: Candidates, beam: int, eos: int, last: Tensor) -> Candidates:
    """The best K candidates of each direction that do not end: the next live beam.

    Where fewer can live, a dead slot stays at -inf and copies rank 1's tokens, so
    that its opposite has somebody to attend to.  A direction with no live
    hypothesis repeats its rank 1's last token, for the same reason.

    Args:
        candidates: 2K per direction.
        last: (B, D, K) the live hypotheses' last tokens.
    """
    ended = candidates.token == eos
    # stable: the candidates that do not end come first, in their order
    order = ended.to(torch.uint8).sort(dim=2, stable=True).indices[..., :beam]
    live = candidates.take(order)
    live.score = live.score.masked_fill(live.token == eos, DEAD)
    dead = live.score == DEAD
    none_lives = dead[..., :1]
    first_parent = live.parent[..., :1].masked_fill(none_lives, 0)
    first_token = torch.where(none_lives, last[..., :1], live.token[..., :1])
    live.parent = torch.where(dead, first_parent, live.parent)
    live.token = torch.where(dead, first_token, live.token)
    return live


@dataclass
class Pool:
    """The best P finished hypotheses of each direction, best first.

    The pool that both directions share (algorithm, 6.4) is the best P of these
    2P: see :func:`ranking`.

    Attributes:
        score: (B, D, P) logP / lp(n), -inf where the place is empty.
        length: (B, D, P) n, ``</s>`` counted; also the step at which it ended.
        total: (B, D, P) logP.
        fields: further tensors (B, D, P, L, …) that travel with the entries, such
            as tokens; L grows with the steps.
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
            length: n of all newcomers, ``</s>`` counted.
            fields: (B, D, M, n, …) each.

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
    logP / max(lp(t + 1), lp(max_len + 1)).  ``first``: the pool is full.  Either
    way a sentence without a live hypothesis is done.

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
    now = penalty(torch.full_like(max_len, length + 1))
    bound = best / torch.maximum(now, penalty(max_len + 1))
    full = worst > DEAD
    hopeless = full if stop == "first" else full & (bound <= worst)
    return hopeless | (best == DEAD)
