"""The engine of a folder with a checkpoint: fairseq, torch and the plugin's search."""

from __future__ import annotations

from pathlib import Path

from sbnmt_plugin.tools.models.description import Description
from sbnmt_plugin.tools.models.engine import Engine


def open_engine(
    folder: Path, description: Description, device: str | None, dtype: str, nbest: int
) -> Engine:
    raise NotImplementedError
