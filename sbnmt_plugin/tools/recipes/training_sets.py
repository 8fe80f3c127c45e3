"""Training sets: the texts that rows learn from."""

from __future__ import annotations

from typing import NamedTuple

from sbnmt_plugin.tools.recipes.systems.enat import KD
from sbnmt_plugin.tools.recipes.systems.system import DIRECTIONS, L2R, R2L
from sbnmt_plugin.tools.recipes.systems.two_way import MULTILINGUAL


class TrainingSet(NamedTuple):
    """How gold text and pseudo targets are joined.

    Attributes:
        teachers: directions of the pseudo targets.
        holds: what it holds for each sentence, in a line.
        triples: whether it holds triples for both directions, or pairs.
    """

    teachers: tuple[str, ...] = ()
    holds: str = ""
    triples: bool = False


TRAINING_SETS = {
    "gold": TrainingSet(),
    "pl": TrainingSet((L2R,), "y_g and y_pl, a pair each"),
    "pr": TrainingSet((R2L,), "y_g and y_pr, a pair each"),
    "pl-pr": TrainingSet(DIRECTIONS, "y_g, y_pl and y_pr, a pair each"),
    "one": TrainingSet((R2L,), "y_g and y_pr, a triple a sentence", triples=True),
    "two": TrainingSet(DIRECTIONS, "two triples a sentence", triples=True),
    "three": TrainingSet(
        DIRECTIONS, "two triples a sentence, and gold text twice", True
    ),
    "six": TrainingSet(DIRECTIONS, "six triples a sentence", triples=True),
    MULTILINGUAL: TrainingSet(),
    KD: TrainingSet((L2R,), "y_pl alone, a pair a sentence"),
}
