"""The model folder of a run: its row is chosen, tested, and kept with its scores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.bitext import MODEL, can_be_model
from sbnmt_plugin.tools.recipes.model_steps import ModelSteps
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.runner import Runner, typed
from sbnmt_plugin.tools.recipes.settings import references
from sbnmt_plugin.tools.recipes.stages import training_options
from sbnmt_plugin.tools.results.choice import Decoded, choose, metric
from sbnmt_plugin.tools.scoring import score
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import write_json


def made_model(
    steps: ModelSteps, runner: Runner, rows: list[Row], asked: str | None
) -> str:
    """Make the model folder of a run.

    Args:
        rows: whose translations of the validation set are there.
        asked: name of the row that the user wants.

    Returns:
        Which row it is, why, and how it is used, in words.
    """
    work, settings = steps.work, steps.settings
    rows = [row for row in rows if can_be_model(row)]
    if not rows:
        return "\nNo row has a model of its own, so there is no model folder.\n"
    choice = choose(work, settings, rows, MODEL, asked)
    row = Row.parse(choice.row)
    runner.make(steps.tested(row))
    scores = scores_of(work, settings, choice.row)
    keep(steps, {"row": choice.row, "lenpen": choice.lenpen}, scores)
    bundled = steps.bundled(row, choice.lenpen, scores_file(work))
    runner.make(bundled)
    title, folder = row.title(training_options(settings, row.plain)), bundled.makes
    return (
        f"\nThe model in {typed(folder)} is the row {choice.row}: {title}.\n"
        f"{choice.reason} On the test set it scores {scores['test']['bleu']:.1f}.\n"
        f"Its length penalty is {choice.lenpen:g}, the best on the validation set.\n"
        "It translates raw text, a line a line:\n\n"
        f"    sbnmt translate {typed(folder)} < in.{settings['source']} > "
        f"out.{settings['target']}\n"
    )


def scores_file(work: Path) -> Path:
    """Return the file of the scores that the model folder keeps."""
    return work / "model-scores.json"


def scores_of(work: Path, settings: dict[str, Any], row: str) -> dict[str, Any]:
    """Return BLEU of a row on both sets, by its best length penalty, with signature."""
    found = {}
    for split in ("valid", "test"):
        given = references(work / "text", settings).read(f"{split}.ref")
        texts = Decoded(work, settings, split, row).texts
        known = score(metric(settings), texts, given)
        found[split] = {"bleu": known["score"], "signature": known["signature"]}
    return found


def keep(steps: ModelSteps, choice: dict[str, Any], scores: dict[str, Any]) -> None:
    """Keep a choice and its scores; the model folder of another choice is removed."""
    path, work = steps.work / "model.json", steps.work
    if path.exists():
        with as_written(path, "remove it to make the model folder anew"):
            if dict(json.loads(path.read_text(encoding="utf-8"))) == choice:
                return
    shutil.rmtree(work / "model", ignore_errors=True)
    write_json(scores_file(work), scores)
    write_json(path, choice)
