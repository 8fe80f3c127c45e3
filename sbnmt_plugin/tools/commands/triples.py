r"""Build training examples from a bitext and pseudo targets: triples, or pairs.

    sbnmt triples --source text/train.en --target text/train.de \
        --pseudo-l2r pseudo/l2r.tsv --pseudo-r2l pseudo/r2l.tsv \
        --output triples/train --triples two  (or one, three, six; --pairs pl, pl-pr)

With y_g the target, y_pl and y_pr the L2R and R2L teachers' translations (what
sbnmt translate wrote), a sentence gives (paper, section 3.4)

    one:    (y_g, y_pr), for ABD-NMT; wants no y_pl
    two:    (y_pl, y_g), (y_g, y_pr)
    three:  these and (y_g, y_g), which teaches to read across; its inputs want noise
            in training (--sb-partner-noise), or each stream gives the other away
    six:    all ordered pairs of two different ones of y_g, y_pl, y_pr

as (L2R text, R2L text), written to OUTPUT.SRC, OUTPUT.TGT and OUTPUT.r2l in
natural word order.  For a Transformer with the same data,

    pl:     y_g, y_pl
    pl-pr:  y_g, y_pl, y_pr

are written to OUTPUT.SRC and OUTPUT.TGT.  A sentence that a teacher has not translated
gives no example of any kind.  Where both texts of a triple are identical each stream
sees through the other what it has to predict: such triples are counted, and left out
with --drop-identical.
"""

from __future__ import annotations

import argparse
import itertools
import random
from pathlib import Path

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.text import (
    read_lines,
    read_parallel,
    refuse_overwriting,
    refuse_reserved,
    write_lines,
)
from sbnmt_plugin.tools.translations import read_translations

TRIPLES, PAIRS = ("one", "two", "three", "six"), ("pl", "pl-pr")
Example = tuple[str, ...]  # source, L2R text and, in a triple, R2L text


def read_pseudo(path: str, count: int) -> dict[int, str]:
    """Translations by id, as text to train on.

    Raises:
        ValueError: see :func:`read_translations`; a reserved symbol in a text.
    """
    found = read_translations(path, count)
    refuse_reserved(path, read_lines(path))
    return found


def examples_of(
    kind: str, source: str, gold: str, left: str, right: str
) -> list[Example]:
    """The triples, or pairs, of one sentence."""
    targets: dict[str, list[Example]] = {
        "one": [(gold, right)],
        "two": [(left, gold), (gold, right)],
        "three": [(left, gold), (gold, right), (gold, gold)],
        "six": list(itertools.permutations((gold, left, right), 2)),
        "pl": [(gold,), (left,)],
        "pl-pr": [(gold,), (left,), (right,)],
    }
    return [(source, *texts) for texts in targets[kind]]


def identical(example: Example) -> bool:
    """Whether both texts of a triple are the same."""
    return example[1] == example[-1]


def parser() -> argparse.ArgumentParser:
    made = command.parser(__doc__)
    add = made.add_argument
    add("--source", required=True, help="source text, as binarised")
    add("--target", required=True, help="gold target text")
    add("--pseudo-l2r", help="L2R teacher's, TSV; not with --triples one")
    add("--pseudo-r2l", required=True, help="R2L teacher's, TSV")
    add("--output", required=True, help="prefix of the files written")
    kinds = made.add_mutually_exclusive_group()
    kinds.add_argument("--triples", choices=TRIPLES, help="default: two")
    kinds.add_argument("--pairs", choices=PAIRS)
    add("--shuffle", type=int, metavar="SEED", help="shuffle the examples")
    add("--drop-identical", action="store_true", help="leave out identical pairs")
    return made


def checked_suffixes(args: argparse.Namespace) -> tuple[str, ...]:
    """Of the files to write.

    Raises:
        ValueError: options that do not go together, or files that cannot be written.
    """
    if args.pairs and args.drop_identical:
        raise ValueError(
            "--drop-identical is for --triples: pairs have one target each"
        )
    if args.triples == "three" and args.drop_identical:
        raise ValueError(
            "--drop-identical would leave out the third of --triples three, which is "
            "gold text twice: use --triples two"
        )
    if (args.triples == "one") != (args.pseudo_l2r is None):
        raise ValueError(
            "--pseudo-l2r must be given, but for --triples one, which has none of the "
            "L2R teacher's: add it, or leave it out"
        )
    suffixes = (Path(args.source).suffix, Path(args.target).suffix, ".r2l")
    if len(set(suffixes)) < 3 or "" in suffixes:
        raise ValueError(
            f"--source {args.source} and --target {args.target} must end in two "
            "different suffixes, and not in .r2l, which name the files written"
        )
    used = suffixes[:2] if args.pairs else suffixes
    for suffix in used:
        refuse_overwriting(f"{args.output}{suffix}", args.source, args.target)
    return used


def main() -> None:
    args = parser().parse_args()
    suffixes = checked_suffixes(args)
    kind = args.pairs or args.triples or "two"
    source, gold = read_parallel(args.source, args.target)
    refuse_reserved(args.source, source)
    refuse_reserved(args.target, gold)
    right = read_pseudo(args.pseudo_r2l, len(source))
    left = read_pseudo(args.pseudo_l2r, len(source)) if args.pseudo_l2r else right

    usable = [i for i in range(len(source)) if i in left and i in right]
    examples: list[Example] = []
    for i in usable:
        examples += examples_of(kind, source[i], gold[i], left[i], right[i])
    total, same = len(examples), sum(map(identical, examples))
    if args.drop_identical:
        examples = [example for example in examples if not identical(example)]
    if not examples:
        raise ValueError(
            "nothing is left: the teachers translated none of the sentences, or all "
            "triples have identical texts (--drop-identical)"
        )
    if args.shuffle is not None:
        random.Random(args.shuffle).shuffle(examples)

    for place, suffix in enumerate(suffixes):
        write_lines(f"{args.output}{suffix}", (example[place] for example in examples))
    print(f"{len(source)} sentences, {len(source) - len(usable)} not translated")
    if args.pairs:
        print(f"{total} pairs written; {kind}")
    else:
        print(
            f"{len(examples)} triples written; {same} of {total} "
            f"({100 * same / total:.1f} %) with identical texts, "
            + ("left out" if args.drop_identical else "kept")
        )
    for example in random.Random(0).sample(examples, min(5, len(examples))):
        for label, text in zip(("source", "   l2r", "   r2l"), example):
            print(f"  {label} {text}")
