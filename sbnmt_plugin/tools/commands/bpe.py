"""Learn and apply byte-pair encoding.

    sbnmt bpe learn --merges 8000 --codes codes TEXT [TEXT ...]
    sbnmt bpe apply --codes codes [--vocabulary vocab --threshold 1] INPUT OUTPUT

Several texts give joint codes.  fastBPE applies them if it is installed (pip install
--no-build-isolation fastBPE, with cython), subword-nmt otherwise, with the same result.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path
from typing import Any

from subword_nmt.apply_bpe import BPE, read_vocabulary
from subword_nmt.get_vocab import get_vocab
from subword_nmt.learn_bpe import learn_bpe

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.text import (
    each_line,
    read_lines,
    refuse_overwriting,
    write_lines,
)
from sbnmt_plugin.tools.unfinished import new_file


def learn(texts: list[str], codes: str, merges: int) -> None:
    """Learn joint codes from all texts."""
    if not any(line.strip() for text in texts for line in each_line(text)):
        raise ValueError(f"{', '.join(texts)} must hold some text, but have none")
    with new_file(codes) as output, contextlib.redirect_stderr(io.StringIO()):
        lines = (line for text in texts for line in each_line(text))
        learn_bpe(lines, output, merges)


def apply(
    codes: str, source: str, target: str, vocabulary: str | None, least: int
) -> None:
    """Split a text into subwords."""
    known = None
    if vocabulary is not None:
        with open(vocabulary, encoding="utf-8") as file:
            known = read_vocabulary(file, least)
    fast = None if known is not None else fast_bpe(codes)
    if fast is not None:
        write_lines(target, fast.apply(read_lines(source)))
        return
    lines = progress(each_line(source), leave=False)
    with open(codes, encoding="utf-8") as file:
        bpe = BPE(file, vocab=known)
    write_lines(target, (bpe.process_line(line) for line in lines))


def fast_bpe(codes: str) -> Any:
    """Return fastBPE's encoder, or None where it is missing.

    Its codes have no header line, and a third column of counts that it ignores.
    """
    try:
        import fastBPE
    except ImportError:
        return None
    pairs = [line for line in read_lines(codes) if not line.startswith("#version")]
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
            get_vocab(each_line(args.input), output)
