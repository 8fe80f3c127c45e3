"""What fairseq and torch are told of the plugin."""

from __future__ import annotations

from sbnmt_plugin import checkpoints, task
from sbnmt_plugin.network import model
from sbnmt_plugin.training import criterion

REGISTERED = (task, model, criterion)  # by importing them


def register() -> None:
    """Register task, model and criterion; tell torch what checkpoints may hold.

    Calling it again changes nothing.
    """
    checkpoints.allow_checkpoint_contents()
