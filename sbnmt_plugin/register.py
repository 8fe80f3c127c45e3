"""What fairseq, torch and the search are told of the plugin."""

from __future__ import annotations

from sbnmt_plugin import checkpoints, task
from sbnmt_plugin.network import abd, enat, model, rnnsearch, two_way
from sbnmt_plugin.search import asynchronous, generator, parallel
from sbnmt_plugin.training import criterion, enat_criterion, two_way_criterion

# by importing them
REGISTERED = (
    *(task, model, abd, rnnsearch, two_way, enat),
    *(criterion, two_way_criterion, enat_criterion),
    *(generator, asynchronous, parallel),
)


def register() -> None:
    """Register task, models, criterion and searches; tell torch what checkpoints hold.

    Calling it again changes nothing.
    """
    checkpoints.allow_checkpoint_contents()
