"""Messages of fairseq and torch that call for nothing, left out by our commands."""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Iterator

SILENCED = {  # logger -> how the message begins
    "fairseq.tasks.fairseq_task": "can_reuse_epoch_itr = ",  # for every text
    "fairseq.tasks.text_to_speech": "Please install tensorboardX",  # on being imported
    "hydra.core.utils": "Setting JobRuntime",  # for every command line that is read
}
WARNINGS = (  # beginnings of torch's and Hydra's, about calls by fairseq alone
    "'pin_memory' argument is set as true but no accelerator is found",
    "`torch.cuda.amp.autocast(args...)` is deprecated",
    "torch.quantize_per_tensor",
    "Support for mismatched key_padding_mask and attn_mask is deprecated",
    "hydra.experimental.",
    "The version_base parameter is not specified",
    "The strict flag in the compose API is deprecated",
    "In 'config': Usage of deprecated keyword in package header",
    "'config' is validated against ConfigStore schema with the same name",
)


def wanted(record: logging.LogRecord) -> bool:
    """Return whether a message is none of :data:`SILENCED`."""
    return not record.getMessage().startswith(SILENCED[record.name])


def silence() -> None:
    """Leave out exactly these messages in this process from now on."""
    for name in SILENCED:
        logging.getLogger(name).addFilter(wanted)
    for message in WARNINGS:
        warnings.filterwarnings("ignore", rf"\s*{re.escape(message)}")


@contextlib.contextmanager
def while_importing() -> Iterator[None]:
    """Leave out the messages of imports.  The process then logs as it did before.

    Two of fairseq's tasks let the root logger print whatever any package tells.
    """
    root = logging.getLogger()
    level, handlers = root.level, [*root.handlers]
    loggers = [logging.getLogger(name) for name in SILENCED]
    added = [logger for logger in loggers if wanted not in logger.filters]
    for logger in added:
        logger.addFilter(wanted)
    try:
        yield
    finally:
        for logger in added:
            logger.removeFilter(wanted)
        root.setLevel(level)
        for handler in {*root.handlers} - {*handlers}:
            root.removeHandler(handler)


def only_warnings(*names: str) -> None:
    """Leave out what packages log of their work, once fairseq is imported.

    fairseq sets up logging for all packages, the least important messages included.
    """
    for name in names:
        logging.getLogger(name).setLevel(logging.WARNING)
