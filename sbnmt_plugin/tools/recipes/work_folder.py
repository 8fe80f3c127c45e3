"""A work folder: the recipe and the options with which it was begun."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.recipe_file import KEYS, SCORE
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import write_json

# keys of recipe.yaml that every row depends on; a work folder keeps one value of each
SHARED = (
    *("source", "target", "prepare", "bpe", "preprocess", "teachers", "decode"),
    *("pseudo", "make_triples", "phrase_table", "average", "generate", "rerank"),
    *("detokenise", "score", "rescore"),
)


def read_recipe(path: Path, remedy: str) -> dict[str, Any]:
    """Read what :func:`same_recipe` has kept; newer keys have their defaults.

    Args:
        remedy: advice where it is damaged.

    Raises:
        ValueError: it is.
    """
    with as_written(path, remedy):
        newer = {key: default for key, (_, default) in KEYS.items() if default != ...}
        known = {**newer, **json.loads(path.read_text("utf-8"))}
        known["score"] = {**SCORE, **known["score"]}
        for key, (kind, _) in KEYS.items():
            if not isinstance(known[key], kind):
                raise TypeError(f"{key} is {type(known[key]).__name__}")
    return known


def check_recipe(work: Path, settings: dict[str, Any]) -> None:
    """Check that a work folder belongs to this setting of this recipe.

    Raises:
        ValueError: a key that all rows depend on has changed.
    """
    path = work / "recipe.json"
    if not path.exists():
        return
    known = read_recipe(path, "remove it if the folder belongs to this recipe")
    changed = [key for key in SHARED if known.get(key) != settings[key]]
    if changed:
        raise ValueError(
            f"--work {work} was begun with another recipe, or with --small or "
            f"--teachers otherwise ({', '.join(changed)} differ): choose another folder"
        )


def same_recipe(work: Path, settings: dict[str, Any]) -> None:
    """Check the recipe, and keep it for those who read the folder later.

    Raises:
        ValueError: as :func:`check_recipe`.
    """
    check_recipe(work, settings)
    write_json(work / "recipe.json", settings)


def decoded_rows(work: Path) -> list[Row]:
    """Return the rows that have results, in the order of a table.

    Raises:
        ValueError: a file there is no row's.
    """
    order = list(SYSTEMS)
    found = []
    for path in (work / "results").glob("*.json"):
        try:
            found.append(Row.parse(path.stem))
        except ValueError as error:
            raise ValueError(
                f"{path} must be a row's results, but no row has that name: move it "
                "elsewhere"
            ) from error
    return sorted(found, key=lambda x: (order.index(x.base), x.rescored, x.seed))
