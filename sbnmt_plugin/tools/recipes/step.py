"""A command of a recipe, and what may be done with it: run, or written down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sbnmt_plugin.tools.recipes.systems.system import Options

Word = str | Path  # of a command line


@dataclass(frozen=True)
class Step:
    """One command.

    Attributes:
        name: its log is WORK/logs/NAME.log, with "-" for "/".
        purpose: what it does, in a line.
        words: the command line as a user types it, files and folders as paths.
        makes: is there when the step, and those that share its work, are done.
        gpus: how many it wants, 0 for a model on the CPU; None: it runs no model, and
            is done where the recipe is, on a cluster too.
        place: among those who work side by side, each with a GPU of its own.
    """

    name: str
    purpose: str
    words: Sequence[Word]
    makes: Path
    gpus: int | None = None
    place: int | None = None


def words_of(*values: Any) -> list[Word]:
    """A command line; what is no path becomes text."""
    return [value if isinstance(value, Path) else str(value) for value in values]


class Bench(Protocol):
    """Where a recipe's steps go.

    :class:`~sbnmt_plugin.tools.recipes.runner.Runner` runs them and keeps the work
    folder's books; :class:`~sbnmt_plugin.tools.recipes.recorder.Recorder` notes them.

    Attributes:
        work: the folder in which all is made.
    """

    work: Path

    def has(self, path: Path) -> bool:
        """Whether a step has made it already."""

    def run(self, step: Step) -> None:
        """Do a step."""

    def run_all(self, steps: Sequence[Step]) -> None:
        """Do steps that need nothing of each other."""

    def begin(self, folder: Path, options: Options) -> bool:
        """Open a model's folder, which belongs to its options for good.

        Returns:
            Whether anything is left to be done there.
        """

    def finish(self, folder: Path) -> None:
        """Note that a model's folder is complete."""

    def note_teacher(self, texts: Path, options: Options) -> None:
        """Note by what teacher pseudo targets are being written."""

    def keep(self, source: Path, copy: Path) -> None:
        """Keep a copy of a text, by which a later run knows what was translated."""

    def clear(self, path: Path) -> None:
        """Remove what an interrupted step has left and would refuse to overwrite."""

    def tell(self, failure: str) -> None:
        """Say at once that a row has failed."""

    def stop(self) -> None:
        """End all steps that are under way."""
