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

from sacrebleu.metrics import BLEU, CHRF
from texts import new_file, read_parallel, refuse_overwriting, run


def score(metric: BLEU | CHRF, hypothesis: list[str], references: list[list[str]]):
    """Value and signature of a metric."""
    value = metric.corpus_score(hypothesis, references).score
    return {"score": round(value, 2), "signature": str(metric.get_signature())}


def scores(
    hypothesis: list[str], references: list[list[str]], lowercase: bool = False
) -> dict[str, dict[str, object]]:
    """sacreBLEU and chrF of detokenised text."""
    return {
        "BLEU": score(BLEU(lowercase=lowercase), hypothesis, references),
        "chrF": score(CHRF(lowercase=lowercase), hypothesis, references),
    }


def tokenised_bleu(
    hypothesis: list[str], references: list[list[str]], lowercase: bool = False
) -> dict[str, object]:
    """BLEU as in the paper, on tokens separated by blanks."""
    metric = BLEU(tokenize="none", force=True, lowercase=lowercase)
    return score(metric, hypothesis, references)


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
