"""What a row's name says: ``sb+rescored@2`` is a system, how it decodes, and a seed."""

from __future__ import annotations

import re
from typing import Any

from sbnmt_plugin.tools.recipes.systems import GROUPS, SYSTEMS, trained_systems
from sbnmt_plugin.tools.recipes.systems.sb import NO_INTERACTION
from sbnmt_plugin.tools.recipes.systems.system import BOTH, Options

OURS = ("sb", "sb-shift")  # the first that a folder has stands for SB-NMT
RESCORED = "+rescored"  # decoded with --sb-rescore
# whom several seeds of a row are compared with, together
TWINS = ("sb-lambda0", "sb-noise-lambda0")
RIVALS = (
    "transformer-pl",
    "transformer-pr",
    *(name + end for name in TWINS for end in ("", RESCORED)),
)


def split_name(name: str) -> tuple[str, int]:
    """System and seed of a row: ``sb`` is ``sb@1``, and so is ``sb+rescored``.

    Raises:
        ValueError: no such row.
    """
    whole, at, seed = name.partition("@")
    base = whole.removesuffix(RESCORED)
    if base not in SYSTEMS or (at and not re.fullmatch("[0-9]+", seed)):
        raise ValueError(
            f"--rows must name {', '.join([*trained_systems(), *GROUPS])}, or one of "
            f"the systems with a seed, as in sb@2, or rescored, as in sb{RESCORED}, "
            f"but has {name!r}"
        )
    if base != whole and not side_by_side(base):
        raise ValueError(
            f"--rows {name}: {base} has one direction, or one after the other, so it "
            "cannot be rescored"
        )
    if at and not SYSTEMS[base].data and not SYSTEMS[base].joins:
        raise ValueError(
            f"--rows {name}: {base} trains nothing, so it has no seed: leave out "
            f"@{seed}"
        )
    return base, int(seed or 1)


def rows(names: list[str]) -> list[str]:
    """Return the rows to be trained, each once, groups replaced by their members.

    Raises:
        ValueError: a name that is unknown, or a row that is no longer trained.
    """
    found: list[str] = []
    for name in names:
        for member in GROUPS.get(name, [name]):
            base, seed = split_name(member)
            if remedy := SYSTEMS[base].remedy:
                raise ValueError(
                    f"--rows {name}: {base} is no longer trained, since it showed no "
                    f"gain: use {remedy}"
                )
            whole = member.partition("@")[0]
            found.append(with_seed(whole, seed))
    return list(dict.fromkeys(found))


def with_seed(name: str, seed: int) -> str:
    """The row of a name without a seed: seed 1 is not written."""
    return name if seed == 1 else f"{name}@{seed}"


def system_and_seed(name: str) -> tuple[str, int]:
    """A sweep's name as system and seed.

    Unlike :func:`split_name` any name is allowed; only @NUMBER at its end is a seed.
    """
    found = re.fullmatch("(.+)@([0-9]+)", name)
    return (found[1], int(found[2])) if found else (name, 1)


def is_rescored(name: str) -> bool:
    """Whether the row's answers are chosen by both directions' own scores, too."""
    return name.partition("@")[0].endswith(RESCORED)


def borrows(name: str) -> bool:
    """Whether the row decodes with another row's model."""
    return is_rescored(name) or bool(SYSTEMS[split_name(name)[0]].decodes)


def trained_as(name: str) -> str:
    """The row whose model a rescored one decodes with, or itself."""
    return name.replace(RESCORED, "", 1)


def side_by_side(base: str) -> bool:
    """Whether both directions of a system write at the same time, and may answer."""
    system = SYSTEMS[base]
    return system.direction == BOTH and not system.family


def interacts(name: str) -> bool:
    """Whether a direction of the row attends to the other."""
    system = SYSTEMS[split_name(name)[0]]
    alone = NO_INTERACTION.items() <= system.options.items()
    return system.direction == BOTH and not alone


def has_links(name: str) -> bool:
    """Whether the row has a model of its own whose attention links L2R text."""
    base, _ = split_name(name)
    system = SYSTEMS[base]
    own = bool(system.data) and not is_rescored(name)
    return own and system.links and system.direction != "r2l"


def reads_table(base: str) -> bool:
    """Whether a system looks its sources up in a phrase table."""
    system = SYSTEMS[base]
    return bool(system.table) and bool(system.data or system.decodes)


def describe(name: str, options: Options) -> str:
    """Title of a row trained with these options."""
    base, seed = split_name(name)
    title = SYSTEMS[base].title.format(
        **{
            "fusion": options.get("--sb-fusion", "tanh"),
            "lambda": options.get("--sb-lambda", 0.1),
        }
    )
    title += ", rescored" * is_rescored(name)
    return title if seed == 1 else f"{title}, seed {seed}"


def without_seed(row: dict[str, Any]) -> tuple[str, str]:
    """Name and title that a table's row shares with its other seeds."""
    name, _, seed = row["name"].partition("@")
    return name, row["title"].removesuffix(f", seed {seed}")
