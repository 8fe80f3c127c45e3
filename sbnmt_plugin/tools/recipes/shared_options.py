"""Options that many commands share, taken out of them into bash arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sbnmt_plugin.tools.recipes.step import Step, Word

Unit = tuple[Word, ...]  # an option with what follows it

TRAIN, SEARCH, SCORE = "train", "search", "score"
# what kind of command a step is, by its first words
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
        purpose: what they are, in a line.
        units: the options.
        parent: array that they are added to, "" if there is none.
    """

    name: str
    purpose: str
    units: tuple[Unit, ...]
    parent: str = ""


def is_flag(word: Word) -> bool:
    return isinstance(word, str) and re.match("--?[A-Za-z]", word) is not None


def split(words: Sequence[Word]) -> tuple[list[Word], list[Unit]]:
    """A command line as what stands before its options, and the options."""
    places = [place for place, word in enumerate(words) if is_flag(word)]
    ends = [*places[1:], len(words)]
    head = words[: places[0]] if places else words
    return list(head), [tuple(words[a:b]) for a, b in zip(places, ends)]


def kind(step: Step) -> str:
    """The kind of a step's command, "" if it has none."""
    first = [str(word) for word in step.words[:2]]
    return KINDS.get(first[0], KINDS.get(" ".join(first), ""))


def arch(step: Step) -> str:
    """The architecture that a training names."""
    _, units = split(step.words)
    return next((str(unit[1]) for unit in units if unit[0] == ARCH), "")


def movable(step: Step) -> list[Unit]:
    """Options that may stand before all others of the command.

    Of an option that comes twice the last counts, so only its first may move.
    """
    _, units = split(step.words)
    flags = [unit[0] for unit in units]
    return [unit for i, unit in enumerate(units) if unit[0] not in flags[:i]]


def common(steps: list[Step], known: Sequence[Unit] = ()) -> tuple[Unit, ...]:
    """Options that all the commands have, beside those of another array."""
    if len(steps) < LEAST:
        return ()
    first, *others = [movable(step) for step in steps]
    return tuple(
        unit
        for unit in first
        if unit not in known and all(unit in other for other in others)
    )


def arrays(steps: list[Step]) -> list[Array]:
    """Arrays for a script: of each kind of command, of each architecture."""
    found = []
    for name, purpose in PURPOSES.items():
        mine = [step for step in steps if kind(step) == name]
        shared = common(mine)
        parent = name if shared else ""
        if shared:
            several = name == TRAIN and ("--cpu",) not in shared
            found.append(Array(name, purpose + GPUS * several, shared))
        for each in dict.fromkeys(map(arch, mine)):
            same = [step for step in mine if each and arch(step) == each]
            units = common(same, shared)
            if units and len(same) < len(mine):
                identifier = re.sub(r"\W", "_", each)
                found.append(Array(identifier, f"and those of {each}", units, parent))
    return found


def array_of(step: Step, known: list[Array]) -> Array | None:
    """The array, if any, that a step's command takes."""
    identifier = re.sub(r"\W", "_", arch(step))
    for name in (identifier, kind(step)):
        for array in known:
            if name and array.name == name:
                return array
    return None


def covered(array: Array | None, known: list[Array]) -> list[Unit]:
    """All options of an array, its parent's included."""
    if array is None:
        return []
    parent = next((other for other in known if other.name == array.parent), None)
    return [*covered(parent, known), *array.units]
