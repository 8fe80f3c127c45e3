"""ENAT's options of the task: its phrase table, and the teacher of its search."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

from sbnmt_plugin.families.enat.lookup import Lookup
from sbnmt_plugin.task_options import KEY, Scope, TaskOptions, register_options


@register_options
@dataclass
class ENATTaskOptions(TaskOptions):
    """Files that training and search of an ``enat_transformer`` read."""

    enat_table: Optional[str] = field(
        default=None,
        metadata={
            "help": "phrase table of sbnmt phrase-table, by which the "
            "sources are looked up for an enat_transformer of --enat-input phrase",
            KEY: Scope(
                model="reads_lookup",
                described="an enat_transformer of --enat-input phrase, and nothing "
                "here reads it",
                names_file=True,
            ),
        },
    )
    nat_teacher: Optional[str] = field(
        default=None,
        metadata={
            "help": "checkpoint of a Transformer of --sb-direction l2r that chooses "
            "among the lengths which an enat_transformer has written",
            KEY: Scope(
                model="writes_at_once",
                described="an enat_transformer, whose words are written at once",
                names_file=True,
            ),
        },
    )

    @classmethod
    def completion(
        cls, cfg: Any, source: Any, target: Any
    ) -> Callable[[dict[str, Any]], dict[str, Any]] | None:
        """See :meth:`task_options.TaskOptions.completion`: look the sources up."""
        path = cfg.enat_table
        return None if path is None else Lookup(path, source, target)
