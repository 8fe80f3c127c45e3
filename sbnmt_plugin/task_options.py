"""Options that families add to the task, and the scope of an option.

The scope says in which commands and for which models an option counts.  It stands in
the metadata of the option's field, under :data:`KEY`, and one loop refuses what is
given out of scope: :func:`option_checks.refuse_out_of_scope`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

KEY = "scope"
TRAINING, DECODING = "training", "decoding"


def flag_of(name: str) -> str:
    """Return the flag of an option on the command line."""
    return "--" + name.replace("_", "-")


@dataclass(frozen=True)
class Scope:
    """Commands and models for which an option counts; by default all.

    Attributes:
        phase: :data:`TRAINING` or :data:`DECODING` alone; "": both.
        instead: other options for the other phase, for the message.
        both_directions: why it needs ``--sb-direction both``; "": it does not.
        model: attribute of the models for which it counts, see
            :class:`protocol.Model`; "": all.
        described: those models, for the message.
        names_file: whether its value is a file that only the caller may choose: a
            checkpoint that is loaded in Python says nothing of it.
        start_of: option of the same model with which weights, learned in its place,
            only start from it; "": none.
    """

    phase: str = ""
    instead: str = ""
    both_directions: str = ""
    model: str = ""
    described: str = ""
    names_file: bool = False
    start_of: str = ""


def option(default: Any, text: str, scope: Scope | None = None) -> Any:
    """Declare an option as the field of a dataclass, as fairseq reads them.

    Args:
        text: what ``--help`` says.
        scope: where it counts; None: everywhere.
    """
    return field(default=default, metadata={"help": text, KEY: scope or Scope()})


class TaskOptions:
    """Options that a family adds to those of the task; it extends this by a dataclass.

    The dataclass is registered by :func:`register_options`, and its module does without
    ``from __future__ import annotations``: fairseq reads the types of its fields.  Each
    field is an :func:`option`.
    """

    @classmethod
    def completion(
        cls, cfg: Any, source: Any, target: Any
    ) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
        """Return what adds the family's own tensors to a batch's ``net_input``.

        It is called for each batch, perhaps twice, in the processes that load data.

        Args:
            cfg: the task's options.
            source, target: dictionaries.
        """
        return None


TASK_OPTIONS: dict[str, type[TaskOptions]] = {}
Options = TypeVar("Options", bound=type[TaskOptions])


def register_options(options: Options) -> Options:
    """Add a family's dataclass to the options of the task: see :mod:`register`."""
    TASK_OPTIONS[options.__name__] = options
    return options


def caller_files() -> list[str]:
    """Return the options of families that name files, which only a caller may choose.

    A checkpoint that is loaded in Python has those of its training.
    """
    return [
        found.name
        for options in TASK_OPTIONS.values()
        for found in fields(options)  # type: ignore[arg-type]
        if found.metadata.get(KEY, Scope()).names_file
    ]
