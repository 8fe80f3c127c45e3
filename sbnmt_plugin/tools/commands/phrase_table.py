"""A phrase table of a bitext, in the tokens that a model is trained on.

    sbnmt phrase-table --source bpe/train.en --target bpe/train.de --output table \\
        [--held-out-source bpe/valid.en --held-out-target bpe/valid.de]

Words are linked by eflomal in both directions and joined by grow-diag-final-and;
phrase pairs are those that no link leaves; of each source phrase the most frequent
target phrase stays.  --alignments takes the links of any other aligner: a line a
sentence, tokens counted from 0, 0-0 1-2.  eflomal takes no seed, so another run gives
another table; --keep-alignments writes its links, from which the same table is made
again.

Tokenised BLEU of the table's own text is printed for the first 1,000 training lines
and for the held-out text: the larger their gap, the more the table remembers its own
sentences, and --least-count is the handle.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from itertools import islice
from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.phrase_extraction import (
    Sentence,
    Span,
    consistent_spans,
    counted,
    linked_sentences,
    lookup_bleu,
    single_links,
)
from sbnmt_plugin.tools.text import (
    check_parallel,
    each_line,
    each_parallel,
    refuse_overwriting,
    write_lines,
)
from sbnmt_plugin.tools.word_links import (
    found_by_eflomal,
    grow_diag_final_and,
    links_line,
)
from sbnmt_plugin.training.phrase_table import PhraseTable

MEASURED = 1000  # training lines
LONGEST, LEAST_COUNT = 7, 2


def write_links(source: str, target: str, path: str) -> None:
    """Both directions' links, joined, of every pair of lines."""
    with command.extra("phrases"):
        links = (
            links_line(grow_diag_final_and(forward, reverse))
            for forward, reverse in found_by_eflomal(
                each_line(source), each_line(target)
            )
        )
        write_lines(path, links)


def write_table(args: argparse.Namespace, links: str) -> None:
    """Read the bitext once, count, write.

    Raises:
        ValueError: there would be no entry; see also
            :func:`phrase_extraction.linked_sentences`.
    """

    def spans(sentence: Sentence) -> set[Span]:
        source, target, linked = sentence
        if args.words:
            return single_links(linked)
        return consistent_spans(len(source), len(target), linked, args.longest)

    counts = counted(linked_sentences(args.source, args.target, links), spans)
    lines = list(counts.table_lines(args.least_count))
    if not lines:
        raise ValueError(
            f"{args.alignments or args.source} must give at least one phrase, but "
            "gives none: take more text, other links, or a lower --least-count"
        )
    write_lines(args.output, lines)


def print_table(table: PhraseTable[str, str]) -> None:
    """How many entries there are, by the length of their source phrase."""
    lengths = sorted(Counter(map(len, table.entries)).items())
    counts = ", ".join(f"{length}: {count}" for length, count in lengths)
    print(f"{len(table)} entries; by source tokens {counts}")


def print_measure(table: PhraseTable[str, str], args: argparse.Namespace) -> None:
    """BLEU of the table's own text, and how much less it is where it is new."""
    pairs = each_parallel(args.source, args.target)
    seen, signature = lookup_bleu(table, islice(pairs, MEASURED))
    print(f"lookup, first {MEASURED} training lines: BLEU = {seen:.2f}   {signature}")
    if args.held_out_source:
        new, signature = lookup_bleu(table, each_parallel(*held_out(args)))
        print(f"lookup, held-out text: BLEU = {new:.2f}   {signature}")
        print(f"gap = {seen - new:.2f}")


def held_out(args: argparse.Namespace) -> tuple[str, str]:
    """The held-out text's files."""
    return args.held_out_source, args.held_out_target


def parsed() -> argparse.Namespace:
    """The command line, checked before the long work begins.

    Raises:
        FileNotFoundError, ValueError: what is asked for cannot be done.
    """
    parser = command.parser(__doc__)
    parser.add_argument("--source", required=True, help="training text, as binarised")
    parser.add_argument("--target", required=True, help="its translation")
    parser.add_argument("--output", required=True, help="the table, a new file")
    parser.add_argument("--alignments", help="links of another aligner, not eflomal's")
    parser.add_argument("--keep-alignments", help="file to write eflomal's links to")
    parser.add_argument(
        "--longest", type=int, help=f"tokens of a phrase (default {LONGEST})"
    )
    parser.add_argument(
        "--least-count",
        type=int,
        help="how often a source phrase of several tokens must have been seen with its "
        f"target phrase (default {LEAST_COUNT})",
    )
    parser.add_argument("--words", action="store_true", help="only 1 : 1 links")
    parser.add_argument("--held-out-source", help="a text to measure the table on")
    parser.add_argument("--held-out-target", help="its translation")
    args = parser.parse_args()
    for name, default in ("longest", LONGEST), ("least_count", LEAST_COUNT):
        flag, value = "--" + name.replace("_", "-"), getattr(args, name)
        if value is None:
            setattr(args, name, default)
        elif args.words:
            raise ValueError(
                f"{flag} is of phrases of several tokens, and --words takes single "
                "tokens alone: leave one out"
            )
        elif value < 1:
            raise ValueError(f"{flag} must be ≥ 1, but is {value} instead")
    if args.alignments and args.keep_alignments:
        raise ValueError(
            "--keep-alignments must not stand beside --alignments, whose links are "
            "kept already: leave one out"
        )
    if bool(args.held_out_source) != bool(args.held_out_target):
        raise ValueError("--held-out-source and --held-out-target go together")
    texts = [(args.source, args.target)]
    if args.held_out_source:
        texts.append(held_out(args))
    for text in texts:
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
            write_links(args.source, args.target, links)
        write_table(args, links)
    table = PhraseTable.load(args.output)
    print_table(table)
    print_measure(table, args)
