"""Trainings of a row: their options, one stage after the other, and their origin."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.systems import PAPER
from sbnmt_plugin.tools.recipes.systems.system import BOTH, DIRECTIONS, TEACHER, Options

Settings = dict[str, Any]  # a recipe.yaml's
# of a training; one that has the first alone ends with an epoch
LIMITS = ("--max-epoch", "--max-update", "--stop-time-hours")
# options that a training keeps as it goes on: see protocol.Model.function
FUNCTION = (
    *("--sb-lambda", "--sb-fusion", "--sb-future-shift"),
    *("--enat-input", "--enat-raw-weights"),
)


@dataclass(frozen=True)
class Stage:
    """One training of a row.

    Attributes:
        name: of its step and, below the work folder, of its folder.
        data: training set.
        options: of fairseq-train, paths left out.
        continues: whether optimiser and schedule go on from the stage before, or start
            anew from its weights.
    """

    name: str
    data: str
    options: Options
    continues: bool = False

    @property
    def log(self) -> str:
        """Name of its log, without the ending."""
        return f"train-{self.name.replace('/', '-')}"


def training_options(recipe: Settings, row: Row) -> Options:
    """Return the options of fairseq-train for a row, paths left out."""
    system = row.system
    both = system.direction == BOTH
    arch = recipe["sb_arch" if both and not system.family else "teacher_arch"]
    options: Options = {
        "--task": "sb_translation",
        "--criterion": "sb_label_smoothed_cross_entropy",
        "--arch": system.family + arch,
        "--log-format": "simple",
        "--seed": row.seed,
    }
    if both:
        options |= {"--sb-fusion": "tanh", "--sb-lambda": 0.1}
    else:
        options |= {"--sb-direction": system.direction}
    if system.back:
        options |= {"--source-lang": recipe["target"]}
        options |= {"--target-lang": recipe["source"]}
    options |= recipe["train"]
    if "--arch" not in system.options:
        options |= recipe["model"]
    options |= recipe["sb_train" if both else "teacher_train"]
    own = recipe["systems"].get(row.base, {})
    seed = {"--seed": row.seed} if row.seed > 1 else {}  # wins over the recipe's own
    return laid_over(options, system.options, own, seed)


def laid_over(*options: Options) -> Options:
    """Lay options over others; those that are set to false are left out."""
    found = dict(item for each in options for item in each.items())
    return {key: value for key, value in found.items() if value is not False}


def training_stages(recipe: Settings, row: Row) -> list[Stage]:
    """Return the trainings of a row in order; the last bears the row's name.

    Raises:
        ValueError: a stage cannot continue the one before.
    """
    row = row.plain
    system, options = row.system, training_options(recipe, row)
    default = [{"data": kind} for kind in system.stages or (system.data,)]
    asked = recipe["stages"].get(row.base, default)
    found = []
    for number, changes in enumerate(asked, start=1):
        own = laid_over(options, {"data": system.data}, changes)
        data, continues = own.pop("data"), own.pop("continue", False)
        place = row.name if number == len(asked) else f"{row.name}/stage-{number}"
        found.append(Stage(place, data, own, continues))
    for before, stage in pairwise(found):
        epochs, *others = map(before.options.get, LIMITS)
        if stage.continues and (not epochs or any(others)):
            raise ValueError(
                f"recipe.yaml: stages.{row.base}: a stage that another continues must "
                "end with an epoch, or the next data would begin in the middle: limit "
                "it by --max-epoch alone (--max-update: false)"
            )
        for flag in FUNCTION if stage.continues else ():
            here, there = stage.options, before.options
            if (flag in here, here.get(flag)) != (flag in there, there.get(flag)):
                raise ValueError(
                    f"recipe.yaml: stages.{row.base}: a stage that goes on must keep "
                    f"{flag} of the one before it: leave out continue, or set the same"
                )
    return found


def same_training(recipe: Settings, row: Row) -> Row:
    """Return the row of the paper's comparison that is trained in just this way.

    Returns:
        The row itself, without rescoring, if there is none.
    """
    row = row.plain
    if row.system.remedy:  # its options are not known any more
        return row

    def essence(row: Row) -> list[Any]:
        stages = training_stages(recipe, row)
        return [(s.data, s.options, s.continues) for s in stages]

    for base, other in PAPER.items():
        same_start = other.starts_from == row.system.starts_from
        twin = row.beside(base)
        if other.data and same_start and essence(twin) == essence(row):
            return twin
    return row


def starting_row(recipe: Settings, row: Row) -> Row | None:
    """Return the row that a row takes its first weights from, if any."""
    if not (name := row.system.starts_from):
        return None
    teaches = name.removeprefix(TEACHER) in DIRECTIONS
    return model_row(recipe, Row(name) if teaches else row.beside(name))


def model_row(recipe: Settings, row: Row) -> Row:
    """Return the row by whose training a row that has one model is decoded."""
    return same_training(recipe, row.beside(row.system.decodes or row.base))


def records(stages: list[Stage], before: Options | None = None) -> list[Options]:
    """Return the record of each stage, which tells another training from the same.

    It is the stage's options and, by names that are no flags, its data, whether it
    continues, and the records of the stages before it.

    Args:
        before: last record of the row from whose weights the first stage starts.
    """
    found: list[Options] = []
    for stage in stages:
        own = {**stage.options, "data": stage.data, "continues": stage.continues}
        if before:
            own["starts from"] = before
        found.append({**own, "stages before": found.copy()} if found else own)
    return found


def row_records(recipe: Settings, row: Row) -> list[Options]:
    """Return the records of a row's stages."""
    start = starting_row(recipe, row)
    before = row_records(recipe, start)[-1] if start else None
    return records(training_stages(recipe, row), before)
