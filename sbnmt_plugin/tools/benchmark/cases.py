"""Cases of the benchmark: batches, lengths and beams, each with its name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

LENGTHS = (10, 25, 50, 100)
BEAMS = (2, 4, 8, 16, 32)
BATCHES = (1, 50)
# a case's length in its name, with a recipe's models: α of the length penalty, and the
# most tokens, as recipes have them and as they are where nobody names an option
SETTINGS: dict[str, tuple[float, dict[str, Any]]] = {
    "test": (0.6, {"max_len_a": 1.0, "max_len_b": 50}),
    "default": (1.0, {}),
}
ALPHA = 0.6  # with forced lengths, which leave it without effect


@dataclass(frozen=True)
class Case:
    """A cell of the grid.

    Attributes:
        batch: sentences.
        length: of source and of translation, or None for a recipe's test set, whose
            translations end where the search likes.
        beam: hypotheses a sentence, of both directions together.
        setting: of :data:`SETTINGS`, where there is no length.
    """

    batch: int = 50
    length: int | None = 25
    beam: int = 4
    setting: str = "test"

    @property
    def alpha(self) -> float:
        """Return α of the length penalty."""
        return SETTINGS[self.setting][0] if self.length is None else ALPHA

    @property
    def limits(self) -> dict[str, Any]:
        """Return fairseq's options of a translation's length."""
        if self.length is None:
            return dict(SETTINGS[self.setting][1])
        return {"min_len": self.length, "max_len_a": 0, "max_len_b": self.length}

    @property
    def row(self) -> dict[str, Any]:
        """Return the columns of a table that a case fills."""
        usual = self.length is not None or self.setting == "test"
        length = self.length if usual else "test set, no options"
        return {"batch": self.batch, "length": length, "beam": self.beam}

    def name(self, models: str) -> str:
        """Return ``MODELS-BATCH-LENGTH-BEAM``, as ``base-50-25-4``.

        Args:
            models: a size, or a recipe's folder.
        """
        return f"{models}-{self.batch}-{self.length or self.setting}-{self.beam}"


def named(name: str, models: str, trained: bool) -> Case:
    """Return the case of a name.

    Args:
        models: a size, or a recipe's folder where they are ``trained``.

    Raises:
        ValueError: it is no name of a case with these models.
    """
    number = r"([1-9]\d*)"
    lengths = f"({'|'.join(SETTINGS)})" if trained else number
    found = re.fullmatch(rf"{re.escape(models)}-{number}-{lengths}-{number}", name)
    if found is None:
        usual = grid("headline", trained)[0]
        raise ValueError(
            f"--cases must name {models}-BATCH-LENGTH-BEAM, as {usual.name(models)} "
            f"(LENGTH is {' or '.join(SETTINGS)} with --work, and a number without), "
            f"but has {name}"
        )
    batch, length, beam = found.groups()
    if trained:
        return Case(int(batch), None, int(beam), length)
    return Case(int(batch), int(length), int(beam))


def grid(extent: str, trained: bool) -> list[Case]:
    """Return the cases along each axis from batch 50, beam 4 and 25 tokens.

    Args:
        extent: one of :data:`choices.GRIDS`.
        trained: with a recipe's models, whose beam and lengths stay.
    """
    length = None if trained else 25
    found = [Case(length=length)]
    if trained:
        found += [Case(length=None, setting="default")]
    if extent == "full":
        found += [Case(batch, length) for batch in BATCHES]
    if extent == "full" and not trained:
        found += [Case(length=length) for length in LENGTHS]
        found += [Case(beam=beam) for beam in BEAMS]
    return list(dict.fromkeys(found))
