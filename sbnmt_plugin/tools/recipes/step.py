"""A step of a recipe: one command, and the steps whose files it reads.

The steps of some rows are a graph that is built without reading a file.  Running it,
printing it, checking it and adding up what it cost are walks over that one graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.work_folder import ModelRecord

Word = str | Path  # of a command line


@dataclass(frozen=True, eq=False)
class Step:
    """One command.

    Attributes:
        name: its log is WORK/logs/NAME.log, with "-" for "/".
        purpose: its work, in a line.
        words: the command line as a user types it, files and folders as paths.
        makes: the file or folder that it writes last.
        inputs: the steps whose files it reads, in the order in which they are run.
        gpus: how many it wants, 0 for a model on the CPU.  None: it runs no model, and
            is run where the recipe is, on a cluster too.
        workers: commands that share its work side by side, each with one of the GPUs.
        done: is there when the step need not be run again, ``makes`` if it is None.
        marks: whether ``done`` is an empty file that is written after the step.
        record: the options that its files belong to.
        clears: file of an interrupted step that the command would not overwrite.
        refusal: the reason why the command cannot be run, "" if it can.
    """

    name: str
    purpose: str
    words: Sequence[Word]
    makes: Path
    inputs: tuple[Step, ...] = ()
    gpus: int | None = None
    workers: int = 1
    done: Path | None = None
    marks: bool = False
    record: ModelRecord | None = None
    clears: Path | None = None
    refusal: str = ""

    @classmethod
    def of(
        cls,
        name: str,
        purpose: str,
        words: list[Any],
        makes: Path,
        *before: Step,
        **more: Any,
    ) -> Step:
        """Return a step whose words may be other steps: the files that these make.

        Args:
            words: of the command line; values that are no paths become text.
            before: inputs beside the steps among the words, run before these.
            more: other attributes.
        """
        among = [word for word in words if isinstance(word, Step)]
        inputs = tuple(dict.fromkeys([*before, *among]))
        return cls(name, purpose, words_of(*words), makes, inputs, **more)

    @property
    def complete(self) -> Path:
        """The path that is there when the step need not be run again."""
        return self.done or self.makes

    @property
    def log(self) -> str:
        """Name of its log, without the ending."""
        return self.name.replace("/", "-")


def words_of(*values: Any) -> list[Word]:
    """Return a command line: of steps the paths, of other values the text."""
    paths = [value.makes if isinstance(value, Step) else value for value in values]
    return [path if isinstance(path, Path) else str(path) for path in paths]


def in_order(
    targets: Iterable[Step],
    is_done: Callable[[Step], bool] = lambda step: False,
    needs: Callable[[Step], Iterable[Step]] = lambda step: step.inputs,
) -> list[Step]:
    """Return the steps that some steps need, and these, as one process runs them.

    Args:
        is_done: steps that are left out, with all that only they need.
        needs: gives the steps that a step needs, by default its inputs.
    """
    found: dict[Step, None] = {}

    def visit(step: Step) -> None:
        if step in found or is_done(step):
            return
        for needed in needs(step):
            visit(needed)
        found[step] = None

    for target in targets:
        visit(target)
    return list(found)
