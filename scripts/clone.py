"""Runs a step of this clone's `sbnmt`, whatever copy of the package is installed."""

import os
import sys
from pathlib import Path


def run(script: str) -> None:
    """Become ``python -m sbnmt_plugin SCRIPT …`` with the same arguments.

    Args:
        script: the path of a file of this folder; its name is that of a step.
    """
    clone = str(Path(__file__).resolve().parents[1])
    path = [clone, os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    os.environ["PYTHONSAFEPATH"] = "1"
    name = Path(script).name
    words = [sys.executable, "-m", "sbnmt_plugin", name, *sys.argv[1:]]
    os.execv(sys.executable, words)
