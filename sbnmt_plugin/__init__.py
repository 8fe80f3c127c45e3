"""fairseq plugin for Synchronous Bidirectional Neural Machine Translation.

Zhou, Zhang, Zong: Synchronous Bidirectional Neural Machine Translation, TACL 7 (2019),
91-105, https://doi.org/10.1162/tacl_a_00256.

Importing it, which is what ``--user-dir`` does, registers task, model and criterion
with fairseq, tells torch what a checkpoint may contain and makes an error of a message
of fairseq's; nothing else happens.  Where fairseq is not installed, nothing happens at
all.  A step of the command ``sbnmt`` imports by itself what it needs: many need no
torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import Any

__version__ = "0.3.0.dev0"


def _is_command() -> bool:
    """Return whether this process is ``sbnmt``, or ``python -m sbnmt_plugin``.

    So is a job on a cluster that only starts a command: :mod:`tools.recipes.slurm`.
    """
    if "SBNMT_JOB" in os.environ and "submitit.core._submit" in sys.orig_argv:
        return True
    called = sys.argv[0] if sys.argv else ""
    if called == "-m":  # what it is while Python looks for the module
        words = sys.orig_argv
        return "-m" in words and __name__ in words[words.index("-m") + 1 :][:1]
    return os.path.basename(called) == "sbnmt"


def load(path: str | os.PathLike[str], **options: Any) -> Any:
    """Load a model folder: ``load("W/model").translate(["Raw text."])``.

    Args:
        path: folder that ``sbnmt bundle``, ``sbnmt export`` or a recipe has made.
        options: device, dtype, beam, lenpen, rescore and nbest, as
            :func:`tools.models.folder.load` explains them.

    Returns:
        A :class:`tools.models.folder.Model`.  Its ``translate(lines)``
        returns a text for each line, ``hypotheses(lines)`` the ``nbest`` best texts of
        each line with their scores.
    """
    folder = importlib.import_module("sbnmt_plugin.tools.models.folder")
    return folder.load(path, **options)


if not _is_command() and importlib.util.find_spec("fairseq"):
    from sbnmt_plugin import quiet

    with quiet.while_importing():
        from sbnmt_plugin.register import register

    register()
