"""Section 6 (Table 9): sentences on which two systems differ most, side by side."""

from __future__ import annotations

from itertools import chain
from operator import sub
from typing import Any

from sacrebleu.metrics import CHRF

from sbnmt_plugin.tools.report.content import Column, Section, Table
from sbnmt_plugin.tools.report.inputs import Inputs

TITLE = "Sentence by sentence"
SCORE = "chrF"
SHOWN = 20  # sentences of either end
LEAD = (
    "Sentences are compared by sentence chrF (sacreBLEU), which unlike sentence BLEU "
    "does not fall to almost nothing when no four words in a row are right. Here are "
    "those on which the last system gains most on the first, and those on which it "
    "loses most; numbers/sentences.csv has all."
)


def sentence_scores(
    outputs: list[str], references: list[list[str]], lowercase: bool
) -> list[float]:
    """Return sentence chrF of each output, rounded to a tenth."""
    metric = CHRF(lowercase=lowercase)
    return [
        round(metric.sentence_score(one, golds).score, 1)
        for one, *golds in zip(outputs, *references)
    ]


def cards(given: Inputs, scores: list[list[float]]) -> list[dict[str, Any]]:
    """Return what the page shows: largest gains first, then largest losses.

    Args:
        scores: of each system, of each sentence.

    Returns:
        Objects with line, gain, winners (system and direction) and texts (heading,
        score or "", text).
    """
    gains = list(map(sub, scores[-1], scores[0]))
    order = sorted(range(len(gains)), key=lambda i: -gains[i])
    golds = [f"reference {k + 1}" for k in range(len(given.references))]
    found = []
    for i in dict.fromkeys([*order[:SHOWN], *order[-SHOWN:]]):
        texts = [("source", "", given.source[i])]
        texts += [(name, "", gold[i]) for name, gold in zip(golds, given.references)]
        for (name, outputs), own in zip(given.systems.items(), scores):
            texts.append((name, f"{own[i]:.1f}", outputs[i]))
        won = [(name, who[i].upper()) for name, who in given.winners.items()]
        found.append({"line": i + 1, "gain": gains[i], "won": won, "texts": texts})
    return found


def section(given: Inputs) -> Section:
    """List sentences in the page, all of them in a table."""
    scores = [
        sentence_scores(text, given.references, given.lowercase)
        for text in given.systems.values()
    ]
    columns = [Column("line", "", "d"), Column("source"), Column("source tokens")]
    columns += [Column(f"reference {i + 1}") for i in range(len(given.references))]
    for name in given.systems:
        columns += [Column(name), Column(f"{name} {SCORE}", "", ".1f")]
    columns += [Column(f"{name} winner") for name in given.winners]
    told = chain.from_iterable(zip(given.systems.values(), scores))
    won = (map(str.upper, who) for who in given.winners.values())
    texts = zip(given.source, given.source_lengths(), *given.references, *told, *won)
    rows = [[i, *row] for i, row in enumerate(texts, 1)]
    table = Table("sentences", "", columns, rows, shown=False)
    return Section("sentences", TITLE, LEAD, [table], data=cards(given, scores))
