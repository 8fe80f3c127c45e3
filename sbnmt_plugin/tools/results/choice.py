"""Choice of the row that becomes a run's model, on the validation set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU

from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.settings import references
from sbnmt_plugin.tools.results.bootstrap import Outcome, Texts, bootstrap
from sbnmt_plugin.tools.results.sweep import Sweep
from sbnmt_plugin.tools.scoring import score
from sbnmt_plugin.tools.text import as_written, remove_bpe
from sbnmt_plugin.tools.tokens import detokenise
from sbnmt_plugin.tools.translations import read_generated

SIGNIFICANT = 0.05  # p below it
SCORE = "BLEU"


@dataclass(frozen=True)
class Choice:
    """The row that becomes the model.

    Attributes:
        row: its name.
        lenpen: the length penalty by which it was best on the validation set.
        reason: in words.
    """

    row: str
    lenpen: float
    reason: str


class Decoded:
    """Translations of a set by a row, as sweep-beam has left them.

    Args:
        work: folder of the run.
        settings: its recipe.
        split: ``valid`` or ``test``.
        name: of the row.

    Attributes:
        lenpen: the best one of those that were tried.
        texts: detokenised, a line a sentence.
    """

    def __init__(
        self, work: Path, settings: dict[str, Any], split: str, name: str
    ) -> None:
        path = work / split / f"{name}.json"
        sweep = Sweep.of_file(path)
        best = sweep.best(name)
        self.lenpen = best.lenpen or 0.0
        runs = Path(f"{path}.runs") / best.folder(0) / f"generate-{split}.txt"
        with as_written(runs, f"remove {path.with_suffix('.done')} to decode anew"):
            found = read_generated(runs)
            tokens = [remove_bpe(text) for _, text in sorted(found.items())]
        self.texts = detokenise(tokens, settings["detokenise"])


def metric(settings: dict[str, Any]) -> BLEU:
    """Return the metric by which rows are compared: sacreBLEU's, of text."""
    return BLEU(lowercase=settings["score"]["lowercase"])


def better_row(outcomes: dict[str, Outcome], default: str) -> str:
    """Return the row that is taken: the default, or the best of those that beat it.

    Args:
        outcomes: of each row, compared with the default.
    """
    least = outcomes[default].score
    better = [
        name
        for name, found in outcomes.items()
        if found.p is not None and found.p < SIGNIFICANT and found.score > least
    ]
    return max(better or [default], key=lambda name: outcomes[name].score)


def choose(
    work: Path,
    settings: dict[str, Any],
    rows: list[Row],
    default: str,
    asked: str | None = None,
) -> Choice:
    """Choose a row, each with its best length penalty.

    Args:
        rows: whose translations of the validation set are there.
        default: the row that is taken unless another is significantly better; the
            first of the rows where it is none of them.
        asked: name of the row that the user wants.
    """
    names = [row.name for row in rows]
    decoded = {name: Decoded(work, settings, "valid", name) for name in names}
    default = default if default in names else names[0]
    found = compared({k: v.texts for k, v in decoded.items()}, work, settings, default)
    row = asked or better_row(found, default)
    reason = reason_for(row, default, found, asked=bool(asked))
    return Choice(row, decoded[row].lenpen, reason)


def compared(
    texts: dict[str, Texts], work: Path, settings: dict[str, Any], baseline: str
) -> dict[str, Outcome]:
    """Return the outcome of each row, compared with one of them on validation text."""
    given = references(work / "text", settings).read("valid.ref")
    if len(texts) == 1:
        value = score(metric(settings), texts[baseline], given)["score"]
        return {baseline: Outcome(value, value, 0.0, None)}
    outcomes, _ = bootstrap(texts, given, baseline, {SCORE: metric(settings)})
    return {name: found[SCORE] for name, found in outcomes.items()}


def reason_for(
    row: str, default: str, outcomes: dict[str, Outcome], asked: bool
) -> str:
    """Say in plain words why a row was taken."""
    own, usual = outcomes[row], outcomes[default]
    scores = f"It scores {own.score:.1f} BLEU on the validation set"
    if asked:
        return f"--model asks for it. {scores}."
    if row != default:
        return (
            f"{scores}, significantly more than {default} with {usual.score:.1f} "
            f"(paired bootstrap, p = {own.p:.3f})."
        )
    if len(outcomes) == 1:
        return f"{scores}. No other row was compared with it."
    return (
        f"{scores}. No other row is significantly better there (paired bootstrap, p < "
        f"{SIGNIFICANT:g})."
    )
