"""What the search is asked to do, and what it holds between two steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from sbnmt_plugin.beam import DEFAULT_BEAM, LengthPenalty, Pool
from sbnmt_plugin.directions import L2R, NAMES, R2L, Layout

PREFIX_NEEDS_L2R = (
    "--prefix-size binds the start of the text, which R2L decoding writes last: it "
    "needs L2R hypotheses that may answer"
)


@dataclass(frozen=True)
class Symbols:
    """Token ids that the search knows by name.

    Attributes:
        starts: (D,) first decoder input of each direction.
        never: ids that are never generated: padding and the tags.
    """

    pad: int
    eos: int
    unk: int
    starts: tuple[int, ...]
    never: tuple[int, ...]


@dataclass(frozen=True)
class SearchOptions:
    """What the search is asked to do; the defaults are fairseq's where it has one.

    Attributes:
        beam: k, hypotheses per sentence over all directions.
        directions: which ones write: (L2R, R2L), or a teacher's only one.
        answer: ``best``, or the direction that alone may answer.
    """

    beam: int = DEFAULT_BEAM
    directions: tuple[int, ...] = (L2R, R2L)
    pairing: str = "rank"
    penalty: LengthPenalty = field(default_factory=LengthPenalty)
    stop: str = "bound"
    answer: str = "best"
    min_len: int = 1
    max_len_a: float = 0
    max_len_b: int = 200
    unkpen: float = 0
    temperature: float = 1.0
    no_repeat_ngram_size: int = 0
    print_alignment: str | None = None

    @property
    def layout(self) -> Layout:
        directions = len(self.directions)
        return Layout(directions, self.beam // directions, self.pairing)

    @property
    def answering(self) -> int | None:
        """Place, among the directions, of the one that alone may answer."""
        if self.answer == "best":
            return None
        return self.directions.index(NAMES.index(self.answer))


@dataclass
class Batch:
    """The sentences that are still being translated.

    Attributes:
        index: (B,) their places in the sample.
        max_len, prefix, prefix_len: (B,), (B, P), (B,); see :meth:`Generator._open`.
        first_end: no sentence's max_len is smaller.
        scores: (B, D, K) of the live hypotheses.
        tokens: (N, t + 1) with the start symbol.
        token_scores: (N, t) log-probability of each token.
        attention: (N, t, S), or None.
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
        """These sentences alone, whose rows are ``rows``."""
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
