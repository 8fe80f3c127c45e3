"""Section 1: corpus scores with their signatures, and paired bootstrap tests."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics import CHRF, TER
from sacrebleu.metrics.base import Metric

from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import colours, finish, panels
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.results.bootstrap import Outcome, bootstrap
from sbnmt_plugin.tools.scoring import bleu

WITHOUT_BLANKS = ("zh", "ja-mecab", "char")  # TER needs words, too
TITLE = "Scores"
NOT_TOKENISED = (
    "Tokenised BLEU, by which the paper reports, is left out: the texts were "
    "not said to be tokenised. Add --tokenised if they are, or give tokenised "
    "texts with --tokenised-reference and --tokenised-system."
)
Texts = list[str]
Scores = dict[str, dict[str, float]]  # system -> metric -> value


def metrics(lowercase: bool, tokenize: str) -> dict[str, Metric]:
    """Return BLEU, chrF and TER, as sacreBLEU's command makes them.

    Args:
        tokenize: sacreBLEU's tokeniser for BLEU; ``none`` for tokenised text.
    """
    return {
        "BLEU": bleu(tokenize, lowercase=lowercase, force=True, effective_order=False),
        "chrF": CHRF(lowercase=lowercase),
        "TER": TER(
            case_sensitive=not lowercase,
            normalized=tokenize in WITHOUT_BLANKS,
            asian_support=tokenize in WITHOUT_BLANKS,
        ),
    }


def corpus_bleu(
    hypotheses: Texts, references: list[Texts], lowercase: bool, tokenize: str
) -> float:
    """Return BLEU alone."""
    metric = metrics(lowercase, tokenize)["BLEU"]
    return float(metric.corpus_score(hypotheses, references).score)


def scored(
    systems: dict[str, Texts], references: list[Texts], made: dict[str, Metric]
) -> Scores:
    """Score each system by each metric."""
    return {
        name: {
            key: float(metric.corpus_score(text, references).score)
            for key, metric in made.items()
        }
        for name, text in systems.items()
    }


def signatures_of(made: dict[str, Metric]) -> dict[str, str]:
    """Return the signatures of metrics that have scored something."""
    return {key: str(metric.get_signature()) for key, metric in made.items()}


def tables(given: Inputs) -> list[Table]:
    """Tabulate scores and, where there are several systems, paired tests."""
    tests: list[Table] = []
    systems, references = given.systems, given.references
    metric = metrics(given.lowercase, given.tokenize)
    if len(systems) > 1:
        # which scores every system, so that nothing is scored twice
        found, tested = bootstrap(
            systems, references, given.baseline, metric, given.samples
        )
        tests = [bootstrap_table(given, found, tested)]
        scores = {
            name: {key: outcome.score for key, outcome in outcomes.items()}
            for name, outcomes in found.items()
        }
    else:
        scores = scored(systems, references, metric)
    signatures = signatures_of(metric)
    columns = [
        Column("BLEU", "", ".2f", "high"),
        Column("chrF", "", ".2f", "high"),
        Column("TER", "%", ".2f", "low"),
    ]
    if given.tokenised is not None:
        key = "tokenised BLEU"
        by_tokens = {key: metrics(given.lowercase, "none")["BLEU"]}
        extra = scored(*given.tokenised, by_tokens)
        columns.append(Column(key, "", ".2f", "high"))
        signatures |= signatures_of(by_tokens)
        scores = {name: scores[name] | extra[name] for name in systems}
    first = Table(
        "scores",
        "Scores on the whole test set.",
        [Column("system"), *columns],
        [[name, *scores[name].values()] for name in systems],
        [f"{key}: {signature}" for key, signature in signatures.items()],
        text="BLEU and chrF: higher is better; TER: lower. The best is bold.",
    )
    return [first, *tests]


def bootstrap_table(
    given: Inputs, results: dict[str, dict[str, Outcome]], signatures: list[str]
) -> Table:
    """Tabulate means, 95 % intervals and p-values against the baseline."""
    columns = [Column("system")]
    for key in results[given.baseline]:
        columns += [
            Column(f"{key}, mean", "", ".2f"),
            Column(f"± {key}", "95 %", ".2f"),
            Column(f"p, {key}", "", ".4f"),
        ]
    rows = []
    for name in given.systems:
        row: list[Any] = [f"{name} (baseline)" if name == given.baseline else name]
        for found in results[name].values():
            row += [found.mean, found.interval, found.p]
        rows.append(row)
    caption = f"Paired bootstrap test against {given.baseline}."
    text = (
        f"{given.samples:,} resamplings of the {len(given.source):,} sentences. p is "
        "the probability of a difference as large as the observed one if both systems "
        "were equally good; below 0.05 is commonly called significant."
    )
    return Table("bootstrap", caption, columns, rows, signatures, text=text)


def intervals(values: dict[str, tuple[float, float]], metric: str) -> Figure:
    """Draw a dot and its 95 % interval for each system, from top to bottom."""
    with panels(1, 0.75 + 0.3 * len(values)) as (canvas, (axis,)):
        looks = colours(list(values))
        for y, (name, (mean, interval)) in enumerate(values.items()):
            colour, marker = looks[name]
            axis.errorbar(
                mean, y, xerr=interval, fmt=marker, color=colour, capsize=2.5, lw=1.4
            )
            axis.annotate(
                f"{mean:.1f}",
                (mean, y),
                xytext=(0, 5),
                textcoords="offset points",
                ha="center",
                fontsize=7.5,
            )
        axis.set_yticks(range(len(values)), list(values))
        axis.set_ylim(len(values) - 0.4, -0.7)
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(f"{metric}, mean of the resamplings and 95 % interval")
    caption = (
        f"{metric} of each system with its 95 % bootstrap interval. Overlapping "
        "intervals do not mean “no difference”: the paired test below compares "
        "sentence by sentence. The axis does not start at 0."
    )
    return finish(canvas, "scores", caption)


def section(given: Inputs) -> Section:
    """Score every system, and test each against the baseline."""
    made = tables(given)
    section = Section(
        "scores",
        TITLE,
        f"Systems: {len(given.systems)}; sentences: {len(given.source):,}; references: "
        f"{len(given.references)}; "
        f"{'case ignored' if given.lowercase else 'case-sensitive'}.",
        made,
    )
    if given.tokenised is None:
        section.notes.append(NOT_TOKENISED)
    if len(made) > 1:
        values = {n: (row[1], row[2]) for n, row in zip(given.systems, made[1].rows)}
        section.figures.append(intervals(values, "BLEU"))
    else:
        section.notes.append("A bootstrap test needs a second --system.")
    return section
