"""The steps of a recipe in an empty folder, noted in order and not run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sbnmt_plugin.tools.recipes.step import Step
from sbnmt_plugin.tools.recipes.systems.system import Options

# stand for what the user of a script gives it
WORK, DATA = Path("$work"), Path("$data")


class Recorder:
    """A :class:`~sbnmt_plugin.tools.recipes.step.Bench` that reads and writes no file.

    What a noted step makes is there for the steps after it.

    Attributes:
        steps: in the order in which one process runs them.
    """

    work = WORK

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.made: set[Path] = set()

    def has(self, path: Path) -> bool:
        return path in self.made

    def run(self, step: Step) -> None:
        self.steps.append(step)
        self.made.add(step.makes)

    def run_all(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.run(step)

    def begin(self, folder: Path, options: Options) -> bool:
        return folder not in self.made

    def finish(self, folder: Path) -> None:
        self.made.add(folder)

    def note_teacher(self, texts: Path, options: Options) -> None:
        """Nothing: a script is written anew."""

    def keep(self, source: Path, copy: Path) -> None:
        """Nothing: for later runs of the driver alone."""

    def clear(self, path: Path) -> None:
        """Nothing: the folder is empty."""

    def tell(self, failure: str) -> None:
        """Nothing: no step is run."""

    def stop(self) -> None:
        """Nothing: no step is under way."""
