#!/usr/bin/env python3
"""Score hypotheses: sacreBLEU and chrF with signatures, and the paper's tokenised BLEU.

    score.py --reference test.de [--reference test2.de] --hypothesis out.txt \
        [--tokenised-reference tok.de --tokenised-hypothesis out.tok] [--lowercase] \
        [--json scores.json]

--hypothesis and --reference are detokenised text.  Tokenised BLEU, by which the paper
reports, is computed on text that is tokenised already (no further tokenisation).
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from texts import new_file, read_parallel, refuse_overwriting, run

Scores = dict[str, dict[str, Any]]  # name -> score and signature


def score(
    metric: BLEU | CHRF, hypothesis: list[str], references: list[list[str]]
) -> dict[str, Any]:
    """Value and signature of a metric."""
    value = metric.corpus_score(hypothesis, references).score
    return {"score": round(value, 2), "signature": str(metric.get_signature())}


def scores(
    hypothesis: list[str], references: list[list[str]], lowercase: bool = False
) -> Scores:
    """sacreBLEU and chrF of detokenised text."""
    return {
        "BLEU": score(BLEU(lowercase=lowercase), hypothesis, references),
        "chrF": score(CHRF(lowercase=lowercase), hypothesis, references),
    }


def tokenised_bleu(
    hypothesis: list[str], references: list[list[str]], lowercase: bool = False
) -> dict[str, Any]:
    """BLEU as in the paper, on tokens separated by blanks."""
    metric = BLEU(tokenize="none", force=True, lowercase=lowercase)
    return score(metric, hypothesis, references)


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
    """Mean of every score over several test sets, as the paper's of MT03 to MT06."""
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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reference", action="append", required=True)
    parser.add_argument("--hypothesis", required=True)
    parser.add_argument("--tokenised-reference", action="append", default=[])
    parser.add_argument("--tokenised-hypothesis")
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    parser.add_argument("--json", help="file to write the scores to")
    args = parser.parse_args()
    refuse_overwriting(args.json, args.hypothesis, *args.reference)
    hypothesis, *references = read_parallel(args.hypothesis, *args.reference)
    results = scores(hypothesis, references, args.lowercase)
    if bool(args.tokenised_reference) != bool(args.tokenised_hypothesis):
        raise ValueError("--tokenised-reference and --tokenised-hypothesis go together")
    if args.tokenised_hypothesis:
        hypothesis, *references = read_parallel(
            args.tokenised_hypothesis, *args.tokenised_reference
        )
        results["tokenised BLEU"] = tokenised_bleu(
            hypothesis, references, args.lowercase
        )
    for name, result in results.items():
        print(f"{name} = {result['score']:.2f}   {result['signature']}")
    if args.json:
        with new_file(args.json) as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    run(main)
