"""The interface of an engine: what translates the subwords of a model folder."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Hypothesis(NamedTuple):
    """A translation.

    Attributes:
        tokens: subwords joined by blanks, in natural order; or the raw text of them.
        score: value by which hypotheses are ranked, in natural logarithms: after the
            length penalty, and with both directions' scores where it is rescored.
        direction: that has written it, ``l2r`` or ``r2l``.
    """

    tokens: str
    score: float
    direction: str


def check_beam(engine: Engine, beam: int) -> None:
    """Refuse a beam of which the search would use less.

    Raises:
        ValueError: with the flag.
    """
    if engine.most < beam:
        raise ValueError(
            f"--beam must be even, as two directions share it, but is {beam}"
        )


def distinct(hypotheses: list[Hypothesis], most: int) -> list[Hypothesis]:
    """Return the best hypotheses, each text once: both directions may write it."""
    texts = {x.tokens: x for x in reversed(hypotheses)}
    return [x for x in hypotheses if texts[x.tokens] is x][:most]


class Engine(Protocol):
    """A loaded model and its search."""

    @property
    def most(self) -> int:
        """Most hypotheses of a sentence: the beam, even if two directions share it."""
        ...

    def hypotheses(self, sentences: list[str]) -> list[list[Hypothesis] | str]:
        """Translate sentences.

        Args:
            sentences: subwords joined by blanks; none is empty.

        Returns:
            For each sentence its hypotheses, best first, or the reason for which there
            are none.
        """
        ...
