"""What the search is asked to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor

from sbnmt_plugin.layout import DEFAULT_BEAM, L2R, NAMES, R2L, RANK, Layout, Pairing
from sbnmt_plugin.search.penalties import Gnmt, LengthPenalty

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
        beam: k, hypotheses per sentence over all directions; of each, where the search
            does not share them (see :class:`registry.Search`).
        directions: which ones write: (L2R, R2L), or a teacher's only one.
        answer: ``best``, or the direction that alone may answer.
        rescore: W, weight of both directions' own scores of what has finished: see
            :mod:`rescoring`; 0: the search's score alone.
        answers: how many of the best hypotheses are asked for: fairseq's ``--nbest``;
            None: all k.
        teacher: for a search that writes all words at once: log-probabilities (BK, T)
            of what it has written, from fairseq's ``net_input``, tokens (BK, T) and
            ``temperature``.
    """

    beam: int = DEFAULT_BEAM
    directions: tuple[int, ...] = (L2R, R2L)
    pairing: Pairing = RANK
    penalty: LengthPenalty = field(default_factory=Gnmt)
    stop: str = "bound"
    answer: str = "best"
    rescore: float = 0.0
    answers: int | None = None
    min_len: int = 1
    max_len_a: float = 0
    max_len_b: int = 200
    unkpen: float = 0
    temperature: float = 1.0
    no_repeat_ngram_size: int = 0
    print_alignment: str | None = None
    teacher: Callable[[dict[str, Tensor], Tensor, float], Tensor] | None = None

    @property
    def layout(self) -> Layout:
        directions = len(self.directions)
        return Layout(directions, self.beam // directions, self.pairing)

    @property
    def finishing(self) -> int:
        """Among how many of a direction's best candidates a hypothesis may finish.

        2K, all that are looked at: the pool and the bound of :func:`pool.finished` sort
        out what is good.  With ``first``, which has no bound, K, as in fairseq: with
        2K, ``</s>`` would answer although it ranks second.
        """
        beam = self.layout.beam
        return beam if self.stop == "first" else 2 * beam

    @property
    def final(self) -> int:
        """How many of the best hypotheses must be final before a sentence is done.

        All k where the pool is to be full or ranked anew, else as many as are asked
        for.  Departs from the paper, which knows one answer alone.
        """
        if self.answers is None or self.stop == "first" or self.rescore:
            return self.beam
        return min(self.answers, self.beam)

    @property
    def answering(self) -> int | None:
        """Place, among the directions, of the one that alone may answer."""
        if self.answer == "best":
            return None
        return self.directions.index(NAMES.index(self.answer))

    @property
    def binds_prefixes(self) -> bool:
        """Whether the start of a text is written first by who may answer."""
        return self.answer != "r2l" and L2R in self.directions

    def check_prefix(self, prefix: Tensor, sources: Tensor) -> None:
        """Refuse starts of the text that cannot be written.

        Args:
            prefix: (B, P), as the search is given it.
            sources: (B, S).

        Raises:
            ValueError: it has another shape, or no L2R hypothesis may answer.
        """
        if prefix.dim() != 2 or len(prefix) != len(sources):
            raise ValueError(
                "prefix_tokens must have the shape (sentences, tokens), here "
                f"({len(sources)}, any), but has {tuple(prefix.shape)}"
            )
        if prefix.size(1) and not self.binds_prefixes:
            raise ValueError(PREFIX_NEEDS_L2R)
