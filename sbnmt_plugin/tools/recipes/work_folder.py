"""A work folder: the recipe and the options with which it was begun.

A model, or pseudo targets, belong to the options that they were begun with.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sbnmt_plugin.tools.recipes.recipe_file import KEYS, SCORE
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.systems.system import Options
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import rename, write_json

# keys of recipe.yaml that every row depends on; a work folder keeps one value of each
SHARED = (
    *("source", "target", "prepare", "bpe", "preprocess", "decode"),
    *("pseudo", "phrase_table", "average", "generate", "rerank", "detokenise"),
    *("score", "rescore", "pseudo_engine"),
)
# Options that do not change the model: a folder goes on with another value.  Those of
# 0.2.0 have --sb-freeze-writer beside --sb-reader, which now means both.
NEUTRAL = ("--num-workers", "--sb-freeze-writer")
# these say where searches run, and their dtype: a finished model is searched anywhere
FINISHED = (*NEUTRAL, "--cpu", "--fp16")
MISSING = object()  # no value: a flag alone has None
DONE = "done"  # in a model's folder: it is complete


def read_recipe(path: Path, remedy: str) -> dict[str, Any]:
    """Read the settings that a run has kept; newer keys have their defaults.

    Args:
        remedy: advice where it is damaged.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"--work {path.parent} must be the folder of a recipe's run, but has no "
            f"{path.name}: give the --work of sbnmt recipe"
        )
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
            f"--work {work} was begun with another recipe or other options "
            f"({', '.join(changed)} differ): choose another folder"
        )


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


# what else a refusal advises
OR = "or give the options as before (restore recipe.yaml), or choose another --work"


@dataclass(frozen=True)
class ModelRecord:
    """The options of a model, kept in its folder.

    Attributes:
        made: the folder.
        options: see :func:`stages.records`.
        whole: whether they tell of all steps before, too.
    """

    made: Path
    options: Options
    whole: ClassVar[bool] = False
    refusal: ClassVar[str] = (
        "{made} was begun with other options ({changed}): remove it, its files in "
        "results and logs, and what was made with it (of a teacher pseudo, examples, "
        "data-* and the rows trained on them), to train anew, " + OR
    )

    @property
    def path(self) -> Path:
        return self.made / "options.json"

    @property
    def neutral(self) -> tuple[str, ...]:
        """The options that may have changed."""
        return FINISHED if (self.made / DONE).exists() else NEUTRAL

    def check(self) -> None:
        """Compare the options with those that were kept, if any were.

        Raises:
            ValueError: they are others.
        """
        if not self.path.exists():
            return
        with as_written(self.path, f"remove it if {self.made} was begun as it says"):
            known = dict(json.loads(self.path.read_text("utf-8")))
        if changed := ", ".join(changed_keys(known, self.options, self.neutral)):
            folder = self.made.parent
            raise ValueError(
                self.refusal.format(made=self.made, changed=changed, folder=folder)
            )

    def begin(self) -> str:
        """Keep the options, and mend a checkpoint that was cut off.

        Returns:
            A line that says what was mended, "" if there was nothing to mend.

        Raises:
            ValueError: see :meth:`check`.
        """
        self.check()
        write_json(self.path, self.options)
        return mend_last(self.made)


class TeacherRecord(ModelRecord):
    """The options of the teacher that wrote pseudo targets, if they are noted.

    They are not for those taken over from another run.  ``made`` is the file of the
    pseudo targets.
    """

    whole = True
    refusal = (
        "{made} was written by a teacher of other options ({changed}): remove "
        "{folder}, examples, data-*, the rows trained on them and their files in "
        "results and logs, to translate anew, " + OR
    )
    neutral = FINISHED

    @property
    def path(self) -> Path:
        return self.made.with_suffix(".teacher.json")


class ResultRecord(ModelRecord):
    """The options of the model that some results are of, if they are noted.

    The model's own folder may be gone.  ``made`` is a file, or the folder of a sweep.
    """

    refusal = (
        "{made} is of a model of other options ({changed}): remove it and what else is "
        "named so in {folder}, to decode anew, " + OR
    )
    neutral = FINISHED

    @property
    def path(self) -> Path:
        return self.made.parent / "options" / self.made.name

    def check(self) -> None:
        if self.made.exists():
            super().check()


def changed_keys(
    known: Options, options: Options, neutral: tuple[str, ...]
) -> list[str]:
    """Return the keys in which two records differ.

    Args:
        neutral: keys that may differ.
    """
    return [
        key
        for key in {**known, **options}
        if key not in neutral
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


def mend_last(folder: Path) -> str:
    """Make a training that was killed while it saved one that can go on.

    fairseq writes checkpoint_last.pt over the old one, as a copy of the checkpoint that
    it has saved whole just before; a copy that was cut off cannot be read any more.

    Returns:
        A line that says what was done, "" if there was nothing to do.
    """
    last = folder / "checkpoint_last.pt"
    if not last.exists() or zipfile.is_zipfile(last):  # a zip file's list stands last
        return ""
    whole = [path for path in folder.glob("checkpoint*.pt") if zipfile.is_zipfile(path)]
    if not whole:
        rename(last, last.with_suffix(".cut-off"))
        return f"{last} was cut off, and is laid aside: the training begins anew"
    newest = max(whole, key=lambda path: path.stat().st_mtime_ns)
    copy = last.with_name(f".{last.name}.tmp")
    shutil.copyfile(newest, copy)
    rename(copy, last)
    return f"{last} was cut off, and is replaced by {newest.name}"
