"""recipe.yaml: read, checked, and turned into fairseq's options."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from sbnmt_plugin.steps import HOME, PLUGIN
from sbnmt_plugin.tools.recipes.row_names import (
    rows,
    split_name,
    trained_as,
    with_seed,
)
from sbnmt_plugin.tools.recipes.systems import (
    BOTH,
    KD,
    MULTILINGUAL,
    PAPER,
    SYSTEMS,
    Options,
)
from sbnmt_plugin.tools.text import as_written

TEACHERS = ("two", "one")  # a model each, or one of both directions
# key: type, default (... if the key must be there)
KEYS: dict[str, tuple[type | tuple[type, ...], Any]] = {
    "source": (str, ...),
    "target": (str, ...),
    "bpe": (dict, ...),
    "train": (dict, ...),
    "teacher_arch": (str, ...),
    "sb_arch": (str, ...),
    "average": (int, ...),
    "decode": (list, ...),
    "data": (str, ""),  # what the user's --data holds; "": the recipe wants none
    "prepare": (list, []),  # words for prepare.py
    "preprocess": (list, []),  # words for fairseq-preprocess
    "model": (dict, {}),  # sizes of all Transformers
    "teacher_train": (dict, {}),  # over `train`, for models of one direction
    "sb_train": (dict, {}),  # over `train`, for models of both
    "systems": (dict, {}),  # over all that, row by row
    # row -> options over all that, a stage each, with `data` and `continue`
    "stages": (dict, {}),
    "rescore": ((int, float), 1),  # W of --sb-rescore, for rows as sb+rescored
    "teachers": (str, "two"),
    "pseudo": (list, []),  # words for translate.py
    "make_triples": (list, []),
    "phrase_table": (list, []),
    "rerank": (list, ["--beam", 10]),
    "generate": (list, ["--max-tokens", 4000]),
    "detokenise": (str, ""),  # language for sacremoses; tokens are scored without
    "score": (dict, {}),  # lowercase: true, references: 4, phonemes: true
    "links": (bool, False),  # text/test.links has the test set's word alignments
    "rows": (list, list(PAPER)),
    "jobs": (int, 1),  # steps side by side
    "environment": (dict, {}),
}
TRAINING_SETS = (
    *("gold", "pl", "pr", "pl-pr", "one", "two", "three", "six"),
    *(MULTILINGUAL, KD),
)
DIRECTIONS = ("l2r", "r2l")
# whose pseudo targets a training set is made of
PSEUDO: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(TRAINING_SETS, DIRECTIONS),
    **{"": (), "gold": (), MULTILINGUAL: ()},
    **{"one": ("r2l",), "pl": ("l2r",), "pr": ("r2l",), KD: ("l2r",)},
}
SCORE = {"lowercase": False, "references": 1, "phonemes": False}


def find_recipe(name: str) -> Path:
    """The folder of a recipe.

    Args:
        name: a path, or the name of one of the plugin's own.

    Raises:
        FileNotFoundError: there is no such recipe.
    """
    own = (HOME / "examples", PLUGIN / "examples")  # of a clone; as installed
    for folder in (Path(name), *(place / name for place in own)):
        if (folder / "recipe.yaml").is_file():
            return folder.resolve()
    known = sorted(
        {p.parent.name for place in own for p in place.glob("*/recipe.yaml")}
    )
    raise FileNotFoundError(
        f"{name} is no recipe: give a folder with recipe.yaml and prepare.py, or "
        "one of "
        f"{', '.join(known)}"
    )


def add_setting(parser: argparse.ArgumentParser) -> None:
    """Options that say how a recipe is taken."""
    parser.add_argument("--small", action="store_true", help="its small setting")
    parser.add_argument(
        "--teachers",
        choices=TEACHERS,
        help="who writes the pseudo targets: a Transformer for each direction, or one "
        "model of both, which is cheaper (default: the recipe's)",
    )


def setting(args: argparse.Namespace) -> list[str]:
    """The options of :func:`add_setting` as they were given."""
    asked = ["--teachers", args.teachers] if args.teachers else []
    return ["--small"] * args.small + asked


def load_recipe(
    folder: Path, small: bool, teachers: str | None = None
) -> dict[str, Any]:
    """recipe.yaml, with its ``small`` section laid over it if asked for.

    Args:
        folder: of the recipe.
        small: whether to lay it.
        teachers: instead of the recipe's.

    Raises:
        FileNotFoundError, ValueError: it is missing or wrong; with the key.
    """
    path = folder / "recipe.yaml"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: give a recipe's folder")
    with as_written(path, "see the recipes in examples"):
        recipe = checked(path, small)
    return recipe | ({"teachers": teachers} if teachers else {})


def checked(path: Path, small: bool) -> dict[str, Any]:
    """What recipe.yaml holds.

    Raises:
        ValueError: see :func:`load_recipe`.
    """
    try:
        recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} must be YAML, but is not: {reason}") from error
    if not isinstance(recipe, dict):
        raise ValueError(f"{path} must hold keys and values, but does not")
    overlay = recipe.pop("small", None)
    if small:
        if overlay is None:
            raise ValueError(f"--small: {path} has no small setting")
        for key, value in overlay.items():
            merge = isinstance(value, dict) and isinstance(recipe.get(key), dict)
            recipe[key] = {**recipe[key], **value} if merge else value
    unknown = sorted(set(recipe) - set(KEYS))
    if unknown:
        raise ValueError(
            f"{path} has unknown keys {', '.join(unknown)}: known are {', '.join(KEYS)}"
        )
    for key, (kind, default) in KEYS.items():
        if default is ... and key not in recipe:
            raise ValueError(f"{path} must have the key {key}, but has not")
        value = recipe.setdefault(key, default)
        if not isinstance(value, kind):
            raise ValueError(f"{path}: {key} must be a {kind}, but is {value!r}")
    check(recipe, path)
    return dict(recipe)


def check(recipe: dict[str, Any], path: Path) -> None:
    """Refuse values with which a later step would fail or do something else."""
    for row, stages in recipe["stages"].items():
        whole = isinstance(stages, list) and all(isinstance(s, dict) for s in stages)
        if not stages or not whole:
            raise ValueError(
                f"{path}: stages.{row} must be a list of options, one for each stage, "
                f"but is {stages!r}"
            )
        kinds = [stage.get("data", TRAINING_SETS[0]) for stage in stages]
        for kind in kinds:
            if kind not in TRAINING_SETS:
                raise ValueError(
                    f"{path}: stages.{row}: data must be one of "
                    f"{', '.join(TRAINING_SETS)}, but is {kind!r}"
                )
        if stages[0].get("continue"):
            raise ValueError(
                f"{path}: stages.{row}: the first stage has nothing to continue"
            )
        if any(stage.get("continue") for stage in stages) and not recipe["average"]:
            raise ValueError(
                f"{path}: stages.{row}: a stage that continues needs average ≥ 1, "
                "since the best checkpoint may be one of the stage before"
            )
    if not recipe["rescore"] > 0:
        raise ValueError(f"{path}: rescore must be > 0, but is {recipe['rescore']}")
    kind = recipe["bpe"].get("kind")
    if kind not in ("joint", "separate", "none"):
        raise ValueError(
            f"{path}: bpe.kind must be joint, separate or none, but is {kind!r}"
        )
    if kind != "none" and not isinstance(recipe["bpe"].get("merges"), int):
        raise ValueError(
            f"{path}: bpe.merges must be a number, unless bpe.kind is none"
        )
    if recipe["teachers"] not in TEACHERS:
        raise ValueError(
            f"{path}: teachers must be two or one, but is {recipe['teachers']!r}"
        )
    recipe["score"] = {**SCORE, **recipe["score"]}
    for key, known in (("score", SCORE), ("systems", SYSTEMS), ("stages", SYSTEMS)):
        unknown = sorted(set(recipe[key]) - set(known))
        if unknown:
            raise ValueError(f"{path}: {key} has unknown keys {', '.join(unknown)}")
    if recipe["score"]["phonemes"] and recipe["score"]["lowercase"]:
        raise ValueError(
            f"{path}: score.lowercase must be false with score.phonemes, whose error "
            "rates compare phonemes as they are: write the text in lower case instead"
        )
    rows(recipe["rows"])


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
    if system.continues and not any(stage.continues for stage in found):
        raise ValueError(
            f"row {name} needs stages.{base} in recipe.yaml with `continue: true`, and "
            "limits counted from the first stage's start: that recipe has none"
        )
    return found


def needs_pseudo(recipe: dict[str, Any], names: list[str]) -> list[str]:
    """Directions of the teachers on whose pseudo targets any of the rows is trained."""
    stages = [stage for name in names for stage in training_stages(recipe, name)]
    needed = {direction for stage in stages for direction in PSEUDO[stage.data]}
    return sorted(needed)


def same_training(recipe: dict[str, Any], name: str) -> str:
    """The row of the paper's comparison that is trained in just this way, or itself."""
    name = trained_as(name)
    base, seed = split_name(name)

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
    own = system.decodes or (name if system.data else "")
    return [same_training(recipe, own)] if own else []
