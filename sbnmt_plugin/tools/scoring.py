"""sacreBLEU and chrF with signatures, and the paper's tokenised BLEU."""

from __future__ import annotations

import re
import statistics
from itertools import chain
from typing import Any

import regex
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.base import Metric

# those of sacreBLEU for BLEU; 13a is for languages with blanks
TOKENISERS = ("13a", "zh", "intl", "char", "ja-mecab", "ko-mecab", "flores200", "none")
# languages whose words would take a package to find
WITHOUT_BLANKS = dict.fromkeys(("zh", "zho", "cmn", "yue", "wuu"), "zh")
OTHERS = "ja jpn th tha lo lao km khm my mya bo bod dz dzo"
WITHOUT_BLANKS |= dict.fromkeys(OTHERS.split(), "char")
KANA_AND_OTHERS = r"[\p{Hira}\p{Kana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}]"
Scores = dict[str, dict[str, Any]]  # name -> score and signature


def score(
    metric: Metric, hypothesis: list[str], references: list[list[str]]
) -> dict[str, Any]:
    """Return value and signature of a metric."""
    value = metric.corpus_score(hypothesis, references).score
    return {"score": round(value, 2), "signature": str(metric.get_signature())}


def tokeniser_of(language: str) -> str:
    """Return the tokeniser that is right for raw text of a language, by its code."""
    return WITHOUT_BLANKS.get(re.split("[-_]", language.lower())[0], "13a")


def tokeniser_for(references: list[list[str]]) -> str:
    """Return the tokeniser that is right for raw text, by most of its letters."""
    text = "".join(chain(*references))
    forms = r"\p{L}", r"\p{Han}", KANA_AND_OTHERS
    letters, ideographs, others = (len(regex.findall(form, text)) for form in forms)
    right = "zh" if ideographs > 9 * others else "char"
    return right if 2 * (ideographs + others) > letters else "13a"


def bleu(tokenize: str = "13a", **options: Any) -> BLEU:
    """Return sacreBLEU's metric.

    Args:
        tokenize: one of :data:`TOKENISERS`.
        options: others of the metric.

    Raises:
        ValueError: the tokeniser needs a package, or a file, that is not there.
    """
    try:
        return BLEU(tokenize=tokenize, **options)
    except (ImportError, RuntimeError, OSError) as error:
        said = " ".join(str(error).split())
        if isinstance(error, OSError):
            said = f"its model must be fetched once, but cannot be: {said}"
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
    hypothesis: list[str],
    references: list[list[str]],
    lowercase: bool = False,
    tokenize: str = "none",
) -> dict[str, Any]:
    """Score tokens by BLEU: see :func:`bleu`.

    Args:
        tokenize: by default tokens stand between blanks, as in the paper.
    """
    metric = bleu(tokenize, force=True, lowercase=lowercase)
    return score(metric, hypothesis, references)


def bleu_named(signature: str) -> str:
    """Return the name of BLEU, by its signature: of raw text, or tokenised."""
    return "BLEU" if re.search(r"tok:(?!none\b)", signature) else "tokenised BLEU"


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
