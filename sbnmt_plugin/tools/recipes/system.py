"""What a system of the results table is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Options = dict[str, Any]

BOTH, L2R, R2L = "both", "l2r", "r2l"
TEACHER = "teacher-"  # and a direction


@dataclass(frozen=True)
class System:
    """What distinguishes a row from the others.

    Attributes:
        title: in the table; {fusion} and {lambda} are filled in.
        data: training set: gold, pl (y_g + y_pl), pr (y_g + y_pr), pl-pr (all three),
            one, two or six (triples a sentence), both-ways (either language into the
            other); "" where nothing is trained.
        direction: of the model.
        family: what stands before the recipe's ``teacher_arch``; none: its
            ``teacher_arch``, or for both directions ``sb_arch``.
        options: of fairseq-train, over those of the recipe.
        starts_from: the row whose weights initialise this one: a teacher of one
            direction, of the first seed, or any other, of this row's.
        stages: training sets one after the other, the last being ``data``, where a
            recipe does not say otherwise; none: ``data`` alone.
        continues: whether a later stage goes on with optimiser and schedule; the
            recipe says which, and for how long.
        back: whether the target is translated into the source.
        decodes: the row whose model this one decodes with, where it trains none.
        joins: the rows whose models decode together, each of this row's seed, where it
            trains none.
        decode: words of decoding, over the recipe's.
        led: whether the L2R teacher chooses among what is written.
    """

    title: str
    data: str = ""
    direction: str = L2R
    family: str = ""
    options: Options = field(default_factory=dict)
    starts_from: str = ""
    stages: tuple[str, ...] = ()
    continues: bool = False
    back: bool = False
    decodes: str = ""
    joins: tuple[str, ...] = ()
    decode: tuple[str, ...] = ()
    led: bool = False
