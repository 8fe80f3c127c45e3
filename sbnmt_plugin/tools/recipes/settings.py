"""What recipe.yaml says, as options of fairseq's commands."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.recipes.recipe_file import TRAINING_SETS
from sbnmt_plugin.tools.recipes.row_names import (
    split_name,
    trained_as,
    with_seed,
)
from sbnmt_plugin.tools.recipes.systems import PAPER, SYSTEMS
from sbnmt_plugin.tools.recipes.systems.enat import KD
from sbnmt_plugin.tools.recipes.systems.system import BOTH, TEACHER, Options
from sbnmt_plugin.tools.recipes.systems.two_way import MULTILINGUAL

DIRECTIONS = ("l2r", "r2l")
# whose pseudo targets a training set is made of
PSEUDO: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(TRAINING_SETS, DIRECTIONS),
    **{"": (), "gold": (), MULTILINGUAL: ()},
    **{"one": ("r2l",), "pl": ("l2r",), "pr": ("r2l",), KD: ("l2r",)},
}


def flags(options: Options) -> list[str]:
    """``{--a: 1, --b: null, --c: false}`` as ``--a 1 --b``."""
    words: list[str] = []
    for name, value in options.items():
        if value is False:
            continue
        words += [name] if value is None else [name, str(value)]
    return words


def device(recipe: dict[str, Any]) -> list[str]:
    """``--cpu`` for the searches too, where the recipe trains on one."""
    return ["--cpu"] if recipe["train"].get("--cpu", False) is None else []


def searching(recipe: dict[str, Any]) -> list[str]:
    """Where searches run, and in what numbers: float16 where trainings have it."""
    narrow = recipe["train"].get("--fp16", False) is None
    return [*device(recipe), *(["--fp16"] if narrow else [])]


def search_options(recipe: dict[str, Any]) -> list[str]:
    """Options by which every row's test set is decoded."""
    words = [*recipe["decode"], *recipe["generate"], *searching(recipe)]
    return [str(word) for word in words]


def references_of(recipe: dict[str, Any], name: str) -> dict[str, Any]:
    """The recipe as a row is scored by it: back, by the one source text."""
    if not SYSTEMS[split_name(name)[0]].back:
        return recipe
    source = recipe["source"]
    changes = {"target": source, "detokenise": recipe["detokenise"] and source}
    return {**recipe, **changes, "score": {**recipe["score"], "references": 1}}


def scoring_options(recipe: dict[str, Any]) -> list[str]:
    """Options by which every row's hypotheses are scored."""
    words = ["--target", recipe["target"]]
    if recipe["score"]["references"] != 1:
        words += ["--references", str(recipe["score"]["references"])]
    if recipe["score"]["lowercase"]:
        words += ["--lowercase"]
    if recipe["score"]["phonemes"]:
        words += ["--phonemes"]
    if recipe["detokenise"]:
        words += ["--detokenise", recipe["detokenise"]]
    return words


def training_options(recipe: dict[str, Any], name: str) -> Options:
    """Options of fairseq-train by which a row is trained, paths left out."""
    base, seed = split_name(name)
    system = SYSTEMS[base]
    both = system.direction == BOTH
    arch = recipe["sb_arch" if both and not system.family else "teacher_arch"]
    options: Options = {
        "--task": "sb_translation",
        "--criterion": "sb_label_smoothed_cross_entropy",
        "--arch": system.family + arch,
        "--log-format": "simple",
        "--seed": seed,
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
    options |= system.options
    options |= recipe["systems"].get(base, {})
    return {key: value for key, value in options.items() if value is not False}


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


def ends_with_an_epoch(options: Options) -> bool:
    """Whether a training does, which its last checkpoint then says."""
    others = ("--max-update", "--stop-time-hours")
    return bool(options.get("--max-epoch")) and not any(map(options.get, others))


def training_stages(recipe: dict[str, Any], name: str) -> list[Stage]:
    """The trainings of a row, one after the other; the last is under its own name."""
    name = trained_as(name)
    base, _ = split_name(name)
    system, options = SYSTEMS[base], training_options(recipe, name)
    default = [{"data": kind} for kind in system.stages or (system.data,)]
    asked = recipe["stages"].get(base, default)
    found = []
    for number, changes in enumerate(asked, start=1):
        changes = dict(changes)
        data = changes.pop("data", system.data)
        continues = bool(changes.pop("continue", False))
        own = {**options, **changes}
        own = {key: value for key, value in own.items() if value is not False}
        last = number == len(asked)
        place = name if last else f"{name}/stage-{number}"
        found.append(Stage(place, data, own, continues))
    for before, stage in pairwise(found):
        if stage.continues and not ends_with_an_epoch(before.options):
            raise ValueError(
                f"recipe.yaml: stages.{base}: what a stage continues must end with an "
                "epoch, or the next data would begin amid theirs: limit it by "
                "--max-epoch alone (--max-update: false)"
            )
    return found


def needs_pseudo(recipe: dict[str, Any], names: list[str]) -> list[str]:
    """Directions of the teachers on whose pseudo targets any of the rows is trained."""
    stages = [stage for name in names for stage in training_stages(recipe, name)]
    needed = {direction for stage in stages for direction in PSEUDO[stage.data]}
    return sorted(needed)


def teacher_row(recipe: dict[str, Any], direction: str) -> str:
    """The row whose model writes the pseudo targets of a direction."""
    return TEACHER + ("both" if recipe["teachers"] == "one" else direction)


def same_training(recipe: dict[str, Any], name: str) -> str:
    """The row of the paper's comparison that is trained in just this way, or itself."""
    name = trained_as(name)
    base, seed = split_name(name)
    if SYSTEMS[base].remedy:  # its options are not known any more
        return name

    def essence(row: str) -> list[Any]:
        stages = training_stages(recipe, row)
        return [(s.data, s.options, s.continues) for s in stages]

    for other in PAPER:
        twin = other if seed == 1 else f"{other}@{seed}"
        same_start = SYSTEMS[other].starts_from == SYSTEMS[base].starts_from
        if SYSTEMS[other].data and same_start and essence(twin) == essence(name):
            return twin
    return name


def trainings(recipe: dict[str, Any], name: str) -> list[str]:
    """The rows with whose models a row decodes, itself among them if it has one."""
    base, seed = split_name(name)
    system = SYSTEMS[base]
    if system.joins:
        return [with_seed(row, seed) for row in system.joins]
    direction = base.removeprefix(TEACHER)
    if direction in DIRECTIONS and seed == 1:
        name = teacher_row(recipe, direction)
    own = system.decodes or (name if system.data else "")
    return [same_training(recipe, own)] if own else []


def references(text: Path, settings: dict[str, Any]) -> References:
    """The test set's, in a work folder's ``text``."""
    return References(
        text=text,
        target=settings["target"],
        count=settings["score"]["references"],
        lowercase=settings["score"]["lowercase"],
        detokenise=settings["detokenise"],
        phonemes=settings["score"]["phonemes"],
    )
