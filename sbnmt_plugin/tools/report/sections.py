"""Sections 1, 2, 3, 7 and 8: what the texts alone tell, in tables and figures."""

from __future__ import annotations

import itertools
from typing import Any

from sbnmt_plugin.tools.report import (
    accuracy,
    alignment,
    figures,
    lengths,
    scores,
    sentences,
)
from sbnmt_plugin.tools.report.content import Column, Section, Table
from sbnmt_plugin.tools.report.inputs import Inputs


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def scoring(given: Inputs, baseline: str, samples: int) -> Section:
    """1: scores, signatures, paired bootstrap."""
    made = scores.tables(
        given.systems,
        given.references,
        given.tokenised,
        given.lowercase,
        given.tokenize,
        baseline,
        samples,
    )
    section = Section(
        "scores",
        "Scores",
        f"{counted(len(given.systems), 'system')}, {len(given.source):,} sentences, "
        f"{counted(len(given.references), 'reference')}, "
        f"{'case ignored' if given.lowercase else 'case-sensitive'}.",
        made,
    )
    if given.tokenised is None:
        section.notes.append(
            "Tokenised BLEU, by which the paper reports, is left out: the texts were "
            "not said to be tokenised. Add --tokenised if they are, or give tokenised "
            "texts with --tokenised-reference and --tokenised-system."
        )
    if len(made) > 1:
        table = made[1]
        values = {
            name: (row[1], row[2]) for name, row in zip(given.systems, table.rows)
        }
        section.figures.append(figures.intervals(values, "BLEU"))
    else:
        section.notes.append("A bootstrap test needs a second --system.")
    return section


def beginnings_and_ends(given: Inputs, n: int) -> Section:
    """2: accuracy of the first and last n tokens."""
    measured = {
        name: [
            accuracy.accuracy(tokens, given.reference_tokens, n, last, in_place)
            for in_place in (True, False)
            for last in (False, True)
        ]
        for name, tokens in given.system_tokens.items()
    }
    columns = [Column("system")] + [
        Column(f"{end} {n}, {how}", "%", ".2f", "high")
        for how in ("in place", "any order")
        for end in ("first", "last")
    ]
    table = Table(
        "accuracy",
        f"Accuracy of the first and the last {n} tokens.",
        columns,
        [[name, *values] for name, values in measured.items()],
    )
    figure = figures.accuracies(
        {name: values[:2] for name, values in measured.items()},
        {name: values[2:] for name, values in measured.items()},
        n,
    )
    return Section(
        "accuracy",
        "Beginnings and ends",
        "A left-to-right decoder tends to begin well, a right-to-left decoder to end "
        "well; SB-NMT should do both.",
        [table],
        [figure],
        [accuracy.DEFINITION],
    )


def source_lengths(given: Inputs, uppers: list[int] | None) -> Section:
    """3: BLEU and output length by source length."""
    counts = [len(tokens) for tokens in given.source_tokens]
    groups = lengths.buckets(counts, uppers or lengths.edges(counts))
    bleu: dict[str, list[float]] = {name: [] for name in given.systems}
    length: dict[str, list[float]] = {name: [] for name in given.systems}
    gold = []
    columns = [Column("system")]
    for group in groups:
        picked = [[text[i] for i in group.places] for text in given.references]
        tokens = given.reference_tokens
        gold.append(
            sum(lengths.mean_length(one, group.places) for one in tokens) / len(tokens)
        )
        for name, text in given.systems.items():
            part = [text[i] for i in group.places]
            bleu[name].append(
                scores.corpus_bleu(part, picked, given.lowercase, given.tokenize)
            )
            length[name].append(
                lengths.mean_length(given.system_tokens[name], group.places)
            )
        columns += [
            Column(group.name, "BLEU", ".2f", "high"),
            Column(group.name, "tokens", ".1f"),
        ]
    rows: list[list[Any]] = [
        [name, *itertools.chain(*zip(bleu[name], length[name]))]
        for name in given.systems
    ]
    rows.append(["reference", *itertools.chain(*((None, mean) for mean in gold))])
    table = Table("by-length", "BLEU and mean length by source length.", columns, rows)
    names = [group.name for group in groups]
    sizes_ = [len(group.places) for group in groups]
    figure = figures.by_length(names, sizes_, bleu, length, gold)
    section = Section(
        "lengths",
        "Long sentences",
        "Corpus BLEU of each group of sentences, and how long the outputs are.",
        [table],
        [figure],
    )
    if min(sizes_) < lengths.FEWEST:
        section.notes.append(
            f"Groups of fewer than {lengths.FEWEST} sentences say little about BLEU."
        )
    return section


