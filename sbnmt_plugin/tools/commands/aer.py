r"""Word alignment error rate of a model's attention to the source of a reference.

    sbnmt aer data --path ba/model.pt --sb-direction l2r --input bpe/test.src \
        --reference bpe/test.tgt --gold test.links [--output FILE] [--json FILE] \
        [options of fairseq-generate]

The model is made to write the reference.  Every target word is linked to the source
word that has most of its attention; subwords (a@@ b) are words again by then.  --gold
has a line a sentence of links between words, counted from 0: 0-0 is a sure one, 1?2 a
possible one.  Any model works whose decoder gives attention to the source; in a model
that writes both directions it is the L2R half's.
"""

from __future__ import annotations

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.text import read_parallel, refuse_overwriting, write_lines
from sbnmt_plugin.tools.translator import Translator
from sbnmt_plugin.tools.unfinished import write_json
from sbnmt_plugin.tools.word_alignment import (
    alignment_error_rate,
    forced_attention,
    links_of,
    parse_gold,
    words_of,
)
from sbnmt_plugin.tools.word_links import Links, check_places, links_line


def read_gold(
    path: str, lines: list[str], sources: list[list[int]], targets: list[list[int]]
) -> list[tuple[Links, Links]]:
    """Read the sure and possible links of every sentence.

    Raises:
        ValueError: a word is no link, or beyond the sentence; with file and line.
    """
    gold = []
    for number, (line, *words) in enumerate(zip(lines, sources, targets), start=1):
        try:
            gold.append(parse_gold(line))
            check_places(gold[-1][1], *(side[-1] + 1 if side else 0 for side in words))
        except ValueError as error:
            raise ValueError(f"{path}, line {number}, {error}") from error
    return gold


def main() -> None:
    parser = command.parser(__doc__, allow_abbrev=False)
    parser.add_argument("--input", required=True, help="source text, as binarised")
    parser.add_argument("--reference", required=True, help="its target, as binarised")
    parser.add_argument("--gold", required=True, help="known links")
    parser.add_argument("--output", help="file to write the links found to")
    parser.add_argument("--json", help="file to write the rate to")
    args, others = parser.parse_known_args()
    paths = args.input, args.reference, args.gold
    for output in args.output, args.json:
        refuse_overwriting(output, *paths)
    inputs, targets, lines = read_parallel(*paths)
    sides = [[words_of(line) for line in text] for text in (inputs, targets)]
    gold = read_gold(args.gold, lines, *sides)
    translator = Translator(others)
    attention = forced_attention(translator, inputs, targets)
    found = [links_of(*each) for each in zip(attention, *sides)]
    rate = alignment_error_rate(found, gold)
    count = sum(map(len, found))
    if args.output:
        write_lines(args.output, map(links_line, found))
    if args.json:
        write_json(args.json, {"AER": {"score": rate}, "links": count})
    print(f"AER = {rate:.2f}   {count} links, {len(inputs)} sentences")
