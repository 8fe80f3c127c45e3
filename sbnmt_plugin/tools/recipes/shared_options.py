"""Options that many commands share, taken out of them into bash arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sbnmt_plugin.tools.recipes.step import Step, Word

Unit = tuple[Word, ...]  # an option with the words that follow it

TRAIN, SEARCH, SCORE = "train", "search", "score"
# the kind of a step's command, by its first words
KINDS = {
    "fairseq-train": TRAIN,
    "fairseq-generate": SEARCH,
    "sbnmt translate": SEARCH,
    "sbnmt rerank": SEARCH,
    "sbnmt probe-interaction": SEARCH,
    "sbnmt evaluate": SCORE,
}
PURPOSES = {
    TRAIN: "what all trainings share",
    SEARCH: "what all searches share",
    SCORE: "how every row is scored",
}
GPUS = "; one process trains (several: `sbnmt train --help`)"
ARCH = "--arch"
LEAST = 2  # commands that must share an option


@dataclass(frozen=True)
class Array:
    """Options of several commands.

    Attributes:
        name: of the bash array.
        purpose: in a line.
        units: the options.
        parent: array that they are added to.
    """

    name: str
    purpose: str
    units: tuple[Unit, ...]
    parent: Array | None = None

    @property
    def all_units(self) -> list[Unit]:
        """All options that the array holds, its parent's included."""
        return [*(self.parent.all_units if self.parent else ()), *self.units]


def split(words: Sequence[Word]) -> tuple[list[Word], list[Unit]]:
    """Split a command line into the words before its options, and the options."""
    places = [
        place
        for place, word in enumerate(words)
        if isinstance(word, str) and re.match("--?[A-Za-z]", word)
    ]
    ends = [*places[1:], len(words)]
    head = words[: places[0]] if places else words
    return list(head), [tuple(words[a:b]) for a, b in zip(places, ends)]


def kind(step: Step) -> str:
    """Return the kind of a step's command, "" if it has none."""
    first = [str(word) for word in step.words[:2]]
    return KINDS.get(first[0], KINDS.get(" ".join(first), ""))


def arch(step: Step) -> str:
    """Return the architecture that a training names, "" of other commands."""
    _, units = split(step.words)
    return next((str(unit[1]) for unit in units if unit[0] == ARCH), "")


def movable(step: Step) -> list[Unit]:
    """Return the options that may stand before all others of the command.

    Of an option that comes twice the last counts, so only its first may move.
    """
    _, units = split(step.words)
    flags = [unit[0] for unit in units]
    return [unit for i, unit in enumerate(units) if unit[0] not in flags[:i]]


def common(steps: list[Step], known: Array | None = None) -> tuple[Unit, ...]:
    """Return the options that all the commands have, beside those of an array."""
    if len(steps) < LEAST:
        return ()
    first, *others = [movable(step) for step in steps]
    return tuple(
        unit
        for unit in first
        if unit not in (known.units if known else ())
        and all(unit in other for other in others)
    )


def arrays(steps: list[Step]) -> dict[Step, Array]:
    """Return the array of each command that takes one.

    There is one for each kind of command, and one for each architecture.
    """
    found: dict[Step, Array] = {}
    for name, purpose in PURPOSES.items():
        mine, parent = [step for step in steps if kind(step) == name], None
        if shared := common(mine):
            several = name == TRAIN and ("--cpu",) not in shared
            parent = Array(name, purpose + GPUS * several, shared)
            found |= dict.fromkeys(mine, parent)
        for each in dict.fromkeys(map(arch, mine)):
            same = [step for step in mine if each and arch(step) == each]
            units = common(same, parent)
            if units and len(same) < len(mine):
                identifier = re.sub(r"\W", "_", each)
                own = Array(identifier, f"and those of {each}", units, parent)
                found |= dict.fromkeys(same, own)
    return found


def in_definition_order(found: dict[Step, Array]) -> list[Array]:
    """Return all arrays, each after its parent."""
    order: dict[Array, None] = {}
    for array in found.values():
        order |= dict.fromkeys([array.parent, array] if array.parent else [array])
    return list(order)
