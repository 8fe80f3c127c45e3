"""Choices and cases of the benchmark, known without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

LENGTHS = (10, 25, 50, 100)
BEAMS = (2, 4, 8, 16, 32)
BATCHES = (50, 1)
# measured where they are asked for
SLOW = (
    *("SB-NMT λ=0", "SB-NMT λ=0 rescored"),
    *("SB-NMT best 2 rescored", "SB-NMT λ=0 best 2 rescored"),
    *("SB-NMT exported", "SB-NMT exported rescored"),
)
GRIDS = ("headline", "full")
LOW = {"cpu": "bfloat16", "cuda": "float16"}  # the device's fast type
SIZES = {  # channels, feed-forward channels, layers on each side, heads
    "tiny": (64, 128, 2, 4),
    "small": (256, 1024, 3, 4),
    "base": (512, 2048, 6, 8),
    "big": (1024, 4096, 6, 16),
}


@dataclass(frozen=True)
class Case:
    """A cell of the grid.

    Attributes:
        batch: sentences.
        length: of source and of translation, or None for a recipe's test set, whose
            translations end where the search likes.
        beam: hypotheses a sentence, of both directions together.
        by_default: whether a test set is searched as where nobody names an option,
            instead of as recipes do.
    """

    batch: int = 50
    length: int | None = 25
    beam: int = 4
    by_default: bool = False

    @property
    def alpha(self) -> float:
        """Return α of the length penalty; it has no effect on forced lengths."""
        return 1.0 if self.by_default else 0.6

    @property
    def limits(self) -> dict[str, Any]:
        """Return fairseq's options of a translation's length."""
        if self.length is not None:
            return {"min_len": self.length, "max_len_a": 0, "max_len_b": self.length}
        return {} if self.by_default else {"max_len_a": 1.0, "max_len_b": 50}

    @property
    def row(self) -> dict[str, Any]:
        """Return the columns of a table that a case fills."""
        length = "test set, no options" if self.by_default else self.length
        return {"batch": self.batch, "length": length, "beam": self.beam}


def grid(extent: str, trained: bool) -> list[Case]:
    """Return the cases along each axis from batch 50, beam 4 and 25 tokens.

    Args:
        extent: one of :data:`GRIDS`.
        trained: with a recipe's models, whose beam and lengths stay.
    """
    if trained:
        found = [Case(length=None), Case(length=None, by_default=True)]
        return found + [Case(1, None)] * (extent == "full")
    found = [Case(batch) for batch in BATCHES]
    if extent == "full":
        found += [Case(length=length) for length in LENGTHS]
        found += [Case(beam=beam) for beam in BEAMS]
    return list(dict.fromkeys(found))