def translation_errors(given: Inputs, runs: int) -> Section:
    """7: over- and under-translation, estimated; and AER, where it is known."""
    title = "Over- and under-translation (estimate)"
    if not runs:
        return without_aligner(given, title, "Asked for: --aligner-runs 0.")
    try:
        found, plain = alignment.estimate(
            given.source_tokens,
            given.reference_tokens[0],
            given.system_tokens,
            given.bitext,
            runs,
        )
    except ImportError:
        reason = (
            "The word aligner is not installed: pip install 'sbnmt-plugin[report]' "
            "(eflomal, needs a C compiler)."
        )
        return without_aligner(given, title, reason)

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    rows: list[list[Any]] = []
    over: dict[str, list[float]] = {}
    under: dict[str, list[float]] = {}
    for name, values in found.items():
        over[name], under[name], alone = (list(x) for x in zip(*values))
        row: list[Any] = [name]
        for series in (under[name], over[name]):
            row += [mean(series), f"{min(series):.2f}–{max(series):.2f}"]
        rows.append([*row, mean(alone)])
    table = Table(
        "translation-errors",
        f"Estimate, mean of {counted(runs, 'run')} of the aligner.",
        [
            Column("system"),
            Column("under-translated", "% of source words", ".2f"),
            Column("range of runs", "%"),
            Column("over-translated", "% of source words", ".2f"),
            Column("range of runs", "%"),
            Column("not aligned", "% of source words", ".1f"),
        ],
        rows,
        [f"Not aligned even in the reference: {mean(plain):.1f} % of source words."],
    )
    return Section(
        "alignment",
        title,
        "The paper had 100 sentences judged by hand (Table 8).",
        [table, *error_rates(given)],
        [figures.translation_errors(over, under)],
        [alignment.DEFINITION],
    )


def without_aligner(given: Inputs, title: str, reason: str) -> Section:
    """What is left of section 7, and why the rest is not there."""
    if given.error_rates:
        return Section("alignment", title, reason, error_rates(given))
    return Section("alignment", title, missing=reason)


def error_rates(given: Inputs) -> list[Table]:
    """AER of the systems that have one, as a table."""
    if not given.error_rates:
        return []
    columns = [Column("system"), Column("AER", "%", ".2f", "low")]
    rows = [[name, rate] for name, rate in given.error_rates.items()]
    caption = "Word alignment error rate, the reference forced."
    text = "Where a model looks while it writes, against links that are known."
    return [Table("aer", caption, columns, rows, text=text)]


def browser(given: Inputs) -> tuple[Section, dict[str, Any]]:
    """8: all sentences, as data for the page."""
    data = sentences.browser_data(
        given.source,
        given.references,
        given.systems,
        [len(tokens) for tokens in given.source_tokens],
        given.races,
        given.lowercase,
    )
    section = Section("sentences", "Sentence by sentence", sentences.DEFINITION)
    names = list(given.systems)
    columns = [Column("line", "", "d"), Column("source"), Column("source tokens")]
    columns += [Column(f"reference {i + 1}") for i in range(len(given.references))]
    for name in names:
        columns += [Column(name), Column(f"{name} {sentences.SCORE}", "", ".1f")]
    columns += [Column(f"{name} winner") for name in given.races]
    rows = []
    for i, (line, golds, outputs, values, length, won) in enumerate(data["rows"]):
        row: list[Any] = [i + 1, line, length, *golds]
        for output, value in zip(outputs, values):
            row += [output, value]
        rows.append([*row, *({"l": "L2R", "r": "R2L"}[letter] for letter in won)])
    section.tables.append(Table("sentences", "", columns, rows, shown=False))
    return section, data
