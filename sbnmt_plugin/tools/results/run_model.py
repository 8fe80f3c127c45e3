"""The model folder of a run: its row is chosen, tested, and kept with its scores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from sbnmt_plugin.tools.recipes.bitext import MODEL, can_be_model
from sbnmt_plugin.tools.recipes.model_steps import ModelSteps
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.runner import Runner, typed
from sbnmt_plugin.tools.recipes.settings import references
from sbnmt_plugin.tools.recipes.stages import training_options
from sbnmt_plugin.tools.results.bootstrap import Outcome, bootstrap
from sbnmt_plugin.tools.results.sweep import Sweep
from sbnmt_plugin.tools.scoring import bleu, score, tokeniser_of
from sbnmt_plugin.tools.subwords import undoing
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.tokens import detokenise
from sbnmt_plugin.tools.translations import read_generated
from sbnmt_plugin.tools.unfinished import write_json

SIGNIFICANT = 0.05  # p below it
LEAST = 0.1  # BLEU; models that write one text for everything differ by less, surely
SCORE = "BLEU"


class Given(NamedTuple):
    """Reference texts of a set, their metric, and whether tokens are raw text."""

    lines: list[list[str]]
    metric: Any
    raw: str


class Decoded:
    """Translations of a set by a row, as sweep-beam has left them.

    Args:
        steps: of the run.
        split: ``valid`` or ``test``.
        name: of the row.

    Attributes:
        lenpen: the best one of those that were tried.
        texts: detokenised, a line a sentence.
    """

    def __init__(self, steps: ModelSteps, split: str, name: str) -> None:
        path = steps.work / split / f"{name}.json"
        best = Sweep.of_file(path).best(name)
        self.lenpen = best.lenpen or 0.0
        output = Path(f"{path}.runs") / best.folder(0) / f"generate-{split}.txt"
        with as_written(output, f"remove {path}* to decode anew"):
            found = read_generated(output)
            undo = undoing(given_of(steps, split).raw)
            texts = [undo(text) for _, text in sorted(found.items())]
        rules = steps.settings["detokenise"]
        self.texts = detokenise(texts, rules) if rules else texts


def given_of(steps: ModelSteps, split: str) -> Given:
    """Return the references of a set as text, and the metric for them."""
    settings = steps.settings
    found = references(steps.work / "text", settings)
    lowercase, rules = settings["score"]["lowercase"], tokeniser_of(settings["target"])
    lines = found.read(f"{split}.ref" if settings["detokenise"] else split)
    return Given(lines, bleu(rules, lowercase=lowercase), found.raw)


def compared(
    steps: ModelSteps, decoded: dict[str, Decoded], baseline: str
) -> dict[str, Outcome]:
    """Return the outcome of each row on the validation set, against one of them."""
    given, metric, _ = given_of(steps, "valid")
    texts = {name: each.texts for name, each in decoded.items()}
    if len(texts) == 1:  # which the bootstrap does not take
        value = score(metric, texts[baseline], given)["score"]
        return {baseline: Outcome(value, value, 0.0, None)}
    outcomes, _ = bootstrap(texts, given, baseline, {SCORE: metric})
    return {name: found[SCORE] for name, found in outcomes.items()}


def better_row(outcomes: dict[str, Outcome], default: str) -> str:
    """Return the row that is taken: the default, or the best of those that beat it.

    A row beats it whose score is significantly higher, by :data:`LEAST` or more.

    Args:
        outcomes: of each row, compared with the default.
    """
    least = outcomes[default].score + LEAST
    better = [
        name
        for name, found in outcomes.items()
        if found.p is not None and found.p < SIGNIFICANT and found.score >= least
    ]
    return max(better or [default], key=lambda name: outcomes[name].score)


def reason(row: str, default: str, outcomes: dict[str, Outcome], asked: bool) -> str:
    """Say in plain words why a row was taken."""
    own = outcomes[row]
    scores = f"It scores {own.score:.1f} BLEU on the validation set"
    test = f"paired bootstrap, p {'<' if row == default else '='}"
    if asked:
        return f"--model asks for it. {scores}."
    if row != default:
        return (
            f"{scores}, significantly more than {default} with "
            f"{outcomes[default].score:.1f} ({test} {own.p:.3f})."
        )
    if len(outcomes) == 1:
        return f"{scores}. No other row was compared with it."
    return (
        f"{scores}. No other row is significantly better there ({test} "
        f"{SIGNIFICANT:g})."
    )


def scores_of(steps: ModelSteps, row: str) -> dict[str, Any]:
    """Return BLEU of a row on both sets, by its best length penalty, with signature."""
    found = {}
    for split in ("valid", "test"):
        given, metric, _ = given_of(steps, split)
        known = score(metric, Decoded(steps, split, row).texts, given)
        found[split] = {"bleu": known["score"], "signature": known["signature"]}
    return found


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
        rows: that are trained.
        asked: name of the row that the user wants.

    Returns:
        Which row it is, why, and how it is used, in words.
    """
    settings = steps.settings
    names = [row.name for row in rows if can_be_model(row)]
    if not names:
        return "\nNo row has a model of its own, so there is no model folder.\n"
    default = MODEL if MODEL in names else names[0]
    decoded = {name: Decoded(steps, "valid", name) for name in names}
    outcomes = compared(steps, decoded, default)
    name = asked or better_row(outcomes, default)
    row, lenpen = Row.parse(name), decoded[name].lenpen
    runner.make(steps.tested(row))
    scores = scores_of(steps, name)
    write_json(steps.scores, scores)
    keep(steps.work, {"row": name, "lenpen": lenpen, "scores": scores})
    bundled = steps.bundled(row, lenpen)
    runner.make(bundled)
    title, folder = row.title(training_options(settings, row.plain)), bundled.makes
    return (
        f"\nThe model in {typed(folder)} is the row {name}: {title}.\n"
        f"{reason(name, default, outcomes, bool(asked))} On the test set it scores "
        f"{scores['test']['bleu']:.1f}.\n"
        f"Its length penalty is {lenpen:g}, the best of {steps.lenpens} on the "
        "validation set.\nIt translates raw text, a line a line:\n\n"
        f"    sbnmt translate {typed(folder)} < in.{settings['source']} > "
        f"out.{settings['target']}\n"
    )
