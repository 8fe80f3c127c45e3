"""Section 1: corpus scores with their signatures, and paired bootstrap tests."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics import CHRF, TER

from sbnmt_plugin.tools.report.content import Column, Table
from sbnmt_plugin.tools.results.bootstrap import SAMPLES, Outcome, bootstrap
from sbnmt_plugin.tools.scoring import bleu

WITHOUT_BLANKS = ("zh", "ja-mecab", "char")  # TER needs words, too
Texts = list[str]


def metrics(lowercase: bool, tokenize: str) -> dict[str, Any]:
    """BLEU, chrF and TER, as sacreBLEU's command makes them.

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
    """BLEU alone."""
    metric = metrics(lowercase, tokenize)["BLEU"]
    return float(metric.corpus_score(hypotheses, references).score)


def score_table(
    systems: dict[str, Texts], references: list[Texts], lowercase: bool, tokenize: str
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """BLEU, chrF and TER of each system.

    Returns:
        scores: system -> metric -> value.
        signatures: metric -> how it was made.
    """
    made = metrics(lowercase, tokenize)
    scores = {
        name: {
            key: float(metric.corpus_score(text, references).score)
            for key, metric in made.items()
        }
        for name, text in systems.items()
    }
    return scores, signatures_of(made)


def signatures_of(made: dict[str, Any]) -> dict[str, str]:
    """How metrics that have scored something were made."""
    return {key: str(metric.get_signature()) for key, metric in made.items()}


def tokenised_table(
    systems: dict[str, Texts], references: list[Texts], lowercase: bool
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Tokenised BLEU, case-sensitive (unless ``lowercase``) and not."""
    wanted = {"tokenised BLEU": False, "tokenised BLEU, lower case": True}
    if lowercase:
        wanted.pop("tokenised BLEU")
    scores: dict[str, dict[str, float]] = {name: {} for name in systems}
    signatures = {}
    for key, lower in wanted.items():
        metric = metrics(lower, "none")["BLEU"]
        for name, text in systems.items():
            scores[name][key] = float(metric.corpus_score(text, references).score)
        signatures[key] = str(metric.get_signature())
    keys = list(wanted)
    if len(keys) == 2 and all(s[keys[0]] == s[keys[1]] for s in scores.values()):
        for values in scores.values():  # text without capitals: one column says it
            del values[keys[1]]
        del signatures[keys[1]]
    return scores, signatures


def tables(
    systems: dict[str, Texts],
    references: list[Texts],
    tokenised: tuple[dict[str, Texts], list[Texts]] | None,
    lowercase: bool,
    tokenize: str,
    baseline: str,
    samples: int = SAMPLES,
) -> list[Table]:
    """The tables of section 1."""
    tests: list[Table] = []
    if len(systems) > 1:
        # which scores every system, so that nothing is scored twice
        metric = metrics(lowercase, tokenize)
        found, tested = bootstrap(systems, references, baseline, metric, samples)
        found = {name: found[name] for name in systems}  # as they were given
        sentences = len(references[0])
        tests = [bootstrap_table(found, baseline, tested, samples, sentences)]
        scores = {
            name: {key: outcome.score for key, outcome in outcomes.items()}
            for name, outcomes in found.items()
        }
        signatures = signatures_of(metric)
    else:
        scores, signatures = score_table(systems, references, lowercase, tokenize)
    columns = [
        Column("BLEU", "", ".2f", "high"),
        Column("chrF", "", ".2f", "high"),
        Column("TER", "%", ".2f", "low"),
    ]
    if tokenised is not None:
        extra, more = tokenised_table(*tokenised, lowercase)
        columns += [Column(key, "", ".2f", "high") for key in more]
        signatures.update(more)
        for name, values in extra.items():
            scores.setdefault(name, {}).update(values)
    rows: list[list[Any]] = [
        [name, *(scores[name].get(column.name) for column in columns)]
        for name in systems
    ]
    notes = [f"{key}: {signature}" for key, signature in signatures.items()]
    first = Table(
        "scores",
        "Scores on the whole test set.",
        [Column("system"), *columns],
        rows,
        notes,
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
    """Means, 95 % intervals and p-values against the baseline."""
    keys = list(results[baseline])
    columns = [Column("system")]
    for key in keys:
        columns += [
            Column(f"{key}, mean", "", ".2f"),
            Column(f"± {key}", "95 %", ".2f"),
            Column(f"p, {key}", "", ".4f"),
        ]
    rows = []
    for name, outcomes in results.items():
        row: list[Any] = [f"{name} (baseline)" if name == baseline else name]
        for key in keys:
            found = outcomes[key]
            row += [found.mean, found.interval, found.p]
        rows.append(row)
    caption = f"Paired bootstrap test against {baseline}."
    text = (
        f"{samples:,} resamplings of the {sentences:,} sentences. p is the "
        "probability of a difference as large as the observed one if both systems were "
        "equally good; below 0.05 is commonly called significant."
    )
    return Table("bootstrap", caption, columns, rows, signatures, text=text)
