r"""Build training examples from a bitext and pseudo targets: triples, or pairs.

    sbnmt triples --source text/train.en --target text/train.de \
        --pseudo-l2r pseudo/l2r.tsv --pseudo-r2l pseudo/r2l.tsv \
        --output triples/train --triples two
    (or --triples one, three, six; --pairs pl, pr, pl-pr, kd)

With y_g the target, y_pl and y_pr the L2R and R2L teachers' translations (what
sbnmt pseudo wrote), a sentence gives (paper, section 3.4)

    one:    (y_g, y_pr), for ABD-NMT; wants no y_pl
    two:    (y_pl, y_g), (y_g, y_pr)
    three:  these and (y_g, y_g), which teaches to read across; its inputs want noise
            in training (--sb-partner-noise), or each stream shows the other its labels
    six:    all ordered pairs of two different ones of y_g, y_pl, y_pr

as (L2R text, R2L text), written to OUTPUT.SRC, OUTPUT.TGT and OUTPUT.r2l in
natural word order.  For a Transformer with the same data,

    pl:     y_g, y_pl; needs no y_pr, but if it is given has the triples' sentences
    pr:     y_g, y_pr, for an R2L one; needs no y_pl, in the same way
    pl-pr:  y_g, y_pl, y_pr

are written to OUTPUT.SRC and OUTPUT.TGT, and for a model that writes all words at once

    kd:     y_pl alone; wants no y_pr

A sentence that a teacher has not translated gives no example.  Where both texts of a
triple are identical, each stream sees in the other the words that it has to predict.
Such triples are counted.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from sbnmt_plugin.lines import each_line
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.jobs import check_translation
from sbnmt_plugin.tools.recipes.systems.system import PAIRS, TRIPLES, teachers_of
from sbnmt_plugin.tools.text import check_parallel, refuse_overwriting
from sbnmt_plugin.tools.translations import texts_to_learn
from sbnmt_plugin.tools.unfinished import new_file

KINDS = TRIPLES | PAIRS
Example = tuple[str, ...]  # source, L2R text and, in a triple, R2L text


def examples_of(
    kind: str, source: str, gold: str, left: str, right: str
) -> list[Example]:
    """Return the triples, or pairs, of one sentence."""
    texts = {"g": gold, "l": left, "r": right}
    return [(source, *(texts[x] for x in example)) for example in KINDS[kind]]


def each_example(
    kind: str, source: str, gold: str, pseudo: list[str], count: int
) -> Iterator[Example]:
    """Yield the examples of all sentences that the teachers have translated.

    Args:
        kind: a name of :data:`TRIPLES` or :data:`PAIRS`.
        source, gold: files of the bitext, of ``count`` lines.
        pseudo: the teachers' translations, L2R first, or the only one.
    """
    columns = [texts_to_learn(path, count) for path in pseudo]
    rows = zip(each_line(source), each_line(gold), *columns, strict=True)
    for line, target, *texts in rows:
        if all(texts):
            yield from examples_of(kind, line, target, texts[0], texts[-1])


def write(examples: Iterable[Example], paths: list[str]) -> tuple[int, int]:
    """Write examples, a file for each text; when all are written they appear in turn.

    Returns:
        The number of all, and of those whose last two texts are identical.

    Raises:
        ValueError: there is none.
    """
    total = same = 0
    with contextlib.ExitStack() as stack:
        # the stack closes the last that is opened first
        opened = [stack.enter_context(new_file(path)) for path in reversed(paths)]
        files = opened[::-1]
        for example in examples:
            total += 1
            same += example[-2] == example[-1]
            for file, text in zip(files, example):
                file.write(f"{text}\n")
        if not total:
            raise ValueError(
                "nothing is left: the teachers translated none of the sentences"
            )
    return total, same


def checked_suffixes(args: argparse.Namespace) -> tuple[str, ...]:
    """Check the options, and return the suffixes of the files to write.

    Raises:
        ValueError: options that do not go together, or files that cannot be written.
    """
    kind = args.pairs or args.triples
    for direction, without in (
        ("l2r", "--triples one and --pairs pr"),
        ("r2l", "--pairs kd and pl"),
    ):
        given = getattr(args, f"pseudo_{direction}") is not None
        needed = direction in teachers_of(kind)
        if needed and not given:
            raise ValueError(f"--pseudo-{direction} must be given, but for {without}")
        if given and not needed and kind not in ("pl", "pr"):
            option = "--pairs" if args.pairs else "--triples"
            raise ValueError(
                f"--pseudo-{direction} is not for {option} {kind}, which has no text "
                f"of the {direction.upper()} teacher: leave it out"
            )
        if given:
            path = getattr(args, f"pseudo_{direction}")
            check_translation(f"--pseudo-{direction}", path, args.source, direction)
    suffixes = (Path(args.source).suffix, Path(args.target).suffix, ".r2l")
    if len(set(suffixes)) < 3 or "" in suffixes:
        raise ValueError(
            f"--source {args.source} and --target {args.target} must end in two "
            "different suffixes, and not in .r2l, which name the files written"
        )
    used = suffixes[:2] if args.pairs else suffixes
    if args.pairs and (left := Path(f"{args.output}.r2l")).exists():
        raise ValueError(
            f"{left} must not stand beside pairs, or sbnmt binarise would take it for "
            "their R2L text: remove it, or choose another --output"
        )
    for suffix in used:
        read = args.source, args.target, args.pseudo_l2r, args.pseudo_r2l
        refuse_overwriting(f"{args.output}{suffix}", *read)
    return used


def main() -> None:
    parser = command.parser(__doc__)
    add = parser.add_argument
    add("--source", required=True, help="source text, as binarised")
    add("--target", required=True, help="gold target text")
    add("--pseudo-l2r", help="L2R teacher's, TSV; not with --triples one")
    add("--pseudo-r2l", help="R2L teacher's, TSV; not with --pairs kd")
    add("--output", required=True, help="prefix of the files written")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--triples", choices=TRIPLES, default="two", help="(two)")
    kinds.add_argument("--pairs", choices=PAIRS)
    args = parser.parse_args()
    suffixes = checked_suffixes(args)
    kind = args.pairs or args.triples
    count = check_parallel(args.source, args.target)
    pseudo = [path for path in (args.pseudo_l2r, args.pseudo_r2l) if path]
    examples = each_example(kind, args.source, args.target, pseudo, count)
    total, same = write(examples, [f"{args.output}{suffix}" for suffix in suffixes])
    print(f"{count} sentences, {count - total // len(KINDS[kind])} not translated")
    if args.pairs:
        print(f"{total} pairs written; {kind}")
    else:
        share = f"{same} of {total} ({100 * same / total:.1f} %)"
        print(f"{total} triples written; {share} with identical texts")
