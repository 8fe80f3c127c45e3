"""Section 1: corpus scores with their signatures, and paired bootstrap tests."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics import CHRF, TER

from sbnmt_plugin.tools.report.content import Column, Figure, Section, Table
from sbnmt_plugin.tools.report.drawing import colours, finish, panels
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.results.bootstrap import SAMPLES, Outcome, bootstrap
from sbnmt_plugin.tools.scoring import bleu

WITHOUT_BLANKS = ("zh", "ja-mecab", "char")  # TER needs words, too
NOT_TOKENISED = (
    "Tokenised BLEU, by which the paper reports, is left out: the texts were "
    "not said to be tokenised. Add --tokenised if they are, or give tokenised "
    "texts with --tokenised-reference and --tokenised-system."
)
Texts = list[str]
Scores = dict[str, dict[str, float]]  # system -> metric -> value


def metrics(lowercase: bool, tokenize: str) -> dict[str, Any]:
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
    systems: dict[str, Texts], references: list[Texts], made: dict[str, Any]
) -> tuple[Scores, dict[str, str]]:
    """Score each system by each metric.

    Returns:
        Scores, and the signature of each metric.
    """
    scores = {
        name: {
            key: float(metric.corpus_score(text, references).score)
            for key, metric in made.items()
        }
        for name, text in systems.items()
    }
    return scores, signatures_of(made)


def signatures_of(made: dict[str, Any]) -> dict[str, str]:
    """Return the signatures of metrics that have scored something."""
    return {key: str(metric.get_signature()) for key, metric in made.items()}


def tokenised_table(
    systems: dict[str, Texts], references: list[Texts], lowercase: bool
) -> tuple[Scores, dict[str, str]]:
    """Return tokenised BLEU, case-sensitive (unless ``lowercase``) and not.

    Text without capitals has one of the two.
    """
    plain, lower = "tokenised BLEU", "tokenised BLEU, lower case"
    made = {plain: False, lower: True}
    if lowercase:
        del made[plain]
    by = {key: metrics(ignored, "none")["BLEU"] for key, ignored in made.items()}
    scores, signatures = scored(systems, references, by)
    if not lowercase and all(s[plain] == s[lower] for s in scores.values()):
        del signatures[lower]
    return {n: {k: s[k] for k in signatures} for n, s in scores.items()}, signatures


def tables(given: Inputs, baseline: str, samples: int = SAMPLES) -> list[Table]:
    """Tabulate scores and, where there are several systems, paired tests."""
    tests: list[Table] = []
    systems, references, lowercase = given.systems, given.references, given.lowercase
    metric = metrics(lowercase, given.tokenize)
    if len(systems) > 1:
        # which scores every system, so that nothing is scored twice
        found, tested = bootstrap(systems, references, baseline, metric, samples)
        found = {name: found[name] for name in systems}  # as they were given
        tests = [bootstrap_table(found, baseline, tested, samples, len(given.source))]
        scores = {
            name: {key: outcome.score for key, outcome in outcomes.items()}
            for name, outcomes in found.items()
        }
        signatures = signatures_of(metric)
    else:
        scores, signatures = scored(systems, references, metric)
    columns = [
        Column("BLEU", "", ".2f", "high"),
        Column("chrF", "", ".2f", "high"),
        Column("TER", "%", ".2f", "low"),
    ]
    if given.tokenised is not None:
        extra, more = tokenised_table(*given.tokenised, lowercase)
        columns += [Column(key, "", ".2f", "high") for key in more]
        signatures |= more
        scores = {name: scores[name] | extra[name] for name in systems}
    if given.error_rates:
        columns.append(Column("AER", "%", ".2f", "low"))
        signatures["AER"] = "word alignment error rate, the reference forced"
        scores = {
            name: {**found, "AER": given.error_rates.get(name)}
            for name, found in scores.items()
        }
    keys = [column.name for column in columns]
    first = Table(
        "scores",
        "Scores on the whole test set.",
        [Column("system"), *columns],
        [[name, *map(scores[name].get, keys)] for name in systems],
        [f"{key}: {signature}" for key, signature in signatures.items()],
        text="BLEU and chrF: higher is better; TER: lower. The best is bold.",
    )
    return [first, *tests]


def bootstrap_table(
    results: dict[str, dict[str, Outcome]],
    baseline: str,
    signatures: list[str],
    samples: int,
    sentences: int,
) -> Table:
    """Tabulate means, 95 % intervals and p-values against the baseline."""
    columns = [Column("system")]
    for key in results[baseline]:
        columns += [
            Column(f"{key}, mean", "", ".2f"),
            Column(f"± {key}", "95 %", ".2f"),
            Column(f"p, {key}", "", ".4f"),
        ]
    rows = []
    for name, outcomes in results.items():
        row: list[Any] = [f"{name} (baseline)" if name == baseline else name]
        for found in outcomes.values():
            row += [found.mean, found.interval, found.p]
        rows.append(row)
    caption = f"Paired bootstrap test against {baseline}."
    text = (
        f"{samples:,} resamplings of the {sentences:,} sentences. p is the "
        "probability of a difference as large as the observed one if both systems were "
        "equally good; below 0.05 is commonly called significant."
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


def counted(number: int, noun: str) -> str:
    """Return a number and a noun, in the plural if need be."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def section(given: Inputs, baseline: str | None, samples: int) -> Section:
    """Score every system, and test each against a baseline, if only the first."""
    made = tables(given, baseline or next(iter(given.systems)), samples)
    section = Section(
        "scores",
        "Scores",
        f"{counted(len(given.systems), 'system')}, {len(given.source):,} sentences, "
        f"{counted(len(given.references), 'reference')}, "
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
