r"""Translate raw text by a model folder.

    sbnmt translate MODEL < raw.en > raw.de
    sbnmt translate MODEL --input raw.en --output raw.de

MODEL is a folder that a recipe, sbnmt bundle or sbnmt export has made.  Every input
line gives a line, in order; an empty line stays empty.  A line that cannot be
translated, because it is too long or no UTF-8, gives an empty line, and standard error
says why.  With --scores a line is "score<TAB>text", where the score is in natural
logarithms.  With --nbest N each input line gives N lines, the last of them empty where
fewer hypotheses have finished.

An --output that exists is continued: its lines are counted, and as many input lines are
left out.  So give the same input and the same --nbest.  An incomplete end is cut off.
What is there is kept, whatever model and options made it: remove the file to translate
anew.

A file of --records must be new, and has no --output that goes on.  It tells each
direction's best hypothesis of the beam, which may have none of a direction: null.

The exit status is 0, or 1 if a line could not be translated, or 2 if the command is
wrong.  Lines that an earlier command has left empty do not count again.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import IO

from sbnmt_plugin.lines import STANDARD_INPUT
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.launch import gives
from sbnmt_plugin.tools.models.description import Range, check
from sbnmt_plugin.tools.models.folder import DEVICES, DTYPES, load
from sbnmt_plugin.tools.models.raw_lines import continued, count_lines, translate_stream
from sbnmt_plugin.tools.progress import progress, write
from sbnmt_plugin.tools.text import refuse_overwriting


def parsed() -> argparse.Namespace:
    """Return the options of the command line.

    Raises:
        ValueError: it is that of the step whose name is now ``pseudo``.
    """
    if gives(sys.argv[1:], "--path"):
        raise ValueError(
            "sbnmt translate takes a model folder; the step that makes pseudo targets "
            "by --path is now sbnmt pseudo, with the same options"
        )
    parser = command.parser(__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("model", type=Path, help="model folder")
    add("--input", default=STANDARD_INPUT, help="raw text (standard input)")
    add("--output", type=Path, help="file to write, or to continue (standard output)")
    add("--nbest", action=command.AtLeastOne, default=1, help="hypotheses (1)")
    add("--scores", action="store_true", help="write the score before each text")
    add("--records", type=Path, help="file of each direction's best, as JSON lines")
    add("--device", choices=DEVICES, help="(cuda if there is a GPU)")
    add("--dtype", choices=DTYPES, default=DTYPES[0], help=f"({DTYPES[0]})")
    add("--beam", action=command.AtLeastOne, help="hypotheses of the search (MODEL's)")
    add("--lenpen", type=float, help="length penalty (MODEL's)")
    add("--rescore", type=float, metavar="W", help="weight of rescoring (MODEL's)")
    args = parser.parse_args()
    files = [str(path) for path in (args.output, args.records) if path]
    for place, path in enumerate(files):
        refuse_overwriting(path, args.input, *files[:place])
        if Path(path).resolve().is_relative_to(args.model.resolve()):
            raise ValueError(f"{path} must not be in {args.model}: choose another name")
    return args


def main() -> None:
    args = parsed()
    total = None
    if args.input == STANDARD_INPUT:
        source = sys.stdin.fileno()
    else:
        file = open(args.input, "rb", buffering=0)  # noqa: SIM115 (till the end)
        source = file.fileno()
        if Path(args.input).is_file():  # a stream is read once
            with open(args.input, "rb") as lines:
                total = sum(count_lines(lines))
    options = args.beam, args.lenpen, args.rescore
    nbest = None if args.records else args.nbest
    model = load(args.model, args.device, args.dtype, *options, nbest)
    check(args.nbest, Range(int, 1, model.description.search["beam"]), "--nbest")
    output: IO[bytes] | None = None
    records, done, begun, failed = None, 0, 0, 0
    with contextlib.ExitStack() as stack:
        if args.output:
            output, done, begun = continued(args.output, args.nbest)
            stack.enter_context(output)
        if done and args.records:
            raise ValueError(
                f"--output {args.output} has no --records {args.records} yet: remove it"
            )
        if total is not None and begun > total:
            raise ValueError(
                f"--output {args.output} must be of --input {args.input}, but has more "
                "lines: remove it"
            )
        if args.records:
            records = stack.enter_context(open(args.records, "xb"))
        if output:
            output.truncate()  # nothing refuses the command any more
        if done:
            print(f"{done} lines are translated already", file=sys.stderr)
        bar = stack.enter_context(progress(total=total, initial=done, unit="line"))
        how = args.nbest, args.scores, records, done
        stream = translate_stream(model, source, output or sys.stdout.buffer, *how)
        for count, problems in stream:
            bar.update(count)
            failed += len(problems)
            for problem in problems:
                write(f"sbnmt translate: {problem}", file=sys.stderr)
    if failed:
        sys.exit(1)
