"""Model folders of the tests' models, and what ``sbnmt export`` makes of them."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from unittest import mock

import torch
from commands import WORDS, captured, load

from sbnmt_plugin.tools.commands import export
from sbnmt_plugin.tools.models.bundle import bundle
from sbnmt_plugin.tools.models.description import Side

SEARCH = {"beam": 4, "lenpen": 0.6, "length_penalty": "gnmt", "rescore": 0.0}


def without_interaction(checkpoint: Path, path: Path) -> Path:
    """Write a model that is the given one at λ = 0."""
    state = load(checkpoint)
    state["cfg"]["model"].sb_lambda = 0.0
    torch.save(state, path)
    return path


def model_folder(checkpoint: Path, data: Path, output: Path, **search: object) -> Path:
    """Make a model folder for text whose tokens stand between blanks."""
    source, target = (
        Side(x, "none", False, "none", "", str(data / f"dict.{x}.txt"))
        for x in ("en", "de")
    )
    bundle(checkpoint, output, source, target, {**SEARCH, **search}, {}, {})
    return output


def run_export(folder: Path, output: Path, *words: object) -> str:
    """Run sbnmt export; return what it prints."""
    command = ["sbnmt export", folder, "--output", output, *words]
    with mock.patch.object(sys, "argv", list(map(str, command))), captured() as out:
        export.main()
    return out.text


def some_lines(count: int = 60, longest: int = 7) -> list[str]:
    """Make texts of the words that the tests' models have learned."""
    chance = random.Random(5)
    sizes = (chance.randint(1, longest) for _ in range(count))
    return [" ".join(chance.choices(WORDS, k=size)) for size in sizes]
