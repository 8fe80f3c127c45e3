"""The model folder of a run: its row is chosen, tested, and kept with its scores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.evaluation import read_hypotheses
from sbnmt_plugin.tools.origin import MODELS
from sbnmt_plugin.tools.recipes.bitext import MODEL
from sbnmt_plugin.tools.recipes.model_steps import ModelSteps
from sbnmt_plugin.tools.recipes.rows import Row, can_be_model
from sbnmt_plugin.tools.recipes.runner import Runner, typed
from sbnmt_plugin.tools.recipes.settings import references
from sbnmt_plugin.tools.recipes.stages import training_options
from sbnmt_plugin.tools.results.bootstrap import Outcome, bootstrap
from sbnmt_plugin.tools.results.sweep import Setting, Sweep, system_and_seed
from sbnmt_plugin.tools.scoring import bleu, score, tokeniser_of
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.tokens import detokenise
from sbnmt_plugin.tools.unfinished import write_json

SIGNIFICANT = 0.05  # p below it, shared out among the rows that are compared
LEAST = 0.1  # BLEU; models that write one text for everything differ by less, surely


class Decoded:
    """A set of a run, and its translations by rows, as sweep-beam has left them.

    Args:
        steps: of the run.
        split: ``valid`` or ``test``.

    Attributes:
        given: its references, raw or detokenised, each a line a sentence.
        metric: sacreBLEU's BLEU for raw text of the target.
    """

    def __init__(self, steps: ModelSteps, split: str) -> None:
        self.steps, self.split = steps, split
        settings = steps.settings
        self.references = references(steps.work / "text", settings)
        self.rules = settings["detokenise"]
        self.given = self.references.read(f"{split}.ref" if self.rules else split)
        lowercase = settings["score"]["lowercase"]
        self.metric = bleu(tokeniser_of(settings["target"]), lowercase=lowercase)

    def sweep(self, row: Row) -> Path:
        """Return the file of a row's sweep."""
        return self.steps.sweep_of(self.split, row) / "sweep.json"

    def best(self, row: Row) -> Setting:
        """Return the setting with which a row scores best, of those that were tried."""
        return Sweep.of_file(self.sweep(row)).best(system_and_seed(row.name)[0])

    def run(self, row: Row) -> Path:
        """Return the folder of what a row writes with its best setting."""
        folder = self.best(row).folder(row.name)
        return Path(f"{self.sweep(row)}.runs") / self.split / folder

    def texts(self, row: Row) -> list[str]:
        """Return what a row writes with its best setting, detokenised, line by line."""
        runs = self.run(row)
        with as_written(runs, f"remove {self.sweep(row).parent} to decode anew"):
            texts = read_hypotheses(runs, self.references, self.split)
        return detokenise(texts, self.rules) if self.rules else texts

    def models(self, row: Row) -> Any:
        """Return by which models a row was decoded: see :func:`origin.stamps_of`."""
        path = self.run(row) / "result.json"
        with as_written(path, f"remove {self.sweep(row).parent} to decode anew"):
            return json.loads(path.read_text(encoding="utf-8"))["job"][MODELS]

    def scores(self, row: Row) -> dict[str, Any]:
        """Return BLEU of a row, with its signature."""
        known = score(self.metric, self.texts(row), self.given)
        return {"bleu": known["score"], "signature": known["signature"]}


def compared(decoded: Decoded, rows: list[Row], baseline: str) -> dict[str, Outcome]:
    """Return the outcome of each row by its name, against one of them."""
    texts = {row.name: [decoded.texts(row)] for row in rows}
    return {
        name: bootstrap(own, texts[baseline], decoded.given, decoded.metric)
        for name, own in texts.items()
    }


def level(outcomes: dict[str, Outcome]) -> float:
    """Return the p below which one of these rows is significantly better."""
    return SIGNIFICANT / max(1, len(outcomes) - 1)


def better_row(outcomes: dict[str, Outcome], default: str) -> str:
    """Return the row that is taken: the default, or the best of those that beat it.

    A row beats it whose score is significantly higher, by :data:`LEAST` or more.  The
    more rows there are, the smaller p must be (Bonferroni): the best of many is better
    by chance.

    Args:
        outcomes: of each row, compared with the default.
    """
    least = outcomes[default].score + LEAST
    better = [
        name
        for name, found in outcomes.items()
        if found.p < level(outcomes) and found.score >= least
    ]
    return max(better or [default], key=lambda name: outcomes[name].score)


def reason(row: str, default: str, outcomes: dict[str, Outcome], asked: bool) -> str:
    """Say in plain words why a row was taken."""
    own = outcomes[row]
    scores = f"It scores {own.score:.1f} BLEU on the validation set"
    test = "paired bootstrap, p"
    if asked:
        return f"--model asks for it. {scores}."
    if row != default:
        return (
            f"{scores}, significantly more than {default} with "
            f"{outcomes[default].score:.1f} ({test} = {own.p:.3f})."
        )
    return (
        f"{scores}. No other row is significantly better there, by {LEAST:g} or more "
        f"({test} < {level(outcomes):.2g})."
    )


def keep(work: Path, choice: dict[str, Any]) -> None:
    """Keep a choice; where it was another, the model folder is removed."""
    path = work / "model.json"
    if path.exists():
        with as_written(path, "remove it to make the model folder anew"):
            if json.loads(path.read_text(encoding="utf-8")) == choice:
                return
    shutil.rmtree(work / "model", ignore_errors=True)
    write_json(path, choice)


def made_model(
    steps: ModelSteps, runner: Runner, rows: list[Row], asked: str | None
) -> str:
    """Make the model folder of a run.

    Args:
        rows: that are trained, and swept if they can be a model.
        asked: name of the row that the user wants.

    Returns:
        Which row it is, why, and how it is used, in words.
    """
    settings = steps.settings
    own = {row.name: row for row in rows if can_be_model(row)}
    if not own:
        return "\nNo row's model is one for a folder, so there is no model folder.\n"
    default = MODEL if MODEL in own else next(iter(own))
    valid, test = Decoded(steps, "valid"), Decoded(steps, "test")
    outcomes = compared(valid, list(own.values()), default)
    name = asked or better_row(outcomes, default)
    row = own[name]
    lenpen = valid.best(row).lenpen or 0.0
    runner.make(steps.tested(row))
    scores = {x.split: x.scores(row) for x in (valid, test)}
    noted = steps.work / "model-scores.json"
    write_json(noted, scores)
    choice = {"row": name, "lenpen": lenpen, "scores": scores}
    keep(steps.work, {**choice, MODELS: test.models(row)})
    bundled = steps.bundled(row, "--lenpen", lenpen, "--scores", noted)
    runner.make(bundled)
    title, folder = row.title(training_options(settings, row.plain)), bundled.makes
    return (
        f"\nThe model in {typed(folder)} is the row {name}: {title}.\n"
        f"{reason(name, default, outcomes, bool(asked))} On the test set it scores "
        f"{scores['test']['bleu']:.1f}.\n"
        f"Its length penalty is {lenpen:g}, the best of {steps.lenpens} on the "
        "validation set.\nIt translates raw text, a line for each line:\n\n"
        f"    sbnmt translate {typed(folder)} < in.{settings['source']} > "
        f"out.{settings['target']}\n"
    )
