"""Section 8 (Table 9): every sentence with all outputs, as data for the page."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics import CHRF

from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.report.content import Column, Section, Table
from sbnmt_plugin.tools.report.inputs import Inputs

SCORE = "chrF"
DEFINITION = (
    "Sentences are compared by sentence chrF (sacreBLEU), which unlike sentence BLEU "
    "does not fall to almost nothing when no four words in a row are right. Gain is "
    "the difference between the two systems chosen. Words that are not in the longest "
    "common subsequence with the closest reference are underlined."
)


def sentence_scores(
    outputs: list[str],
    references: list[list[str]],
    lowercase: bool = False,
    name: str = "",
) -> list[float]:
    """Return sentence chrF of each output, rounded to a tenth."""
    metric = CHRF(lowercase=lowercase)
    rows = zip(outputs, *references)
    return [
        round(metric.sentence_score(output, golds).score, 1)
        for output, *golds in progress(
            rows, total=len(outputs), desc=f"{SCORE}: {name}", leave=False
        )
    ]


def browser_data(given: Inputs) -> dict[str, Any]:
    """Return what the page's list of sentences reads.

    Returns:
        Systems, names of the systems that have records, and one row a sentence:
        [source, references, outputs, scores, length, winners as "l" and "r"].
    """
    scores = [
        sentence_scores(text, given.references, given.lowercase, name)
        for name, text in given.systems.items()
    ]
    rows = [
        [
            line,
            [text[i] for text in given.references],
            [text[i] for text in given.systems.values()],
            [values[i] for values in scores],
            len(given.source_tokens[i]),
            "".join(found[i].winner[0] for found in given.races.values()),
        ]
        for i, line in enumerate(given.source)
    ]
    return {"systems": list(given.systems), "raced": list(given.races), "rows": rows}


def section(given: Inputs) -> Section:
    """List all sentences, in the page and as a table."""
    data = browser_data(given)
    columns = [Column("line", "", "d"), Column("source"), Column("source tokens")]
    columns += [Column(f"reference {i + 1}") for i in range(len(given.references))]
    for name in given.systems:
        columns += [Column(name), Column(f"{name} {SCORE}", "", ".1f")]
    columns += [Column(f"{name} winner") for name in given.races]
    rows = []
    for i, (line, golds, outputs, values, length, won) in enumerate(data["rows"]):
        row: list[Any] = [i + 1, line, length, *golds]
        for output, value in zip(outputs, values):
            row += [output, value]
        rows.append([*row, *({"l": "L2R", "r": "R2L"}[letter] for letter in won)])
    table = Table("sentences", "", columns, rows, shown=False)
    title = "Sentence by sentence"
    return Section("sentences", title, DEFINITION, [table], data=data)
