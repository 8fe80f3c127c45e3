"""sacreBLEU and chrF with signatures, and the paper's tokenised BLEU."""

from __future__ import annotations

import statistics
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Metric

# those of sacreBLEU for BLEU; 13a is for languages with blanks
TOKENISERS = ("13a", "zh", "intl", "char", "ja-mecab", "ko-mecab", "flores200", "none")
Scores = dict[str, dict[str, Any]]  # name -> score and signature


def score(
    metric: Metric, hypothesis: list[str], references: list[list[str]]
) -> dict[str, Any]:
    """Return value and signature of a metric."""
    value = metric.corpus_score(hypothesis, references).score
    return {"score": round(value, 2), "signature": str(metric.get_signature())}


def token_bleu(lowercase: bool = False) -> BLEU:
    """Return BLEU as in the paper, on tokens separated by blanks."""
    return BLEU(tokenize="none", force=True, lowercase=lowercase)


def bleu(tokenize: str = "13a", **options: Any) -> BLEU:
    """Return sacreBLEU's metric.

    Args:
        tokenize: one of :data:`TOKENISERS`.
        options: others of the metric.

    Raises:
        ValueError: the tokeniser needs a package that is not installed.
    """
    try:
        return BLEU(tokenize=tokenize, **options)
    except (ImportError, RuntimeError) as error:
        said = " ".join(str(error).split())
        raise ValueError(f"--tokenize {tokenize}: {said}") from error


def scores(
    hypothesis: list[str],
    references: list[list[str]],
    lowercase: bool = False,
    tokenize: str = "13a",
) -> Scores:
    """Score detokenised text by sacreBLEU's BLEU and chrF.

    Args:
        tokenize: tokeniser for BLEU, one of :data:`TOKENISERS`.
    """
    metric = bleu(tokenize, lowercase=lowercase)
    return {
        "BLEU": score(metric, hypothesis, references),
        "chrF": score(CHRF(lowercase=lowercase), hypothesis, references),
    }


def tokenised_bleu(
    hypothesis: list[str], references: list[list[str]], lowercase: bool = False
) -> dict[str, Any]:
    """Score tokens by :func:`token_bleu`."""
    return score(token_bleu(lowercase), hypothesis, references)


def length_ratio(
    hypothesis: list[str], references: list[list[str]], lowercase: bool = False
) -> float:
    """Return tokens of the hypotheses over those of the references next in length."""
    found = token_bleu(lowercase).corpus_score(hypothesis, references)
    return round(found.sys_len / max(found.ref_len, 1), 3)


def slices(sets: dict[str, int], texts: list[list[str]]) -> dict[str, list[list[str]]]:
    """Cut line-aligned texts, test sets behind each other, into the sets.

    Args:
        sets: name -> number of lines, in order.
    """
    found, start = {}, 0
    for name, count in sets.items():
        found[name] = [text[start : start + count] for text in texts]
        start += count
    return found


def mean(results: list[Scores]) -> Scores:
    """Average every score over several test sets, as the paper does MT03 to MT06."""
    first = results[0]
    if len(results) == 1:
        return first
    return {
        name: {
            "score": round(statistics.mean(r[name]["score"] for r in results), 2),
            "signature": f"{first[name]['signature']}, mean of {len(results)} sets",
        }
        for name in first
    }
