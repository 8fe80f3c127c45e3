"""Section 8 (Table 9): every sentence with all outputs, as data for the page."""

from __future__ import annotations

from typing import Any

from sacrebleu.metrics import CHRF
from tqdm import tqdm

from sbnmt_plugin.tools.report.winners import Race

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
    """Sentence chrF of each output, rounded to a tenth."""
    metric = CHRF(lowercase=lowercase)
    rows = zip(outputs, *references)
    return [
        round(metric.sentence_score(output, golds).score, 1)
        for output, *golds in tqdm(
            rows, total=len(outputs), desc=f"{SCORE}: {name}", leave=False
        )
    ]


def browser_data(
    source: list[str],
    references: list[list[str]],
    systems: dict[str, list[str]],
    lengths: list[int],
    races: dict[str, list[Race]],
    lowercase: bool = False,
) -> dict[str, Any]:
    """What the page's list of sentences reads.

    Args:
        lengths: of the sources, in tokens.
        races: who won, for systems that have records.

    Returns:
        systems, names of the systems with ``winners``, and one row a sentence:
        [source, references, outputs, scores, length, winners as "l" and "r"].
    """
    scores = [
        sentence_scores(text, references, lowercase, name)
        for name, text in systems.items()
    ]
    rows = []
    for i, line in enumerate(source):
        rows.append(
            [
                line,
                [text[i] for text in references],
                [text[i] for text in systems.values()],
                [values[i] for values in scores],
                lengths[i],
                "".join(found[i].winner[0] for found in races.values()),
            ]
        )
    return {"systems": list(systems), "raced": list(races), "rows": rows}
