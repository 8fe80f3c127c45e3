"""Make a phrase table of a bitext, in the tokens that a model is trained on.

    sbnmt phrase-table --source bpe/train.en --target bpe/train.de --output table

eflomal links words in both directions, and grow-diag-final-and joins these links.  No
link leaves a phrase pair.  For each source phrase the most frequent target phrase
stays.  --alignments takes the links of any other aligner: a line a sentence, tokens
counted from 0, 0-0 1-2.  eflomal takes no seed, so another run gives another table.
--keep-alignments writes its links, which give the same table again.

The phrases of a training sentence are in the table, which remembers it the better the
lower --least-count is.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from sbnmt_plugin.lines import each_line
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.phrase_extraction import (
    PhraseCounts,
    consistent_spans,
    linked_sentences,
)
from sbnmt_plugin.tools.text import check_parallel, refuse_overwriting, write_lines
from sbnmt_plugin.tools.word_links import (
    found_by_eflomal,
    grow_diag_final_and,
    links_line,
)
from sbnmt_plugin.training.phrase_table import PhraseTable

LONGEST = 7  # tokens of a phrase
LEAST_COUNT = 2


def write_table(args: argparse.Namespace, links: str) -> None:
    """Read the bitext once, count, write.

    Raises:
        ValueError: there would be no entry; see also
            :func:`phrase_extraction.linked_sentences`.
    """
    counts = PhraseCounts()
    longest = 1 if args.words else LONGEST
    for sentence in linked_sentences(args.source, args.target, links):
        source, target, linked = sentence
        spans = consistent_spans(len(source), len(target), linked, longest)
        counts.add(sentence, spans)
    lines = list(counts.table_lines(args.least_count or LEAST_COUNT))
    if not lines:
        raise ValueError(
            f"{args.alignments or args.source} must give at least one phrase, but "
            "gives none: take more text, other links, or a lower --least-count"
        )
    write_lines(args.output, lines)


def parsed() -> argparse.Namespace:
    """Read and check the command line, before the long work begins.

    Raises:
        FileNotFoundError, ValueError: an option that cannot be followed.
    """
    parser = command.parser(__doc__)
    add = parser.add_argument
    add("--source", required=True, help="training text, as binarised")
    add("--target", required=True, help="its translation")
    add("--output", required=True, help="file of the table")
    add("--alignments", help="links of another aligner, not eflomal's")
    add("--keep-alignments", help="file to write eflomal's links to")
    add(
        "--least-count",
        action=command.AtLeastOne,
        help="least count of a source phrase of several tokens with its target phrase "
        f"(default {LEAST_COUNT})",
    )
    add("--words", action="store_true", help="only 1 : 1 links")
    args = parser.parse_args()
    if args.words and args.least_count:
        raise ValueError(
            "--least-count is for phrases of several tokens, and --words takes single "
            "tokens alone: leave one out"
        )
    if args.alignments and args.keep_alignments:
        raise ValueError(
            "--keep-alignments must not stand beside --alignments, whose links are "
            "kept already: leave one out"
        )
    text = args.source, args.target
    check_parallel(*text)
    for output in args.output, args.keep_alignments:
        refuse_overwriting(output, args.alignments, *text)
    refuse_overwriting(args.output, args.keep_alignments)
    return args


def main() -> None:
    args = parsed()
    with tempfile.TemporaryDirectory() as folder:
        links = args.alignments
        if not links:
            links = args.keep_alignments or str(Path(folder, "links"))
            texts = map(each_line, (args.source, args.target))
            with command.extra("phrases"):
                found = (grow_diag_final_and(*x) for x in found_by_eflomal(*texts))
                write_lines(links, map(links_line, found))
        write_table(args, links)
    print(f"{len(PhraseTable.load(args.output).entries)} entries")
