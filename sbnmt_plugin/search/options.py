"""Options of the search, and the ids of its special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sbnmt_plugin.layout import DEFAULT_BEAM, L2R, NAMES, R2L, RANK, Layout, Pairing
from sbnmt_plugin.search.penalties import LengthPenalty
from sbnmt_plugin.symbols import TAGS


@dataclass(frozen=True)
class Symbols:
    """Ids of special tokens.

    Attributes:
        starts: (D,) first decoder input of each direction.
        never: ids that are never generated: padding, ``<s>`` and the tags.
    """

    pad: int
    eos: int
    unk: int
    starts: tuple[int, ...]
    never: tuple[int, ...]

    @classmethod
    def of(cls, dictionary: Any, directions: Sequence[int]) -> Symbols:
        """Look up the ids of a dictionary with tags.

        Two streams start with the tags of their directions, a teacher's one with
        ``</s>``, as fairseq's do.
        """
        pad, eos, unk = dictionary.pad(), dictionary.eos(), dictionary.unk()
        tags = tuple(map(dictionary.index, TAGS))
        starts = tuple(tags[d] for d in directions) if len(directions) > 1 else (eos,)
        return cls(pad, eos, unk, starts, never=(pad, dictionary.bos(), *tags))


@dataclass(frozen=True)
class SearchOptions:
    """Options of the search; fairseq's have its defaults, but for beam and nbest.

    Attributes:
        beam: k, hypotheses per sentence over all directions; of each, where the search
            does not share them (see :class:`registry.Search`).
        directions: those that write: (L2R, R2L), or a teacher's only one.
        answer: ``best``, or the direction that alone may answer.
        rescore: W, weight of both directions' own scores of what has finished: see
            :mod:`rescoring`; 0: the search's score alone.
        rescore_best: N, how many of the best are rescored, one of which is the answer;
            0: all.
        nbest: how many of the best hypotheses are asked for; None: all that may answer.
    """

    beam: int = DEFAULT_BEAM
    directions: tuple[int, ...] = (L2R, R2L)
    pairing: Pairing = RANK
    penalty: LengthPenalty = field(default_factory=LengthPenalty)
    stop: str = "horizon"
    answer: str = "best"
    rescore: float = 0.0
    rescore_best: int = 0
    nbest: int | None = None
    min_len: int = 1
    max_len_a: float = 0
    max_len_b: int = 200
    unkpen: float = 0
    no_repeat_ngram_size: int = 0
    print_alignment: str | None = None

    @property
    def layout(self) -> Layout:
        directions = len(self.directions)
        return Layout(directions, self.beam // directions, self.pairing)

    @property
    def eos_candidates(self) -> int:
        """Number of a direction's best candidates that are looked at for ``</s>``.

        2K, all that there are: the pool and the bound of :func:`pool.finished` sort
        out what is good.  With ``first``, which has no bound, K, as in fairseq: with
        2K, ``</s>`` would answer although it ranks second.
        """
        beam = self.layout.beam
        return beam if self.stop == "first" else 2 * beam

    @property
    def stop_rank(self) -> int:
        """Rank down to which the n-best list is final when a sentence is done.

        All k where the pool is to be full, all that may answer where these are ranked
        anew, else as many as are asked for.  Departs from the paper, which knows one
        answer alone.
        """
        if self.stop == "first":
            return self.beam
        if self.rescore or self.nbest is None:
            return self.most_answers
        return min(self.nbest, self.beam)

    @property
    def most_answers(self) -> int:
        """How many hypotheses may answer: those that are rescored, or all k."""
        return min(self.rescore_best or self.beam, self.beam)

    @property
    def answering(self) -> slice:
        """Places, in ``directions``, of those that may answer: all, or one alone."""
        if self.answer == "best":
            return slice(0, len(self.directions))
        place = self.directions.index(NAMES.index(self.answer))
        return slice(place, place + 1)
