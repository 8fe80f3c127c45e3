"""A system: everything that sets a row of the table apart, and what it learns from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.command_names import PLUGIN

Options = dict[str, Any]

BOTH, L2R, R2L = "both", "l2r", "r2l"
DIRECTIONS = (L2R, R2L)
TEACHER = "teacher-"  # and a direction
MULTILINGUAL = "both-ways"  # a training set, and the group of its rows
KD = "kd"  # a training set


# training sets that join gold text and pseudo targets, and the targets of every example
# of a sentence: l or r by a teacher, g of the bitext
TRIPLES = {
    "one": ("gr",),
    "two": ("lg", "gr"),
    "three": ("lg", "gr", "gg"),
    "six": ("gl", "gr", "lg", "lr", "rg", "rl"),
}
PAIRS = {"pl": ("g", "l"), "pr": ("g", "r"), "pl-pr": ("g", "l", "r"), KD: ("l",)}
# each training set, and what it holds for a sentence
TRAINING_SETS = {
    "gold": "",
    "pl": "y_g and y_pl, a pair each",
    "pr": "y_g and y_pr, a pair each",
    "pl-pr": "y_g, y_pl and y_pr, a pair each",
    "one": "y_g and y_pr, a triple a sentence",
    "two": "two triples a sentence",
    "three": "two triples a sentence, and gold text twice",
    "six": "six triples a sentence",
    MULTILINGUAL: "",  # either language into the other
    KD: "y_pl alone, a pair a sentence",
}


def teachers_of(kind: str) -> list[str]:
    """Return the directions of the pseudo targets of a training set."""
    letters = "".join((TRIPLES | PAIRS)[kind])
    return [direction for direction in DIRECTIONS if direction[0] in letters]


@dataclass(frozen=True)
class System:
    """How a row is trained and decoded, as far as it differs from other rows.

    Attributes:
        title: in the table; {fusion} and {lambda} are filled in.
        data: one of :data:`TRAINING_SETS`; "" where nothing is trained.
        direction: of the model.
        family: prefix of the recipe's ``teacher_arch``.  Without one the model is the
            recipe's ``teacher_arch``, or its ``sb_arch`` for both directions.
        options: of fairseq-train, over those of the recipe.
        starts_from: the row whose weights initialise this one.  A teacher of one
            direction is of seed 1; any other row is of this row's seed.
        stages: training sets one after the other, the last being ``data``, where a
            recipe does not say otherwise; none: ``data`` alone.
        back: the target is translated into the source.
        decodes: the row whose model this one decodes with, where it trains none.
        joins: the rows whose models decode together, each of this row's seed, where it
            trains none.
        decode: words of decoding, over the recipe's.
        led: the L2R teacher chooses among the translations.
        table: the phrase table that is looked up: "phrases", "words", or "" for none.
            A row with a table and no model is that table's own translation.
        links: the attention of its model aligns L2R text word by word.
        user_dir: the package that registers its model, for ``--user-dir``.
        needs: options of fairseq-train without which its model cannot be built.
        remedy: the row to ask for instead, of a row that is no longer trained.
    """

    title: str
    data: str = ""
    direction: str = L2R
    family: str = ""
    options: Options = field(default_factory=dict)
    starts_from: str = ""
    stages: tuple[str, ...] = ()
    back: bool = False
    decodes: str = ""
    joins: tuple[str, ...] = ()
    decode: tuple[str, ...] = ()
    led: bool = False
    table: str = ""
    links: bool = True
    user_dir: Path = PLUGIN
    needs: tuple[str, ...] = ()
    remedy: str = ""
