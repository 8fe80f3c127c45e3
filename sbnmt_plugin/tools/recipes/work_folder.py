"""The books of a work folder: with which recipe and options it was begun."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.recipe_file import KEYS, SCORE
from sbnmt_plugin.tools.recipes.row_names import is_rescored, split_name
from sbnmt_plugin.tools.recipes.settings import Stage
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.systems.system import Options
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import new_file

# what every row depends on; a work folder keeps one value of each
SHARED = (
    *("source", "target", "prepare", "bpe", "preprocess", "teachers", "decode"),
    *("pseudo", "make_triples", "phrase_table", "average", "generate", "rerank"),
    *("detokenise", "score", "rescore"),
)
# change nothing of what is trained: a folder goes on with another value
NEUTRAL = ("--num-workers", "--sb-freeze-writer")  # the latter: 0.2.0's --sb-reader
# also say where searches run, and in what numbers: what is finished goes anywhere
FINISHED = (*NEUTRAL, "--cpu", "--fp16")
MISSING = object()  # no value: a flag alone has None
DONE = "done"  # in a model's folder: it is complete


def read_recipe(path: Path, remedy: str) -> dict[str, Any]:
    """What :func:`same_recipe` has kept; keys that are newer have their defaults.

    Args:
        remedy: what to do where it is damaged.

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
    """A work folder belongs to one setting of one recipe.

    Raises:
        ValueError: what all rows share has changed.
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
    with new_file(work / "recipe.json") as file:
        json.dump(settings, file, indent=1, ensure_ascii=False)


def books(stages: list[Stage], start: Options | None = None) -> list[Options]:
    """What a folder keeps of each stage: its options, and under names that are no flags
    its data, whether it goes on, the stages before it, and of the row from whose
    weights the first one starts, if any, the last of that row's books."""
    found: list[Options] = []
    for stage in stages:
        own = {**stage.options, "data": stage.data, "continues": stage.continues}
        if start:
            own["starts from"] = start
        found.append({**own, "stages before": found.copy()} if found else own)
    return found


def changed_options(
    path: Path, options: Options, remedy: str, neutral: Sequence[str] = FINISHED
) -> list[str]:
    """Of the options that are noted in a file, and of those of now, which differ."""
    with as_written(path, remedy):
        known = dict(json.loads(path.read_text("utf-8")))
    return changed_keys(known, options, neutral)


def changed_keys(known: Options, options: Options, neutral: Sequence[str]) -> list[str]:
    """Of two books, the keys that differ; a key that is no flag may be newer.

    Args:
        neutral: keys that may differ.
    """
    return [
        key
        for key in {**known, **options}
        if key not in neutral
        and (key.startswith("--") or key in known)
        and not alike(known.get(key, MISSING), options.get(key, MISSING))
    ]


def alike(known: Any, options: Any) -> bool:
    """Whether two values of a book, which may be books of what was trained before, are
    the same."""
    match known, options:
        case dict(), dict():
            return not changed_keys(known, options, FINISHED)
        case list(), list():
            return len(known) == len(options) and all(map(alike, known, options))
    return bool(known == options)


def same_options(folder: Path, options: Options) -> bool:
    """A model's folder belongs to the options with which it was begun.

    Args:
        options: of its :func:`books`.

    Returns:
        Whether it has just been begun.

    Raises:
        ValueError: recipe.yaml says something else by now.
    """
    path = folder / "options.json"
    if not path.exists():
        with new_file(path) as file:
            json.dump(options, file, indent=1, ensure_ascii=False)
        return True
    remedy = "remove it if the folder was begun with these options"
    neutral = FINISHED if (folder / DONE).exists() else NEUTRAL
    if changed := changed_options(path, options, remedy, neutral):
        raise ValueError(
            f"{folder} was begun with other options ({', '.join(changed)}): "
            "remove it, its files in results and logs, and what was made with it (of "
            "a teacher pseudo, examples, data-* and the rows trained on them), to "
            "train anew, or restore recipe.yaml"
        )
    return False


def same_teacher(texts: Path, options: Options) -> None:
    """Pseudo targets belong to the options of the teacher that wrote them, if these are
    noted: not those of 0.1.0, nor those that were taken over from another run.

    Args:
        options: last of the teacher's :func:`books`.

    Raises:
        ValueError: recipe.yaml says something else of the teacher by now.
    """
    path = writer_of(texts)
    if not path.exists():
        return
    remedy = "remove it if a teacher of these options wrote the pseudo targets"
    if changed := changed_options(path, options, remedy):
        raise ValueError(
            f"{texts} was written by a teacher of other options "
            f"({', '.join(changed)}): remove {texts.parent}, examples, data-*, the "
            "rows trained on them and their files in results and logs, to translate "
            "anew, or restore recipe.yaml"
        )


def note_teacher(texts: Path, options: Options) -> bool:
    """Note by which teacher pseudo targets are being written.

    Returns:
        Whether it has not begun yet.

    Raises:
        ValueError: another has begun.
    """
    same_teacher(texts, options)
    begun = writer_of(texts).exists() or Path(f"{texts}.shards").exists()
    texts.parent.mkdir(parents=True, exist_ok=True)
    with new_file(writer_of(texts)) as file:
        json.dump(options, file, indent=1, ensure_ascii=False)
    return not begun


def writer_of(texts: Path) -> Path:
    """Where it is noted."""
    return texts.with_suffix(".teacher.json")


def mend_last(folder: Path) -> str | None:
    """Make a training that was killed while it saved one that can go on.

    fairseq writes checkpoint_last.pt over the old one, as a copy of the checkpoint that
    it has saved whole just before; a copy that was cut off cannot be read any more.

    Returns:
        What was done, in a line; None if there was nothing to do.
    """
    last = folder / "checkpoint_last.pt"
    if not last.exists() or zipfile.is_zipfile(last):  # a zip file's list stands last
        return None
    whole = [path for path in folder.glob("checkpoint*.pt") if zipfile.is_zipfile(path)]
    if not whole:
        os.replace(last, last.with_suffix(".cut-off"))
        return f"{last} was cut off, and is laid aside: the training begins anew"
    newest = max(whole, key=lambda path: path.stat().st_mtime_ns)
    copy = last.with_name(f".{last.name}.tmp")
    shutil.copyfile(newest, copy)
    os.replace(copy, last)
    return f"{last} was cut off, and is replaced by {newest.name}"


def decoded_rows(work: Path) -> list[str]:
    """The rows that have results, in the order of a table.

    Raises:
        ValueError: a file there is no row's.
    """
    order = list(SYSTEMS)
    places = {}
    for path in (work / "results").glob("*.json"):
        try:
            base, seed = split_name(path.stem)
        except ValueError as error:
            raise ValueError(
                f"{path} must be a row's results, but no row has that name: move it "
                "elsewhere"
            ) from error
        places[path.stem] = (order.index(base), is_rescored(path.stem), seed)
    return sorted(places, key=lambda name: places[name])


def log_name(stage: Stage) -> str:
    """Of a stage's training, without its ending."""
    return f"train-{stage.name.replace('/', '-')}"
