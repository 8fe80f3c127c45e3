"""A work folder: the recipe and the options with which it was begun."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sbnmt_plugin.tools.recipes.recipe_file import KEYS, SCORE
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.stages import Stage
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.systems.system import DIRECTIONS, Options
from sbnmt_plugin.tools.text import as_written, read_lines, write_lines
from sbnmt_plugin.tools.unfinished import new_file

# keys of recipe.yaml that every row depends on; a work folder keeps one value of each
SHARED = (
    *("source", "target", "prepare", "bpe", "preprocess", "teachers", "decode"),
    *("pseudo", "make_triples", "phrase_table", "average", "generate", "rerank"),
    *("detokenise", "score", "rescore"),
)
# Options that do not change the model: a folder goes on with another value.  Those of
# 0.2.0 have --sb-freeze-writer beside --sb-reader, which now means both.
NEUTRAL = ("--num-workers", "--sb-freeze-writer")
# these say where searches run, and their dtype: a finished model is searched anywhere
FINISHED = (*NEUTRAL, "--cpu", "--fp16")
MISSING = object()  # no value: a flag alone has None
DONE = "done"  # in a model's folder: it is complete


def read_recipe(path: Path, remedy: str) -> dict[str, Any]:
    """Read what :func:`same_recipe` has kept; newer keys have their defaults.

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
    """Check that a work folder belongs to this setting of this recipe.

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


def changed_options(
    path: Path, options: Options, remedy: str, neutral: Sequence[str]
) -> list[str]:
    """Return the options that differ from those of a file, if it is there."""
    if not path.exists():
        return []
    with as_written(path, remedy):
        known = dict(json.loads(path.read_text("utf-8")))
    return changed_keys(known, options, neutral)


def changed_keys(known: Options, options: Options, neutral: Sequence[str]) -> list[str]:
    """Return the keys in which two records differ; one that is no flag may be newer.

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
    """Check whether two values are the same; they may be records themselves."""
    match known, options:
        case dict(), dict():
            return not changed_keys(known, options, FINISHED)
        case list(), list():
            return len(known) == len(options) and all(map(alike, known, options))
    return bool(known == options)


@dataclass(frozen=True)
class ModelRecord:
    """The options of a model's folder: it belongs to those with which it was begun.

    Attributes:
        folder: of the model.
        options: see :func:`stages.records`.
    """

    folder: Path
    options: Options
    whole: ClassVar[bool] = False
    logs: ClassVar[str] = ""

    @property
    def path(self) -> Path:
        return self.folder / "options.json"

    def check(self) -> None:
        """
        Raises:
            ValueError: recipe.yaml has changed since.
        """
        remedy = "remove it if the folder was begun with these options"
        neutral = FINISHED if (self.folder / DONE).exists() else NEUTRAL
        if changed := changed_options(self.path, self.options, remedy, neutral):
            raise ValueError(
                f"{self.folder} was begun with other options ({', '.join(changed)}): "
                "remove it, its files in results and logs, and what was made with it "
                "(of a teacher pseudo, examples, data-* and the rows trained on them), "
                "to train anew, or restore recipe.yaml"
            )

    def begin(self, tell: Callable[[str], None]) -> bool:
        """Keep the options, and mend a checkpoint that was cut off.

        Returns:
            Whether nothing of this training is there yet.

        Raises:
            ValueError: see :meth:`check`.
        """
        self.check()
        begun = not self.path.exists()
        if begun:
            write_options(self.path, self.options)
        if mended := mend_last(self.folder):
            tell(mended)
            return not (self.folder / "checkpoint_last.pt").exists()
        return begun


@dataclass(frozen=True)
class TeacherRecord:
    """The options of the teacher that wrote pseudo targets, if they are noted.

    They are not for those of 0.1.0, nor for those taken over from another run.

    Attributes:
        texts: the pseudo targets.
        options: last of the teacher's :func:`stages.records`.
        source: the text that is translated; a later run knows it by a copy.
    """

    texts: Path
    options: Options
    source: Path
    whole: ClassVar[bool] = True
    logs: ClassVar[str] = "*"  # workers have their own

    @property
    def path(self) -> Path:
        return self.texts.with_suffix(".teacher.json")

    def check(self) -> None:
        """
        Raises:
            ValueError: recipe.yaml describes another teacher by now.
        """
        remedy = "remove it if a teacher of these options wrote the pseudo targets"
        if changed := changed_options(self.path, self.options, remedy, FINISHED):
            raise ValueError(
                f"{self.texts} was written by a teacher of other options "
                f"({', '.join(changed)}): remove {self.texts.parent}, examples, "
                "data-*, the rows trained on them and their files in results and "
                "logs, to translate anew, or restore recipe.yaml"
            )

    def begin(self, tell: Callable[[str], None]) -> bool:
        """Note the teacher, and keep a copy of the source.

        Returns:
            Whether nothing is translated yet.

        Raises:
            ValueError: see :meth:`check`.
        """
        self.check()
        begun = self.path.exists() or Path(f"{self.texts}.shards").exists()
        self.texts.parent.mkdir(parents=True, exist_ok=True)
        write_options(self.path, self.options)
        copy = self.texts.parent / self.source.name
        if not copy.exists():
            write_lines(copy, read_lines(self.source))
        return not begun


def take_over(folder: Path, work: Path, source: Path) -> None:
    """Take over the pseudo targets of an earlier run.

    Args:
        folder: given by --pseudo.
        source: the text that they must translate.

    Raises:
        FileNotFoundError, ValueError: they are not those of this text.
    """
    files = [pseudo_targets(work, direction).name for direction in DIRECTIONS]
    for name in (*files, source.name):
        if not (folder / name).is_file():
            raise FileNotFoundError(
                f"--pseudo {folder} must hold {', '.join(files)} and {source.name}, as "
                f"another run's folder pseudo does, but has no {name}"
            )
    if read_lines(folder / source.name) != read_lines(source):
        raise ValueError(
            f"--pseudo {folder} must translate this recipe's training source, but its "
            f"{source.name} is another text: leave the option out to translate anew"
        )
    for name in (*files, source.name):
        lines, own = read_lines(folder / name), work / "pseudo" / name
        if own.exists() and read_lines(own) != lines:
            raise ValueError(
                f"--pseudo {folder} must not differ from what {work} has already, but "
                f"{name} does: leave the option out, or choose another --work"
            )
        if not own.exists():
            # the teacher that would have written it
            TeacherRecord(own, {}, source).path.unlink(missing_ok=True)
            write_lines(own, lines)


def pseudo_targets(work: Path, direction: str) -> Path:
    """Return their file."""
    return work / "pseudo" / f"{direction}.tsv"


def write_options(path: Path, options: Options) -> None:
    """Write a record's file."""
    with new_file(path) as file:
        json.dump(options, file, indent=1, ensure_ascii=False)


def mend_last(folder: Path) -> str | None:
    """Make a training that was killed while it saved one that can go on.

    fairseq writes checkpoint_last.pt over the old one, as a copy of the checkpoint that
    it has saved whole just before; a copy that was cut off cannot be read any more.

    Returns:
        A line that says what was done; None if there was nothing to do.
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
    found.sort(key=lambda row: (order.index(row.base), row.rescored, row.seed))
    return [row.name for row in found]


def log_name(stage: Stage) -> str:
    """Return the name of a stage's log, without its ending."""
    return stage.log
