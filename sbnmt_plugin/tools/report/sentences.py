"""Section 7 (Table 9): every sentence with all outputs, as data for the page."""

from __future__ import annotations

from itertools import chain
from typing import Any

from sacrebleu.metrics import CHRF

from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.report.content import Column, Section, Table
from sbnmt_plugin.tools.report.inputs import Inputs

TITLE = "Sentence by sentence"
SCORE = "chrF"
WINNERS = {"l": "L2R", "r": "R2L"}
DEFINITION = (
    "Sentences are compared by sentence chrF (sacreBLEU), which unlike sentence BLEU "
    "does not fall to almost nothing when no four words in a row are right. Gain is "
    "the difference between the two systems chosen. Words that are not in the longest "
    "common subsequence with the closest reference are underlined."
)


def sentence_scores(
    outputs: list[str], references: list[list[str]], lowercase: bool, name: str
) -> list[float]:
    """Return sentence chrF of each output, rounded to a tenth."""
    metric = CHRF(lowercase=lowercase)
    rows = progress([*zip(outputs, *references)], desc=f"{SCORE}: {name}", leave=False)
    return [round(metric.sentence_score(one, golds).score, 1) for one, *golds in rows]


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
    won = [
        "".join(race.winner[0] for race in races)
        for _, *races in zip(given.source, *given.races.values())
    ]
    columns = (
        *(given.source, zip(*given.references), zip(*given.systems.values())),
        *(zip(*scores), map(len, given.source_tokens), won),
    )
    rows = list(zip(*columns))
    return {"systems": list(given.systems), "raced": list(given.races), "rows": rows}


def section(given: Inputs) -> Section:
    """List all sentences, in the page and as a table."""
    data = browser_data(given)
    columns = [Column("line", "", "d"), Column("source"), Column("source tokens")]
    columns += [Column(f"reference {i + 1}") for i in range(len(given.references))]
    for name in given.systems:
        columns += [Column(name), Column(f"{name} {SCORE}", "", ".1f")]
    columns += [Column(f"{name} winner") for name in given.races]
    rows = [
        [i, line, length, *golds, *chain(*zip(outputs, values)), *map(WINNERS.get, won)]
        for i, (line, golds, outputs, values, length, won) in enumerate(data["rows"], 1)
    ]
    table = Table("sentences", "", columns, rows, shown=False)
    return Section("sentences", TITLE, DEFINITION, [table], data=data)
