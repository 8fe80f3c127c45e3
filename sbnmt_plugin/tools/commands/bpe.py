"""Learn, apply and undo subwords: byte-pair encoding, or sentencepiece's pieces.

    sbnmt bpe learn --merges 8000 --codes codes TEXT [TEXT ...]
    sbnmt bpe apply --codes codes INPUT OUTPUT
    sbnmt bpe undo --codes codes INPUT OUTPUT

    sbnmt bpe learn --kind sentencepiece --merges 8000 --codes codes TEXT [TEXT ...]

Several texts give joint codes.  Words are what stands between white space of any kind,
as for fairseq; one that ends in @@ is refused, for joined subwords would lose it.  -
is standard input.  If fastBPE is installed (scripts/install_fastbpe.sh), it applies the
codes, otherwise subword-nmt, with the same result.

Pieces of kind sentencepiece are those of a unigram model, --merges of them.  They split
raw text, not tokens, and letters that the model has not learned into bytes, so that a
text comes back as it was.  learn also writes codes.dict, for sbnmt binarise --srcdict:
a dictionary of all pieces, as a counted one would not be.  They need the extra
sentencepiece.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from subword_nmt.learn_bpe import learn_bpe

from sbnmt_plugin.lines import each_line
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.subwords import NOT_LEARNED, Pieces, subwords, unmarked
from sbnmt_plugin.tools.text import refuse_overwriting, write_lines
from sbnmt_plugin.tools.unfinished import new_file

KINDS = ("bpe", "sentencepiece")
# options of sentencepiece, by which a text comes back as it was
UNIGRAM: dict[str, Any] = {
    "model_type": "unigram",
    "byte_fallback": True,
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "hard_vocab_limit": False,  # a small text gives fewer pieces
    "input_sentence_size": 4_000_000,  # of more lines, so many are drawn
    "max_sentence_length": 2**20,  # bytes; longer ones are left out
    **{f"{symbol}_id": -1 for symbol in ("bos", "eos", "pad")},  # fairseq has its own
    "minloglevel": 2,
}


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


def learn(texts: list[str], codes: str, merges: int) -> None:
    """Learn joint codes from all texts; say where they are fewer than was asked for.

    Raises:
        ValueError: no two letters stand together twice.
    """

    def lines() -> Iterator[str]:
        for path in texts:
            yield from each_of(unmarked, path, each_line(path))

    learned = io.StringIO()
    if any(len(word) > 1 for line in lines() for word in line.split()):
        with contextlib.redirect_stderr(io.StringIO()):  # more is said below
            learn_bpe(lines(), learned, merges)
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


def learn_pieces(texts: list[str], codes: str, count: int) -> None:
    """Learn joint pieces from all texts; say where they are fewer than was asked for.

    The codes get a dictionary beside them.

    Raises:
        ValueError: there is no text, or its letters alone are more pieces; or
            sentencepiece is missing.
    """
    with command.extra("sentencepiece"):
        from sentencepiece import SentencePieceTrainer
    failed: list[Exception] = []  # sentencepiece makes others of them

    def lines() -> Iterator[str]:
        try:
            for line in chain.from_iterable(map(each_line, texts)):
                if words := NOT_LEARNED.sub(" ", line).strip():
                    yield words
        except Exception as error:
            failed.append(error)
            raise

    learned = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=lines(), model_writer=learned, vocab_size=count, **UNIGRAM
        )
    except RuntimeError as error:
        least = re.search(r"required_chars. \d+ vs (\d+)", str(error))
        rule = f"{', '.join(texts)} must have words, but have none: take more text"
        if least:
            rule = f"--merges must be ≥ {least[1]}, for all bytes and the letters of "
            rule += f"{', '.join(texts)}, but is {count} instead"
        raise (failed or [ValueError(rule)])[0] from error
    with new_file(codes, "wb") as output:
        output.write(learned.getvalue())
    pieces = Pieces(Path(codes)).pieces
    write_lines(f"{codes}.dict", (f"{piece} 1" for piece in pieces))
    found = len(pieces) + 1
    if found < count:
        print(
            f"{codes} has {found} pieces instead of {count}: the text gives no more",
            file=sys.stderr,
        )


def main() -> None:
    parser = command.parser(__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    learner = commands.add_parser("learn", help="learn codes")
    learner.add_argument("--kind", choices=KINDS, default=KINDS[0], help="(bpe)")
    learner.add_argument("--merges", action=command.AtLeastOne, required=True)
    learner.add_argument("--codes", required=True, help="file to write")
    learner.add_argument("texts", nargs="+")
    changers = {
        "apply": "split a text into subwords",
        "undo": "join the subwords of a text",
    }
    for name, does in changers.items():
        changer = commands.add_parser(name, help=does)
        changer.add_argument("--codes", required=True, help="file that learn wrote")
        changer.add_argument("input")
        changer.add_argument("output")
    args = parser.parse_args()
    if args.command == "learn":
        refuse_overwriting(args.codes, *args.texts)
        refuse_overwriting(f"{args.codes}.dict", *args.texts)
        how = learn if args.kind == KINDS[0] else learn_pieces
        return how(args.texts, args.codes, args.merges)
    refuse_overwriting(args.output, args.input, args.codes)
    made = subwords(Path(args.codes))
    lines = progress(each_line(args.input), leave=False)
    change = made.apply if args.command == "apply" else made.undo
    write_lines(args.output, each_of(change, args.input, lines))
