"""Names of rows, for those who compare what a work folder or a file holds."""

from __future__ import annotations

import re
from typing import Any

from sbnmt_plugin.tools.recipes.rows import RESCORED, Row
from sbnmt_plugin.tools.recipes.systems import GROUPS
from sbnmt_plugin.tools.recipes.systems.system import Options

OURS = ("sb", "sb-shift")  # the first that a folder has stands for SB-NMT
# the rows without interaction
TWINS = ("sb-lambda0", "sb-noise-lambda0")
# the rows that several seeds of a row are compared with, together
RIVALS = (
    "transformer-pl",
    "transformer-pr",
    *(name + end for name in TWINS for end in ("", RESCORED)),
)


def split_name(name: str) -> tuple[str, int]:
    """Return system and seed of a row.

    Raises:
        ValueError: there is no such row.
    """
    row = Row.parse(name)
    return row.base, row.seed


def rows(names: list[str]) -> list[str]:
    """Return names of rows, each once, groups replaced by their members."""
    members = [member for name in names for member in GROUPS.get(name, [name])]
    return list(dict.fromkeys(Row.parse(member).name for member in members))


def with_seed(name: str, seed: int) -> str:
    """Return the row of a name without a seed: seed 1 is not written."""
    return name if seed == 1 else f"{name}@{seed}"


def system_and_seed(name: str) -> tuple[str, int]:
    """Return a sweep's name as system and seed.

    Unlike :func:`split_name` any name is allowed; only @NUMBER at its end is a seed.
    """
    found = re.fullmatch("(.+)@([0-9]+)", name)
    return (found[1], int(found[2])) if found else (name, 1)


def is_rescored(name: str) -> bool:
    """Check whether a row is rescored; any name is allowed."""
    return name.partition("@")[0].endswith(RESCORED)


def trained_as(name: str) -> str:
    """Return the row whose model a rescored one decodes with, or itself."""
    return name.replace(RESCORED, "", 1)


def reads_table(base: str) -> bool:
    """Check whether a system's model looks its sources up in a phrase table."""
    system = Row(base).system
    return bool(system.table) and bool(system.data or system.decodes)


def describe(name: str, options: Options) -> str:
    """Return the title of a row trained with these options."""
    return Row.parse(name).title(options)


def without_seed(row: dict[str, Any]) -> tuple[str, str]:
    """Return the name and title that a table's row shares with its other seeds."""
    name, _, seed = row["name"].partition("@")
    return name, row["title"].removesuffix(f", seed {seed}")
