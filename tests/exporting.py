"""Model folders of the tests' models, and what ``sbnmt export`` makes of them."""

from __future__ import annotations

import random
from pathlib import Path

import torch
from commands import WORDS, captured, load
from steps import call

from sbnmt_plugin.tools.commands import bundle, export


def without_interaction(checkpoint: Path, path: Path) -> Path:
    """Write a model that is the given one at λ = 0."""
    state = load(checkpoint)
    state["cfg"]["model"].sb_lambda = 0.0
    torch.save(state, path)
    return path


def model_folder(checkpoint: Path, data: Path, output: Path, *words: object) -> Path:
    """Make a model folder for text whose tokens stand between blanks."""
    own = ["--path", checkpoint, "--output", output, "--tokeniser", "none"]
    call(bundle, data, *own, *words)
    return output


def run_export(folder: Path, output: Path, *words: object) -> str:
    """Run sbnmt export; return what it prints."""
    with captured() as out:
        call(export, folder, "--output", output, *words)
    return out.text


def some_lines(count: int = 60, longest: int = 7) -> list[str]:
    """Make texts of the words that the tests' models have learned."""
    chance = random.Random(5)
    sizes = (chance.randint(1, longest) for _ in range(count))
    return [" ".join(chance.choices(WORDS, k=size)) for size in sizes]
