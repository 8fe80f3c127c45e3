"""Learn and apply byte-pair encoding.

    sbnmt bpe learn --merges 8000 --codes codes TEXT [TEXT ...]
    sbnmt bpe apply --codes codes [--vocabulary vocab --threshold 1] INPUT OUTPUT

Several texts give joint codes.  Words are what stands between white space of any kind,
as for fairseq; one that ends in @@ is refused, for joined subwords would lose it.  -
is standard input.  fastBPE applies codes if it is installed (pip install
--no-build-isolation fastBPE, with cython), subword-nmt otherwise, with the same result.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path

from subword_nmt.get_vocab import get_vocab
from subword_nmt.learn_bpe import learn_bpe

from sbnmt_plugin.lines import each_entry, each_line
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.subwords import single_blanks, subwords
from sbnmt_plugin.tools.text import refuse_overwriting, write_lines
from sbnmt_plugin.tools.unfinished import new_file

COUNTED = re.compile(r"([^ ]+) ([0-9]+)")


def each_text(path: str) -> Iterator[str]:
    """Yield the lines of a text, with single blanks between words.

    Raises:
        FileNotFoundError, ValueError: see :func:`each_line` and :func:`each_of`.
    """
    return each_of(single_blanks, path, each_line(path))


def each_of(
    change: Callable[[str], str], path: str, lines: Iterable[str]
) -> Iterator[str]:
    """Yield the lines of a text, each changed.

    Raises:
        ValueError: one cannot be changed; with file and line.
    """
    for number, line in enumerate(lines, start=1):
        try:
            yield change(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}, {error}") from error


def read_vocabulary(path: str, least: int) -> set[str]:
    """Return the subwords of a vocabulary that have been counted often enough.

    Raises:
        ValueError: a line is no subword with its count, or there is none.
    """
    remedy = "give the file that sbnmt bpe vocabulary wrote"
    entries = each_entry(path, COUNTED, "a subword and its count", remedy)
    return {entry[1] for entry in entries if int(entry[2]) >= least}


def learn(texts: list[str], codes: str, merges: int) -> None:
    """Learn joint codes from all texts; say where they are fewer than was asked for.

    Raises:
        ValueError: no two letters stand together twice.
    """
    lines = [chain.from_iterable(map(each_text, texts)) for _ in range(2)]
    learned = io.StringIO()
    if any(len(word) > 1 for line in lines[0] for word in line.split()):
        with contextlib.redirect_stderr(io.StringIO()):  # more is said below
            learn_bpe(lines[1], learned, merges)
    found = learned.getvalue().count("\n") - 1
    if found < 1:
        raise ValueError(
            f"{', '.join(texts)} must have two letters that stand together twice, but "
            "have none: take more text"
        )
    with new_file(codes) as output:
        output.write(learned.getvalue())
    if found < merges:
        print(
            f"{codes} has {found} merges instead of {merges}: no other two subwords "
            "stand together twice",
            file=sys.stderr,
        )


def apply(
    codes: str, source: str, target: str, vocabulary: str | None, least: int
) -> None:
    """Split a text into subwords.

    Raises:
        ValueError: codes or vocabulary are files of another kind, or a line cannot be
            split without loss.
    """
    known = None if vocabulary is None else read_vocabulary(vocabulary, least)
    split = subwords("bpe", Path(codes), known).apply
    lines = progress(each_line(source), leave=False)
    write_lines(target, each_of(split, source, lines))


def main() -> None:
    parser = command.parser(__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    learner = commands.add_parser("learn", help="learn codes")
    learner.add_argument("--merges", action=command.at_least(1), required=True)
    learner.add_argument("--codes", required=True, help="file to write")
    learner.add_argument("texts", nargs="+")
    applier = commands.add_parser("apply", help="apply codes")
    applier.add_argument("--codes", required=True, help="file that learn wrote")
    applier.add_argument("--vocabulary", help="vocabulary that subwords are limited to")
    applier.add_argument("--threshold", type=int, help="least count in it (1)")
    applier.add_argument("input")
    applier.add_argument("output")
    counter = commands.add_parser("vocabulary", help="count the subwords of a text")
    counter.add_argument("input")
    counter.add_argument("output")
    args = parser.parse_args()
    if args.command == "learn":
        refuse_overwriting(args.codes, *args.texts)
        learn(args.texts, args.codes, args.merges)
    elif args.command == "apply":
        refuse_overwriting(args.output, args.input, args.codes, args.vocabulary)
        if args.threshold is not None and args.vocabulary is None:
            raise ValueError(
                f"--threshold {args.threshold} counts in a vocabulary: give "
                "--vocabulary, or leave it out"
            )
        least = 1 if args.threshold is None else args.threshold
        apply(args.codes, args.input, args.output, args.vocabulary, least)
    else:
        refuse_overwriting(args.output, args.input)
        with new_file(args.output) as output:
            get_vocab((" ".join(x.split()) for x in each_line(args.input)), output)
