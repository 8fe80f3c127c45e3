"""What the search holds between two steps."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from sbnmt_plugin.search.pool import Pool


@dataclass
class Batch:
    """The sentences that are still being translated.

    Attributes:
        index: (B,) their places in the sample.
        max_len: (B,) most tokens before ``</s>``.
        first_end: no sentence's max_len is smaller.
        prefix: (B, P) how L2R hypotheses must begin, padded.
        prefix_len: (B,) tokens of it that are no padding.
        scores: (B, D, K) of the live hypotheses.
        tokens: (N, t + 1) with the start symbol.
        token_scores: (N, t) log-probability of each token.
        attention: (N, t, S) to the source, or None where it is not wanted.
        pool: their finished hypotheses.
        broken: (B,) bool, whether the model has given what is not a number.
    """

    index: Tensor
    max_len: Tensor
    first_end: int
    prefix: Tensor
    prefix_len: Tensor
    scores: Tensor
    tokens: Tensor
    token_scores: Tensor
    attention: Tensor | None
    pool: Pool
    broken: Tensor

    def select(self, sentences: Tensor, rows: Tensor) -> Batch:
        """These sentences (B',) alone, whose rows are ``rows`` (N',)."""
        return Batch(
            index=self.index[sentences],
            max_len=self.max_len[sentences],
            first_end=self.first_end,
            prefix=self.prefix[sentences],
            prefix_len=self.prefix_len[sentences],
            scores=self.scores[sentences],
            tokens=self.tokens[rows],
            token_scores=self.token_scores[rows],
            attention=None if self.attention is None else self.attention[rows],
            pool=self.pool.select(sentences),
            broken=self.broken[sentences],
        )
