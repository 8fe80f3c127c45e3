"""Messages that would stand in the middle of the steps' progress bars."""

from __future__ import annotations

import logging

SILENCED = {  # logger -> how the message begins
    "fairseq.tasks.fairseq_task": "can_reuse_epoch_itr = ",  # for every text
    "fairseq.tasks.text_to_speech": "Please install tensorboardX",  # on being imported
}


def wanted(record: logging.LogRecord) -> bool:
    """Whether a message is none of :data:`SILENCED`."""
    return not record.getMessage().startswith(SILENCED[record.name])


def silence() -> None:
    """Leave out exactly these messages in this process from now on."""
    for name in SILENCED:
        logging.getLogger(name).addFilter(wanted)


def only_warnings(*names: str) -> None:
    """Leave out what packages tell of their work, once fairseq is imported.

    It sets up logging for everything, the least important included.
    """
    for name in names:
        logging.getLogger(name).setLevel(logging.WARNING)
