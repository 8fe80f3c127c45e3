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
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from subword_nmt.apply_bpe import BPE
from subword_nmt.get_vocab import get_vocab
from subword_nmt.learn_bpe import learn_bpe

from sbnmt_plugin.lines import BYTE_ORDER_MARK, each_entry, each_line
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.text import refuse_overwriting, write_lines
from sbnmt_plugin.tools.unfinished import new_file

MARK = "@@"
VERSION = re.compile(r"#version: 0\.[12]")
PAIR = re.compile(r"([^ ]+) ([^ ]+)")
COUNTED = re.compile(r"([^ ]+) ([0-9]+)")


def each_text(path: str) -> Iterator[str]:
    """Yield the lines of a text, with single blanks between words.

    Raises:
        FileNotFoundError, ValueError: see :func:`each_line` and :func:`single_blanks`.
    """
    lines = enumerate(each_line(path), start=1)
    return (single_blanks(path, number, line) for number, line in lines)


def single_blanks(path: str, number: int, line: str) -> str:
    """Write single blanks between the words of a line, and none at its ends.

    Byte order marks within a text are left out: a file may not begin with one.

    Raises:
        ValueError: a word ends in the mark of subwords; with file and line.
    """
    words = line.replace(BYTE_ORDER_MARK, "").split()
    if MARK in line and any(word.endswith(MARK) for word in words):
        raise ValueError(
            f"{path}, line {number}, must have no word that ends in {MARK}, which "
            "marks subwords: write it in another way (sbnmt tokenise cuts it in two), "
            "or give the text before sbnmt bpe apply"
        )
    return " ".join(words)


def read_codes(path: str) -> list[str]:
    """Return the lines of codes.

    Raises:
        ValueError: a line is no pair of subwords that are letters or that earlier lines
            have made, as in every other kind of file; or there is none.
    """
    remedy = "give the file that sbnmt bpe learn wrote"
    lines, made = [], set()
    for number, pair in enumerate(
        each_entry(path, PAIR, "two subwords, as in codes", remedy), start=1
    ):
        lines.append(pair[0])
        if number == 1 and VERSION.fullmatch(pair[0]):
            continue
        for subword in pair.groups():
            if len(subword.removesuffix("</w>")) > 1 and subword not in made:
                raise ValueError(
                    f"{path}, line {number}, must join letters or what earlier lines "
                    f"have joined, as codes do, but has {subword!r}: {remedy}"
                )
        made.add(pair[1] + pair[2])
    if not made:
        raise ValueError(f"{path} must join subwords, but has none: {remedy}")
    return lines


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
        ValueError: codes or vocabulary are files of another kind.
    """
    lines = each_text(source)
    known = None if vocabulary is None else read_vocabulary(vocabulary, least)
    pairs = read_codes(codes)
    fast = None if known is not None else fast_bpe(pairs)
    if fast is not None:
        write_lines(target, fast.apply(list(lines)))
        return
    bpe = BPE(io.StringIO("\n".join(pairs)), vocab=known)
    write_lines(target, map(bpe.process_line, progress(lines, leave=False)))


def fast_bpe(codes: list[str]) -> Any:
    """Return fastBPE's encoder, or None where it is missing.

    Its codes have no header line, and a third column of counts that it ignores.
    """
    try:
        import fastBPE
    except ImportError:
        return None
    pairs = codes[1:] if VERSION.fullmatch(codes[0]) else codes
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "codes")
        write_lines(plain, (f"{pair} 1" for pair in pairs))
        return fastBPE.fastBPE(str(plain), "")


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
