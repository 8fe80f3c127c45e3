"""What fairseq, torch and the search are told of the plugin."""

from __future__ import annotations

from sbnmt_plugin import checkpoints, task
from sbnmt_plugin.network import abd, model, rnnsearch
from sbnmt_plugin.search import asynchronous, generator
from sbnmt_plugin.training import criterion

# by importing them
REGISTERED = (task, model, abd, rnnsearch, criterion, generator, asynchronous)


def register() -> None:
    """Register task, models, criterion and searches; tell torch what checkpoints hold.

    Calling it again changes nothing.
    """
    checkpoints.allow_checkpoint_contents()
