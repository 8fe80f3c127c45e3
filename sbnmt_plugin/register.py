"""Registration of the plugin with fairseq, torch and the search."""

from __future__ import annotations

import logging

from fairseq.tasks import (
    TASK_CLASS_NAMES,
    TASK_DATACLASS_REGISTRY,
    TASK_REGISTRY,
    register_task,
)

from sbnmt_plugin import checkpoints
from sbnmt_plugin.config import task_config
from sbnmt_plugin.families import abd, ba, enat, sb, two_way
from sbnmt_plugin.search import generator
from sbnmt_plugin.task import SBTranslationTask
from sbnmt_plugin.training import criterion
from sbnmt_plugin.training.start_checks import refuse_asynchronous

TASK = "sb_translation"
# by importing them: each family registers its models, criterion, search and options
REGISTERED = sb, abd, ba, two_way, enat, generator, criterion


def register() -> None:
    """Register the task, tell torch what checkpoints hold, and watch a message.

    Calling it again changes nothing, unless a family has been registered since: then
    the task is registered anew, with the options of that family too.
    """
    checkpoints.allow_checkpoint_contents()
    logging.getLogger().addFilter(refuse_asynchronous)
    config = task_config()
    if TASK_DATACLASS_REGISTRY.get(TASK) is not config:
        TASK_REGISTRY.pop(TASK, None)
        TASK_CLASS_NAMES.discard(SBTranslationTask.__name__)
        register_task(TASK, dataclass=config)(SBTranslationTask)
