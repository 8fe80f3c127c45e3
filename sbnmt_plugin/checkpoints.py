"""What a checkpoint may contain, with torch's ``weights_only`` safety left on.

torch refuses to unpickle any global that is not allow-listed, so that loading a
file runs no code.  Every fairseq checkpoint holds an ``argparse.Namespace``; the
state that fairseq broadcasts when several processes resume holds the rest.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch

ALLOWED: list[Any] = [argparse.Namespace]


def allow_checkpoint_contents() -> None:
    """Allow-list exactly what checkpoints written with this plugin hold."""
    torch.serialization.add_safe_globals(ALLOWED)
