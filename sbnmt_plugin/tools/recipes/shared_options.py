"""Options that many commands share, taken out of them into bash arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sbnmt_plugin.tools.recipes.step import Step, Word

Unit = tuple[Word, ...]  # an option with the words that follow it

TRAIN = "train"
# array -> its purpose, and how the commands begin that share it
KINDS = {
    TRAIN: ("what all trainings share", ("fairseq-train",)),
    "search": (
        "what all searches share",
        (
            "fairseq-generate",
            *(f"sbnmt {x}" for x in ("translate", "rerank", "probe-i")),
        ),
    ),
    "score": ("how every row is scored", ("sbnmt evaluate",)),
}
GPUS = "; one process trains (several: `sbnmt train --help`)"


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


def common(steps: list[Step], known: Sequence[Unit] = ()) -> tuple[Unit, ...]:
    """Return the options that several commands have, and that are not known.

    Of an option that comes twice the last counts, so only its first may move before
    all others of the command.
    """
    if len(steps) < 2:
        return ()
    movable = []
    for step in steps:
        units = split(step.words)[1]
        flags = [unit[0] for unit in units]
        movable.append([x for i, x in enumerate(units) if x[0] not in flags[:i]])
    first, *others = movable
    shared = [x for x in first if x not in known and all(x in own for own in others)]
    return tuple(shared)


def arrays(steps: list[Step]) -> dict[Step, Array]:
    """Return the array of each command that takes one.

    There is one for each kind of command, and one for each architecture.
    """
    found: dict[Step, Array] = {}
    for name, (purpose, begins) in KINDS.items():
        mine = [x for x in steps if " ".join(map(str, x.words[:2])).startswith(begins)]
        parent = None
        if shared := common(mine):
            several = name == TRAIN and ("--cpu",) not in shared
            parent = Array(name, purpose + GPUS * several, shared)
            found |= dict.fromkeys(mine, parent)
        kinds: dict[str, list[Step]] = {}
        for step in mine:
            for flag, *values in split(step.words)[1]:
                if flag == "--arch":
                    kinds.setdefault(str(values[0]), []).append(step)
        for arch, same in kinds.items():
            units = common(same, shared)
            if units and len(same) < len(mine):
                own = Array(
                    re.sub(r"\W", "_", arch), f"and those of {arch}", units, parent
                )
                found |= dict.fromkeys(same, own)
    return found


def in_definition_order(found: dict[Step, Array]) -> list[Array]:
    """Return all arrays, each after its parent."""
    order: dict[Array, None] = {}
    for array in found.values():
        order |= dict.fromkeys([array.parent, array] if array.parent else [array])
    return list(order)
