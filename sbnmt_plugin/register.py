"""What fairseq, torch and the search are told of the plugin."""

from __future__ import annotations

from sbnmt_plugin import checkpoints, task
from sbnmt_plugin.network import abd, model, rnnsearch, two_way
from sbnmt_plugin.search import asynchronous, generator
from sbnmt_plugin.training import criterion, two_way_criterion

# by importing them
REGISTERED = (
    *(task, model, abd, rnnsearch, two_way),
    *(criterion, two_way_criterion, generator, asynchronous),
)


def register() -> None:
    """Register task, models, criterion and searches; tell torch what checkpoints hold.

    Calling it again changes nothing.
    """
    checkpoints.allow_checkpoint_contents()
