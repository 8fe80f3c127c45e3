r"""Score hypotheses by sacreBLEU's BLEU and chrF, and by the paper's tokenised BLEU.

    sbnmt score --reference test.de [--reference test2.de] --hypothesis out.txt \
        [--tokenised-reference tok.de --tokenised-hypothesis out.tok] [--lowercase] \
        [--tokenize zh] [--json scores.json]

--hypothesis and --reference are detokenised text.  Tokenised BLEU, by which the paper
reports, needs text that is tokenised already.  With --phonemes a line is a word and
its tokens are phonemes.  The scores are then word and phoneme error rate, where each of
the references is a right answer.
"""

from __future__ import annotations

import sys

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.phonemes import error_rates
from sbnmt_plugin.tools.scoring import TOKENISERS, scores, tokenised_bleu, tokeniser_for
from sbnmt_plugin.tools.text import read_parallel, refuse_overwriting
from sbnmt_plugin.tools.unfinished import write_json


def main() -> None:
    parser = command.parser(__doc__)
    add = parser.add_argument
    add("--reference", action="append", required=True)
    add("--hypothesis", required=True)
    add("--tokenised-reference", action="append", default=[])
    add("--tokenised-hypothesis")
    add("--lowercase", action="store_true", help="ignore case")
    add("--tokenize", choices=TOKENISERS, help="for BLEU; default 13a")
    add("--phonemes", action="store_true", help="word and phoneme error rate")
    add("--json", help="file to write the scores to")
    args = parser.parse_args()
    tokenised = [args.tokenised_hypothesis, *args.tokenised_reference]
    refuse_overwriting(args.json, args.hypothesis, *args.reference, *tokenised)
    hypothesis, *references = read_parallel(args.hypothesis, *args.reference)
    if args.phonemes and (args.lowercase or args.tokenize):
        raise ValueError("--phonemes excludes --lowercase and --tokenize")
    if bool(args.tokenised_reference) != bool(args.tokenised_hypothesis):
        raise ValueError("--tokenised-reference and --tokenised-hypothesis go together")
    right = args.tokenize or tokeniser_for(references)
    tokenize = args.tokenize or "13a"
    if args.phonemes:
        results = error_rates(hypothesis, references)
    else:
        results = scores(hypothesis, references, args.lowercase, tokenize)
    if args.tokenised_hypothesis:
        hypothesis, *references = read_parallel(*tokenised)
        results["tokenised BLEU"] = tokenised_bleu(
            hypothesis, references, args.lowercase
        )
    if args.json:
        write_json(args.json, results)
    for name, result in results.items():
        print(f"{name} = {result['score']:.2f}   {result['signature']}")
    if right != tokenize and not args.phonemes:
        said = "most letters of the references are of a script without blanks: give"
        print(f"{said} --tokenize {right}", file=sys.stderr)
