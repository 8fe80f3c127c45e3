"""fairseq plugin for Synchronous Bidirectional Neural Machine Translation.

Importing it registers task, model and criterion, and tells torch what a checkpoint
may contain; nothing else happens.
"""

from sbnmt_plugin import checkpoints, criterion, model, task  # noqa: F401

__version__ = "0.1.0"

checkpoints.allow_checkpoint_contents()
