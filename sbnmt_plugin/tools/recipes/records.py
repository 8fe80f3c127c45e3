"""Records of options: a model, or pseudo targets, belong to those they began with."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from sbnmt_plugin.tools.recipes.systems.system import Options
from sbnmt_plugin.tools.text import as_written, read_lines, write_lines
from sbnmt_plugin.tools.unfinished import rename, write_json

# Options that do not change the model: a folder goes on with another value.  Those of
# 0.2.0 have --sb-freeze-writer beside --sb-reader, which now means both.
NEUTRAL = ("--num-workers", "--sb-freeze-writer")
# these say where searches run, and their dtype: a finished model is searched anywhere
FINISHED = (*NEUTRAL, "--cpu", "--fp16")
MISSING = object()  # no value: a flag alone has None
DONE = "done"  # in a model's folder: it is complete


@dataclass(frozen=True)
class ModelRecord:
    """The options of a model, kept in its folder.

    Attributes:
        folder: of the model.
        options: see :func:`stages.records`.
        whole: whether they tell of all steps before, too.
        logs: end of a pattern for the names of the step's logs.
    """

    folder: Path
    options: Options
    whole: ClassVar[bool] = False
    logs: ClassVar[str] = ""

    @property
    def path(self) -> Path:
        return self.folder / "options.json"

    def check(self) -> None:
        """Compare the options with those of the file.

        Raises:
            ValueError: the model was begun with other options.
        """
        neutral = FINISHED if (self.folder / DONE).exists() else NEUTRAL
        remedy = "remove it if the folder was begun with these options"
        if changed := differing(self.path, self.options, remedy, neutral):
            raise ValueError(
                f"{self.folder} was begun with other options ({changed}): remove it, "
                "its files in results and logs, and what was made with it (of a "
                "teacher pseudo, examples, data-* and the rows trained on them), to "
                "train anew, or restore recipe.yaml"
            )

    def begin(self, tell: Callable[[str], None]) -> bool:
        """Keep the options, and mend a checkpoint that was cut off.

        Args:
            tell: takes a line, where something is mended.

        Returns:
            Whether nothing has been made yet.

        Raises:
            ValueError: see :meth:`check`.
        """
        self.check()
        begun = self.path.exists()
        if not begun:
            write_json(self.path, self.options)
        if mended := mend_last(self.folder):
            tell(mended)
            return not (self.folder / "checkpoint_last.pt").exists()
        return not begun


@dataclass(frozen=True)
class TeacherRecord:
    """The options of the teacher that wrote pseudo targets, if they are noted.

    They are not for those of 0.1.0, nor for those taken over from another run.

    Attributes:
        texts: the pseudo targets.
        options: last of the teacher's :func:`stages.records`.
        source: the text that is translated; a later run knows it by a copy.
        whole, logs: as of :class:`ModelRecord`.
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
        """Compare the options with those of the file.

        Raises:
            ValueError: another teacher has written the pseudo targets.
        """
        remedy = "remove it if a teacher of these options wrote the pseudo targets"
        if changed := differing(self.path, self.options, remedy, FINISHED):
            raise ValueError(
                f"{self.texts} was written by a teacher of other options ({changed}): "
                f"remove {self.texts.parent}, examples, data-*, the rows trained on "
                "them and their files in results and logs, to translate anew, or "
                "restore recipe.yaml"
            )

    def begin(self, tell: Callable[[str], None]) -> bool:
        """Note the teacher, and keep a copy of the source.

        Returns:
            Whether nothing has been translated yet.

        Raises:
            ValueError: see :meth:`check`.
        """
        self.check()
        begun = self.path.exists() or Path(f"{self.texts}.shards").exists()
        write_json(self.path, self.options)
        copy = self.texts.parent / self.source.name
        if not copy.exists():
            write_lines(copy, read_lines(self.source))
        return not begun


Record = ModelRecord | TeacherRecord


def differing(
    path: Path, options: Options, remedy: str, neutral: tuple[str, ...]
) -> str:
    """Return the options that differ from those of a file, if it is there."""
    if not path.exists():
        return ""
    with as_written(path, remedy):
        known = dict(json.loads(path.read_text("utf-8")))
    return ", ".join(changed_keys(known, options, neutral))


def changed_keys(
    known: Options, options: Options, neutral: tuple[str, ...]
) -> list[str]:
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
        rename(last, last.with_suffix(".cut-off"))
        return f"{last} was cut off, and is laid aside: the training begins anew"
    newest = max(whole, key=lambda path: path.stat().st_mtime_ns)
    copy = last.with_name(f".{last.name}.tmp")
    shutil.copyfile(newest, copy)
    rename(copy, last)
    return f"{last} was cut off, and is replaced by {newest.name}"
