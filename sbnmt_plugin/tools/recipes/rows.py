"""Rows of the results table: their names, and the properties that follow from them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sbnmt_plugin.tools.command_names import PLUGIN
from sbnmt_plugin.tools.recipes.systems import GROUPS, SYSTEMS, trained_systems
from sbnmt_plugin.tools.recipes.systems.sb import NO_INTERACTION
from sbnmt_plugin.tools.recipes.systems.system import (
    BOTH,
    MULTILINGUAL,
    R2L,
    Options,
    System,
)

RESCORED = "+rescored"  # decoded with --sb-rescore
NAME = re.compile(rf"([^@]*?)({re.escape(RESCORED)})?(?:@([0-9]{{1,9}}))?")


@dataclass(frozen=True)
class Row:
    """A system, trained with a seed, and decoded with or without rescoring.

    Attributes:
        base: name of its system.
        seed: of its training.
        rescored: both directions' own scores, too, choose the translation.
    """

    base: str
    seed: int = 1
    rescored: bool = False

    @classmethod
    def parse(cls, name: str, where: str = "--rows", groups: Iterable[str] = ()) -> Row:
        """Return the row of a name: ``sb+rescored@2`` or ``sb@2+rescored``.

        A row without a number has seed 1.

        Args:
            where: the name stands, for the messages.
            groups: that may stand there too.

        Raises:
            ValueError: there is no such row.
        """
        found = NAME.fullmatch(re.sub(r"(@\d+)(\+\w+)$", r"\2\1", name))
        if not found or found[1] not in SYSTEMS:
            raise ValueError(
                f"{where} must name {', '.join([*trained_systems(), *groups])}, or one "
                f"of the systems with a seed, as in sb@2, or rescored, as in "
                f"sb{RESCORED}, but has {name!r}"
            )
        row = cls(found[1], int(found[3] or 1), bool(found[2]))
        if row.rescored and not row.side_by_side:
            raise ValueError(
                f"{where} {name}: {row.base} has one direction, or one after the "
                "other, so it cannot be rescored"
            )
        if found[3] and not row.system.data and not row.system.joins:
            raise ValueError(
                f"{where} {name}: {row.base} trains nothing, so it has no seed: leave "
                f"out @{found[3]}"
            )
        return row

    @property
    def name(self) -> str:
        """The name that its files bear; seed 1 is not written."""
        seed = "" if self.seed == 1 else f"@{self.seed}"
        return self.base + RESCORED * self.rescored + seed

    @property
    def system(self) -> System:
        return SYSTEMS[self.base]

    @property
    def plain(self) -> Row:
        """The row that is decoded with the same model, without rescoring."""
        return replace(self, rescored=False)

    def beside(self, base: str) -> Row:
        """Return another system's row of the same seed."""
        return Row(base, self.seed)

    @property
    def borrows(self) -> bool:
        """True if it is decoded with another row's model."""
        return self.rescored or bool(self.system.decodes)

    @property
    def side_by_side(self) -> bool:
        """True if both directions write at the same time, and either may answer."""
        return self.system.direction == BOTH and not self.system.family

    @property
    def interacts(self) -> bool:
        """True if a direction attends to the other."""
        alone = NO_INTERACTION.items() <= self.system.options.items()
        return self.system.direction == BOTH and not alone

    @property
    def has_links(self) -> bool:
        """True if a model of its own has attention that aligns L2R text."""
        own = bool(self.system.data) and not self.rescored
        return own and self.system.links and self.system.direction != R2L

    def title(self, options: Options) -> str:
        """Return its title in the table, trained with some options."""
        options = {**self.system.options, **options}
        fusion, weight = (
            options.get("--sb-fusion", "tanh"),
            options.get("--sb-lambda", 0.1),
        )
        title = self.system.title.format_map({"fusion": fusion, "lambda": weight})
        title += ", rescored" * self.rescored
        return title if self.seed == 1 else f"{title}, seed {self.seed}"


def asked_rows(names: Iterable[str], where: str = "--rows") -> list[Row]:
    """Return rows, each once, groups replaced by their members.

    Args:
        names: of rows and groups.
        where: the names stand, for the messages.

    Raises:
        ValueError: a name that is unknown, or a row that is no longer trained.
    """
    members = [member for name in names for member in GROUPS.get(name, [name])]
    found = {name: Row.parse(name, where, GROUPS) for name in members}
    for name, row in found.items():
        if row.system.remedy:
            raise ValueError(
                f"{where} {name}: {row.base} is no longer trained, since it showed no "
                f"gain: use {row.system.remedy}"
            )
    return list(dict.fromkeys(found.values()))


def is_searched(row: Row) -> bool:
    """Check whether a row has a model of its own, searched in the usual way."""
    system = row.system
    own = system.back or system.decode or system.table
    return bool(system.data) and not own and system.user_dir == PLUGIN


def can_be_model(row: Row) -> bool:
    """Check whether a row's model is one that a folder can hold."""
    return is_searched(row) and row.system.data != MULTILINGUAL
