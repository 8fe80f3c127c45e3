"""The engine of a folder with a checkpoint: fairseq, torch and the plugin's search."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from sbnmt_plugin import quiet
from sbnmt_plugin.layout import DEFAULT_BEAM
from sbnmt_plugin.task_options import caller_files, flag_of
from sbnmt_plugin.tools.models.description import MODEL, Description
from sbnmt_plugin.tools.models.engine import Hypothesis
from sbnmt_plugin.tools.translator import Translator

FLAGS = {  # keys of a description's search -> flags, and what they are by default
    "beam": ("--beam", DEFAULT_BEAM),
    "lenpen": ("--lenpen", 0.6),
    "length_penalty": ("--sb-length-penalty", "gnmt"),
    "rescore": ("--sb-rescore", 0.0),
    "max_len_a": ("--max-len-a", 1.2),
    "max_len_b": ("--max-len-b", 10),
}
NUMBERS = {
    "float32": [],
    "bf16": ["--sb-bf16"],
    "fp16": ["--fp16"],
    "int8": ["--sb-int8"],
}


class FairseqEngine(Translator):
    """A checkpoint's model and its search: see :class:`engine.Engine`.

    Args:
        arguments: fairseq-generate's command line.
        nbest: how many hypotheses of a sentence are asked for; None: all.
    """

    @property
    def most(self) -> int:
        """See :class:`engine.Engine`."""
        return int(self.generator.options.beam)

    def best(self, batch: dict[str, Any]) -> list[Any]:
        """Return every sentence's hypotheses, as many as are asked for."""
        return [found[: self.nbest] for found in self.search(batch)]

    def hypotheses(self, sentences: list[str]) -> list[list[Hypothesis] | str]:
        """Translate sentences: see :meth:`engine.Engine.hypotheses`."""
        found, skipped = self.translate(sentences)
        return [
            [self.made(h) for h in found[i]]
            if i in found
            else skipped.get(i, "fairseq left it out")
            for i in range(len(sentences))
        ]

    def made(self, hypothesis: dict[str, Any]) -> Hypothesis:
        """Return a hypothesis of the search as text."""
        score, direction = float(hypothesis["score"]), hypothesis["direction"]
        return Hypothesis(self.text(hypothesis), score, direction)


def open_engine(
    folder: Path,
    description: Description,
    device: str | None,
    dtype: str,
    nbest: int | None,
) -> FairseqEngine:
    """Load the checkpoint of a model folder: see :func:`folder.load`.

    A file that has the name of a family's option, such as ``enat_table``, is its value.

    Raises:
        ValueError: an option that the model or the device cannot honour; a damaged
            checkpoint.
    """
    quiet.silence()
    quiet.only_warnings("fairseq", "hydra")  # they tell of every batch
    folder = folder.absolute()
    if os.pathsep in str(folder):
        raise ValueError(
            f"{folder} must have no {os.pathsep} in its path, where fairseq would "
            "split it: move it"
        )
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device cuda must be there, but torch finds no GPU: use cpu")
    direction, *more = description.directions
    words = [str(folder), f"--path={folder / MODEL}"]
    words += [f"--sb-direction={'both' if more else direction}"]
    # of one word each: no language or negative number is taken for a flag
    words += [f"--source-lang={description.source.language}"]
    words += [f"--target-lang={description.target.language}"]
    words += [f"{flag}={description.search[x]}" for x, (flag, _) in FLAGS.items()]
    words += NUMBERS[dtype]
    words += ["--cpu"] if device == "cpu" else []
    for name in caller_files():
        if name in description.files:
            words += [f"{flag_of(name)}={folder / name}"]
    return FairseqEngine(words, nbest)
