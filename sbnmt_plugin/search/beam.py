"""The synchronous bidirectional beam: its state, and one step.

The step is pure functions on tensors (paper, section 3.1).  Scores are
sums of natural log-probabilities; -inf marks what cannot be: a dead slot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.numerics import DEAD
from sbnmt_plugin.search.pool import Pool
from sbnmt_plugin.search.top_k import top_in_order, top_tokens


@dataclass
class Batch:
    """Sentences that are still being translated.

    Attributes:
        index: (B,) their places in the sample.
        max_len: (B,) most tokens before ``</s>``.
        first_end: no sentence's max_len is smaller.
        worth: what the length penalty makes of L = 0, 1, …, see
            :meth:`penalties.LengthPenalty.worth`; of all that may be asked for.
        limit: (B,) most tokens with ``</s>`` that are sought: max_len + 1, and less
            once the pool is full, where ``--sb-stop horizon`` says so.
        prefix: (B, P) how answers must begin, padded.
        never: ids that are never generated.
        scores: (B, D, K) of the live hypotheses.
        first_rows: (B, D, 1) row of the first of each.
        tokens: (N, t + 1) with the start symbol.
        pool: their finished hypotheses.
        done: (B,) bool, who has an answer: whose pool is closed, though the sentence
            may go on in the batch.
    """

    index: Tensor
    max_len: Tensor
    first_end: int
    worth: Tensor
    limit: Tensor
    prefix: Tensor
    never: Tensor
    scores: Tensor
    first_rows: Tensor
    tokens: Tensor
    pool: Pool
    done: Tensor

    @property
    def longest(self) -> Tensor:
        """(B,) the length penalty's ``worth`` of the longest outputs."""
        return self.worth[self.limit]

    def select(self, sentences: Tensor, rows: Tensor) -> Batch:
        """Keep these sentences (B',), whose rows are ``rows`` (N',)."""
        own = "index", "max_len", "limit", "prefix", "scores", "done"
        return replace(
            self,
            **{name: getattr(self, name)[sentences] for name in own},
            first_rows=self.first_rows[: len(sentences)],
            tokens=self.tokens[rows],
            pool=self.pool.select(sentences),
        )


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


def expand(scores: Tensor, following: NextTokens) -> Candidates:
    """Rank each direction's K · V continuations: its top M = 2K, or all there are.

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
    totals = totals.nan_to_num_(DEAD, -DEAD, DEAD).flatten(2)  # (B, D, K * 2K)
    score, index = top_in_order(totals, min(2 * beam, beam * vocabulary))
    tokens = tokens.view(*scores.shape, each).flatten(2).gather(2, index)
    return Candidates(score, index // each, tokens)


def survivors(
    candidates: Candidates, beam: int, going: Tensor, last: Tensor
) -> Candidates:
    """Select the best K candidates of each direction that do not end: the next beam.

    Where fewer can live, a dead slot stays at -inf and copies rank 0's tokens, so
    that its opposite has somebody to attend to.  A direction with no live
    hypothesis repeats its rank 0's last token, for the same reason.

    Args:
        candidates: 2K per direction, at most K of which end.
        going: (B, D, 2K) bool, which do not.
        last: (B, D, K) the live hypotheses' last tokens.
    """
    # stable: the candidates that do not end come first, in their order
    order = going.sort(dim=2, descending=True, stable=True).indices[..., :beam]
    score = candidates.score.gather(2, order)
    dead = score == DEAD
    order = torch.where(dead, order[..., :1], order)
    parent, token = (x.gather(2, order) for x in (candidates.parent, candidates.token))
    none_lives = dead[..., :1]
    parent = parent.masked_fill(none_lives, 0)
    return Candidates(score, parent, torch.where(none_lives, last[..., :1], token))
