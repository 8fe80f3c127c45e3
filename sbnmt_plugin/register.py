"""What fairseq, torch and the search are told of the plugin."""

from __future__ import annotations

from sbnmt_plugin import checkpoints, task
from sbnmt_plugin.network import model
from sbnmt_plugin.search import generator
from sbnmt_plugin.training import criterion

REGISTERED = (task, model, criterion, generator)  # by importing them


def register() -> None:
    """Register task, models, criterion and searches; tell torch what checkpoints hold.

    Calling it again changes nothing.
    """
    checkpoints.allow_checkpoint_contents()
