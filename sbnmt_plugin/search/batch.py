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
        worth: what the length penalty makes of L = 0, 1, …, see
            :meth:`penalties.LengthPenalty.worth`; of all that may be asked for.
        longest: (B,) that of the longest outputs, max_len + 1.
        prefix: (B, P) how L2R hypotheses must begin, padded.
        prefix_len: (B,) tokens of it that are no padding.
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
    longest: Tensor
    prefix: Tensor
    prefix_len: Tensor
    never: Tensor
    scores: Tensor
    first_rows: Tensor
    tokens: Tensor
    pool: Pool
    done: Tensor

    def select(self, sentences: Tensor, rows: Tensor) -> Batch:
        """These sentences (B',) alone, whose rows are ``rows`` (N',)."""
        return Batch(
            index=self.index[sentences],
            max_len=self.max_len[sentences],
            first_end=self.first_end,
            worth=self.worth,
            longest=self.longest[sentences],
            prefix=self.prefix[sentences],
            prefix_len=self.prefix_len[sentences],
            never=self.never,
            scores=self.scores[sentences],
            first_rows=self.first_rows[: len(sentences)],
            tokens=self.tokens[rows],
            pool=self.pool.select(sentences),
            done=self.done[sentences],
        )
