"""The file recipe.yaml: it is found, read and checked."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from sbnmt_plugin.tools.command_names import ENGINES, HOME, PLUGIN
from sbnmt_plugin.tools.recipes.systems import PAPER, SYSTEMS
from sbnmt_plugin.tools.recipes.systems.system import TRAINING_SETS
from sbnmt_plugin.tools.text import as_written, read_lines

OWN = (HOME / "examples", PLUGIN / "examples")  # of a clone; as installed
SIZES = "sizes"  # a section: its own sections are taken by the amount of text
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
    "data": (str, ""),  # content of the user's --data; "": the recipe wants none
    "prepare": (list, []),  # words for prepare.py
    "preprocess": (list, []),  # words for fairseq-preprocess
    "model": (dict, {}),  # sizes of all Transformers
    "teacher_train": (dict, {}),  # over `train`, for models of one direction
    "sb_train": (dict, {}),  # over `train`, for models of both
    "systems": (dict, {}),  # over all that, row by row
    # row -> options over all that, a stage each, with `data` and `continue`
    "stages": (dict, {}),
    "rescore": ((int, float), 1),  # W of --sb-rescore, for rows as sb+rescored
    "pseudo": (list, []),  # words for sbnmt pseudo
    "pseudo_engine": (str, ENGINES[0]),
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
TYPES = {str: "a text", int: "a whole number", float: "a number"}
TYPES |= {bool: "true or false", list: "a list", dict: "keys and values"}
OTHER_ROWS = (
    "`sbnmt recipe --list`; a second variant of a row needs a name of its own "
    "(CONTRIBUTING.md, Add a row)"
)
# options of fairseq-train by which the next step would not find what it reads
CHOSEN = ("--save-dir", "--no-save", "--user-dir", "--task", "--sb-direction")
SCORE = {"lowercase": False, "references": 1, "phonemes": False}
BPE = ("joint", "separate", "sentencepiece", "none")


def find_recipe(name: str) -> Path:
    """Return the folder of a recipe.

    Args:
        name: a path, or the name of one of the plugin's own.

    Raises:
        FileNotFoundError: there is no such recipe.
    """
    for folder in (Path(name), *(place / name for place in OWN)):
        if (folder / "recipe.yaml").is_file():
            return folder.resolve()
    known = [folder.name for folder in own_recipes()]
    raise FileNotFoundError(
        f"{name} is no recipe: give a folder with recipe.yaml and prepare.py, or "
        f"one of {', '.join(known)}"
    )


def own_recipes() -> list[Path]:
    """Return the folders of the plugin's own recipes, by their names."""
    found = {p.parent.name: p.parent for o in OWN for p in o.glob("*/recipe.yaml")}
    return [found[name] for name in sorted(found)]


def about(folder: Path) -> str:
    """Return the first line of a recipe's file, which says what it is for."""
    return read_lines(folder / "recipe.yaml")[0].removeprefix("# ")


def load_recipe(
    folder: Path, small: bool, size: str = "", changes: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Read recipe.yaml, with the sections laid over it that are asked for.

    Args:
        small: whether its ``small`` section is.
        size: name of one of its ``sizes``; "" for none.
        changes: further keys, which are laid over all that.

    Raises:
        OSError, ValueError: it is missing or wrong; with the key.
    """
    path = folder / "recipe.yaml"
    with as_written(path, "see the recipes in examples"):
        recipe = with_sections(path, small, size)
        lay_over(recipe, changes or {})
        for key in recipe:
            if key not in KEYS:
                raise ValueError(
                    f"{path} has unknown keys {key}: known are {', '.join(KEYS)}"
                )
        for key, (kind, default) in KEYS.items():
            if default is ... and key not in recipe:
                raise ValueError(f"{path} must have the key {key}, but has not")
            check_type(recipe.setdefault(key, default), kind, f"{path}: {key}")
        check(recipe, path)
    return recipe


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the keys of recipe.yaml, and its sections.

    Raises:
        ValueError: it is no YAML of keys and values.
    """
    text = "\n".join(read_lines(path))
    try:
        recipe = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError) as error:  # the latter for a date
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} must be YAML, but is not: {reason}") from error
    if not isinstance(recipe, dict):
        raise ValueError(f"{path} must hold keys and values, but does not")
    return recipe


def sizes_of(folder: Path) -> list[str]:
    """Return the names of a recipe's sizes, none where it has one corpus of its own.

    Raises:
        OSError, ValueError: see :func:`read_yaml`; or they are no sections.
    """
    path = folder / "recipe.yaml"
    sizes = read_yaml(path).get(SIZES, {})
    check_type(sizes, dict, f"{path}: {SIZES}")
    return list(sizes)


def with_sections(path: Path, small: bool, size: str) -> dict[str, Any]:
    """Read the keys of recipe.yaml, sections that are asked for laid over them.

    Raises:
        ValueError: see :func:`read_yaml`; or it has no such section.
    """
    recipe = read_yaml(path)
    overlay, sizes = recipe.pop("small", None), recipe.pop(SIZES, {})
    if small and overlay is None:
        raise ValueError(f"--small: {path} has no small setting")
    check_type(sizes, dict, f"{path}: {SIZES}")
    if size and size not in sizes:
        raise ValueError(f"--size {size} must be one of {', '.join(sizes)} ({path})")
    for name, section in ("small", overlay if small else {}), (size, sizes.get(size)):
        if section is not None:
            check_type(section, dict, f"{path}: {name}")
            lay_over(recipe, section)
    return recipe


