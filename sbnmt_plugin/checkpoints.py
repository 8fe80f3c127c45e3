"""What a checkpoint may contain, with torch's ``weights_only`` safety left on.

torch refuses to unpickle any global that is not allow-listed, so that loading a
file runs no code.  Allow-listed here is what checkpoints of this plugin hold, and
nothing else; none of it does more than keep values.
"""

from __future__ import annotations

import argparse
import collections
import os
import typing
import zipfile
from typing import Any

import torch
from fairseq.distributed.utils import _TensorPlaceholder
from omegaconf import DictConfig, ListConfig
from omegaconf.base import ContainerMetadata, Metadata
from omegaconf.nodes import AnyNode

ALLOWED: list[Any] = [
    argparse.Namespace,
    # when several processes resume, one reads the file and broadcasts it with its
    # configuration as an omegaconf object and with stand-ins for its tensors
    _TensorPlaceholder,
    DictConfig,
    ListConfig,
    ContainerMetadata,
    Metadata,
    AnyNode,
    collections.defaultdict,
    dict,
    list,
    int,
    typing.Any,
]


def allow_checkpoint_contents() -> None:
    """Allow-list exactly what checkpoints written with this plugin hold."""
    torch.serialization.add_safe_globals(ALLOWED)


def refuse_damaged(path: str) -> None:
    """Refuse a file that is there but is no whole checkpoint, before torch meets it.

    Raises:
        ValueError: it is cut off, or something else altogether.
    """
    if os.path.isfile(path) and not zipfile.is_zipfile(path):
        raise ValueError(
            f"{path} (--path, --restore-file or --save-dir) is not a whole checkpoint: "
            "it was cut off while it was written or copied, or is another kind of "
            "file; use another one"
        )
