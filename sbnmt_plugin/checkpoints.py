"""What a checkpoint may contain, with torch's ``weights_only`` safety left on.

torch refuses to unpickle any global that is not allow-listed, so that loading a
file runs no code.  Every fairseq checkpoint holds an ``argparse.Namespace``; the
state that fairseq broadcasts when several processes resume holds the rest.
"""

from __future__ import annotations

import argparse
import os
import zipfile
from typing import Any

import torch

ALLOWED: list[Any] = [argparse.Namespace]


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
