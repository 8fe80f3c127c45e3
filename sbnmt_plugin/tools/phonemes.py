"""Word and phoneme error rate, where a line is a word and its tokens are phonemes.

Both are metrics of sacreBLEU's kind, so that its paired bootstrap takes them as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.base import Metric, Score

from sbnmt_plugin.tools.scoring import Scores, score


def edit_distance(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Count the fewest insertions, deletions and substitutions (Levenshtein)."""
    row = list(range(len(second) + 1))  # from nothing to each prefix of `second`
    for i, a in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(second, start=1):
            kept = diagonal + (a != b)
            diagonal, row[j] = row[j], min(kept, row[j] + 1, row[j - 1] + 1)
    return row[-1]


class ErrorRate(Metric):
    """Errors per unit, in %, over a corpus; any of a line's references is right.

    Statistics of a line are its errors and its units.
    """

    NAME: str

    def _preprocess_segment(self, sent: str) -> str:
        return " ".join(sent.split())

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": [ref.split() for ref in refs]}

    def _aggregate_and_compute(self, stats: list[list[int]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats)])

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Score:
        errors, units = stats
        return Score(self.NAME, 100 * float(errors / max(units, 1)))


class WordErrorRate(ErrorRate):
    """Share of the lines that are none of their references."""

    NAME = "WER"

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> list[int]:
        return [int(hypothesis.split() not in ref_kwargs["references"]), 1]


class PhonemeErrorRate(ErrorRate):
    """Edits to the closest reference (of equals the first) per phoneme of it."""

    NAME = "PER"

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> list[int]:
        tokens = hypothesis.split()
        pairs = [[edit_distance(tokens, r), len(r)] for r in ref_kwargs["references"]]
        return min(pairs, key=lambda pair: pair[0])


def error_rates(hypotheses: list[str], references: list[list[str]]) -> Scores:
    """Return WER and PER, each with sacreBLEU's signature.

    Args:
        hypotheses: a line per word, phonemes separated by blanks.
        references: files as long as that; a word with fewer pronunciations than
            another has one of them repeatedly.
    """
    metrics = WordErrorRate(), PhonemeErrorRate()
    return {metric.NAME: score(metric, hypotheses, references) for metric in metrics}
