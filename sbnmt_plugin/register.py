"""Registration of the plugin with fairseq, torch and the search."""

from __future__ import annotations

from sbnmt_plugin import checkpoints, task
from sbnmt_plugin.families.abd import model as abd
from sbnmt_plugin.families.abd import search as asynchronous
from sbnmt_plugin.families.ba import model as rnnsearch
from sbnmt_plugin.families.enat import criterion as enat_criterion
from sbnmt_plugin.families.enat import model as enat
from sbnmt_plugin.families.enat import search as parallel
from sbnmt_plugin.families.sb import model
from sbnmt_plugin.families.two_way import criterion as two_way_criterion
from sbnmt_plugin.families.two_way import model as two_way
from sbnmt_plugin.search import generator
from sbnmt_plugin.training import criterion

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