def lay_over(recipe: dict[str, Any], section: dict[str, Any]) -> None:
    """Lay a section over a recipe's keys; options are laid over one by one."""
    for key, value in section.items():
        merge = isinstance(value, dict) and isinstance(recipe.get(key), dict)
        recipe[key] = {**recipe[key], **value} if merge else value


def check_type(value: Any, kind: Any, where: str) -> None:
    """Raise ValueError where a value is of another type; true is no number."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if type(value) not in kinds:
        wanted = " or ".join(TYPES[k] for k in kinds)
        raise ValueError(f"{where} must be {wanted}, but is {value!r}")


def check_stages(recipe: dict[str, Any], row: str, where: str) -> None:
    """Refuse stages of a row that cannot be trained one after the other."""
    stages = recipe["stages"][row]
    whole = isinstance(stages, list) and all(isinstance(s, dict) for s in stages)
    if not stages or not whole:
        raise ValueError(
            f"{where} must be a list of options, one for each stage, but is {stages!r}"
        )
    for stage in stages:
        check_type(stage.get("continue", False), bool, f"{where}: continue")
        if (kind := stage.get("data", "gold")) not in TRAINING_SETS:
            raise ValueError(
                f"{where}: data must be one of {', '.join(TRAINING_SETS)}, but is "
                f"{kind!r}"
            )
    if stages[0].get("continue"):
        raise ValueError(f"{where}: the first stage has nothing to continue")
    if any(stage.get("continue") for stage in stages) and not recipe["average"]:
        raise ValueError(
            f"{where}: a stage that continues needs average ≥ 1, since the best "
            "checkpoint may be one of the stage before"
        )


def rules(recipe: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    """Return each rule, the value that it is about, and whether it holds."""
    score, kind = recipe["score"], recipe["bpe"].get("kind")
    engine = recipe["pseudo_engine"]
    merges = recipe["bpe"].get("merges")
    counted = type(merges) is int and merges >= 1
    lowercase = (
        "score.lowercase must be false with score.phonemes, whose error rates compare "
        "phonemes as they are: write the text in lower case instead"
    )
    some_merges = "bpe.merges must be a whole number ≥ 1, unless bpe.kind is none"
    tokens = recipe["detokenise"] or recipe["links"] or score["phonemes"]
    of_tokens = (
        "bpe.kind must be joint, separate or none with detokenise, links or "
        "score.phonemes, which are of tokens"
    )
    return [
        ("average must be ≥ 0", recipe["average"], recipe["average"] >= 0),
        ("jobs must be ≥ 1", recipe["jobs"], recipe["jobs"] >= 1),
        ("rescore must be > 0", recipe["rescore"], recipe["rescore"] > 0),
        ("score.references must be ≥ 1", score["references"], score["references"] >= 1),
        (lowercase, score["lowercase"], not (score["phonemes"] and score["lowercase"])),
        (f"bpe.kind must be one of {', '.join(BPE)}", kind, kind in BPE),
        (some_merges, merges, kind == "none" or counted),
        (f"pseudo_engine must be of {ENGINES}", engine, engine in ENGINES),
        (of_tokens, kind, kind != "sentencepiece" or not tokens),
    ]


def check(recipe: dict[str, Any], path: Path) -> None:
    """Refuse values with which a later step would fail or do something else."""
    recipe["score"] = {**SCORE, **recipe["score"]}
    for key, known in (("score", SCORE), ("systems", SYSTEMS), ("stages", SYSTEMS)):
        unknown = sorted(set(map(str, recipe[key])) - set(known))
        if unknown:
            name = "rows" if known is SYSTEMS else "keys"
            raise ValueError(
                f"{path}: {key} has unknown {name} {', '.join(unknown)}: take one of "
                + (f"{', '.join(known)}" if known is SCORE else OTHER_ROWS)
            )
    for row, own in recipe["systems"].items():
        check_type(own, dict, f"{path}: systems.{row}")
    for row in recipe["stages"]:
        check_stages(recipe, row, f"{path}: stages.{row}")
    sections = "train", "model", "teacher_train", "sb_train"
    given: dict[str, Any] = {key: recipe[key] for key in sections}
    given |= {f"systems.{row}": own for row, own in recipe["systems"].items()}
    given |= {f"stages.{row}": chain(*own) for row, own in recipe["stages"].items()}
    for key, options in given.items():
        if flag := next((x for x in options if x in CHOSEN), None):
            raise ValueError(
                f"{path}: {key} must not set {flag}, which is chosen for each row by "
                "itself: leave it out"
            )
    for name in recipe["rows"]:
        check_type(name, str, f"{path}: each of rows")
    for name, value in recipe["environment"].items():
        check_type(value, (str, int, float), f"{path}: environment.{name}")
    for key, default in SCORE.items():
        check_type(recipe["score"][key], type(default), f"{path}: score.{key}")
    for rule, value, holds in rules(recipe):
        if not holds:
            raise ValueError(f"{path}: {rule}, but is {value!r}")
    if recipe["detokenise"]:
        from sbnmt_plugin.tools.tokens import language_code  # which takes a moment

        try:
            language_code(recipe["detokenise"])
        except ValueError as error:
            raise ValueError(f"{path}: detokenise: {error}") from error
