r"""Score a system on a recipe's test set: a row of the results table.

    sbnmt evaluate results/sb.generate --text text --target de [--references 4] \
        [--lowercase | --phonemes] [--detokenise de | --raw 13a] \
        [--records results/sb.jsonl] --output results/sb.json

INPUT is the --results-path of fairseq-generate, its generate-SUBSET.txt or its standard
output, or a .tsv of sbnmt rerank.  --text is a folder as sbnmt prepare writes it.  The
command undoes subwords and writes

    results/sb.tok     the hypotheses as tokens
    results/sb.txt     as text, detokenised where --detokenise names a language
    results/sb.json    tokenised BLEU against test.de; with --detokenise also BLEU and
                       chrF against test.ref.de; with --phonemes word and phoneme
                       error rate; with --records who wins

--raw 13a is for texts that were never tokenised, with subwords of kind sentencepiece:
BLEU, by that tokeniser of sacreBLEU's, and chrF against test.de, which is raw text.
"""

from __future__ import annotations

from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.evaluation import (
    References,
    add_raw,
    l2r_wins,
    read_hypotheses,
    score_row,
)
from sbnmt_plugin.tools.text import refuse_overwriting, write_lines
from sbnmt_plugin.tools.unfinished import write_json


def main() -> None:
    parser = command.parser(__doc__)
    add = parser.add_argument
    add("input", help="output of fairseq-generate or rerank")
    add("--text", required=True, help="folder with test.TARGET")
    add("--target", required=True, help="target language")
    add(
        "--references",
        action=command.AtLeastOne,
        default=1,
        help="number of references: test.TARGET, test.TARGET.2, …",
    )
    add("--lowercase", action="store_true", help="ignore case")
    add("--phonemes", action="store_true", help="a line is a word: error rates, too")
    add("--detokenise", default="", metavar="LANGUAGE", help="language for sacremoses")
    add_raw(parser)
    add("--records", help="file of --sb-records, for the share that L2R wins")
    add("--output", required=True, help="NAME.json; also writes NAME.tok, NAME.txt")
    args = parser.parse_args()
    output = Path(args.output)
    if output.suffix != ".json":
        raise ValueError(f"--output must end in .json, but is {output}")
    if args.lowercase and args.phonemes:
        raise ValueError("--lowercase and --phonemes exclude each other")
    if args.raw and (args.detokenise or args.phonemes):
        raise ValueError("--raw excludes --detokenise and --phonemes, of tokens")
    for ending in ".tok", ".txt", ".json":
        path = str(output.with_suffix(ending))
        refuse_overwriting(path, args.input, args.records)
    references = References(
        text=Path(args.text),
        target=args.target,
        count=args.references,
        lowercase=args.lowercase,
        detokenise=args.detokenise,
        phonemes=args.phonemes,
        raw=args.raw,
    )
    tokens = read_hypotheses(Path(args.input), references)
    scored, plain = score_row(tokens, references)
    if args.records:
        wins = l2r_wins(Path(args.records), len(tokens))
        scored["L2R wins"] = {"score": wins}
    if not args.raw:
        write_lines(output.with_suffix(".tok"), tokens)
    write_lines(output.with_suffix(".txt"), plain)
    write_json(output, scored)  # the last: with it the row is there
    for name, result in scored.items():
        if "score" in result:  # not the sets
            print(f"{name} = {result['score']:.2f}   {result.get('signature', '')}")
