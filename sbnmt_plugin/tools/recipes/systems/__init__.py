"""The systems of the paper's comparison and of others.

A package outside of this one adds the rows of its family by :func:`register_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping

from sbnmt_plugin.tools.recipes.systems import sb
from sbnmt_plugin.tools.recipes.systems.abd import ABD
from sbnmt_plugin.tools.recipes.systems.ba import HISTORIES
from sbnmt_plugin.tools.recipes.systems.enat import LOOKUP, PARALLEL
from sbnmt_plugin.tools.recipes.systems.retired import RETIRED_ROWS
from sbnmt_plugin.tools.recipes.systems.system import BOTH, MULTILINGUAL, System
from sbnmt_plugin.tools.recipes.systems.transformer import RIGHT_TO_LEFT, TRANSFORMERS
from sbnmt_plugin.tools.recipes.systems.two_way import TWO_WAY

__all__ = ["BOTH", "GROUPS", "PAPER", "SYSTEMS", "System", "register_rows"]

PAPER = {**TRANSFORMERS, **ABD, **sb.PAPER}
# in the order of a table
SYSTEMS: dict[str, System] = {
    **PAPER,
    **HISTORIES,
    **TWO_WAY,
    **PARALLEL,
    **sb.READING,
    **sb.SWEEP,
    **RIGHT_TO_LEFT,
    **sb.OTHERS,
    **RETIRED_ROWS,
}
# the baselines: one stream, trained with the same pseudo data
OPPONENTS = ("transformer-pl", "transformer-pl-pr", "transformer-pr")
# the first of these that a work folder has stands for SB-NMT
OURS = ("sb", "sb-shift")
GROUPS = {
    "paper": list(PAPER),
    "histories": list(HISTORIES),
    MULTILINGUAL: ["teacher-l2r", *TWO_WAY],
    # those of the paper's main table; the others are asked for by name
    "parallel": [
        *("teacher-l2r", LOOKUP),
        *(x + end for x in ("nart", "enat-phrase", "enat-map") for end in ("", "-9")),
    ],
    "reading": list(sb.READING),
    "sweep": list(sb.SWEEP),
}


def trained_systems() -> list[str]:
    """Return the names of the rows that can be asked for."""
    return [name for name, system in SYSTEMS.items() if not system.remedy]


def register_rows(group: str, rows: Mapping[str, System]) -> None:
    """Add the rows of a family that another package holds.

    Args:
        group: name by which all of them are asked for.
        rows: each system by its row's name; give its ``user_dir``.

    Raises:
        ValueError: a name is taken.
    """
    for name in (group, *rows):
        if name in SYSTEMS or name in GROUPS:
            raise ValueError(f"{name} must be a new name, but a row or group has it")
    SYSTEMS.update(rows)
    GROUPS[group] = list(rows)
