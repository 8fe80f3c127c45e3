"""The toy family's search, and the option that it adds to the task's."""

from dataclasses import dataclass, replace
from typing import Optional

from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.search.registry import register_search
from sbnmt_plugin.task_options import (
    DECODING,
    Scope,
    TaskOptions,
    option,
    register_options,
)


@register_options
@dataclass
class ToyOptions(TaskOptions):
    """Options of the toy family."""

    toy_limit: Optional[int] = option(
        None,
        "most words of an answer",
        Scope(DECODING, model="short_answers", described="a toy"),
    )


@register_search("toy")
class ToySearch(Generator):
    """The synchronous beam, with answers of ``--toy-limit`` words at most."""

    described = "a toy"

    def prepare(self, task):
        """Read the option."""
        if task.cfg.toy_limit is not None:
            changed = {"max_len_a": 0, "max_len_b": task.cfg.toy_limit}
            self.options = replace(self.options, **changed)
