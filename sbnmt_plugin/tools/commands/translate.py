r"""Translate raw text by a model folder.

    sbnmt translate MODEL < raw.en > raw.de
    sbnmt translate MODEL --input raw.en --output raw.de

MODEL is a folder that a recipe, sbnmt bundle or sbnmt export has made.  Every input
line gives a line, in order; an empty line stays empty.  A line that cannot be
translated, because it is too long or no UTF-8, gives an empty line, and standard error
says why.  With --scores a line is "score<TAB>text", where the score is in natural
logarithms.  With --nbest N each input line gives N lines of different texts, the last
of them empty where the beam has fewer.

An --output must be new.  It grows as OUTPUT.part, and has its name when it is whole.
If the command is killed, the same command goes on from there.

A file of --records grows in the same way.  It tells each direction's best hypothesis of
the beam, which may have none of a direction: null.

The exit status is 0, or 1 if a line could not be translated, or 2 if the command is
wrong.  Lines that a killed command has left empty do not count again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path

from sbnmt_plugin.lines import STANDARD_INPUT, refuse_other_form
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.launch import gives
from sbnmt_plugin.tools.models.description import NAME, Range, check
from sbnmt_plugin.tools.models.folder import DEVICES, DTYPES, load
from sbnmt_plugin.tools.models.raw_lines import Growing, count_lines, translate_stream
from sbnmt_plugin.tools.progress import progress, write
from sbnmt_plugin.tools.text import refuse_overwriting
from sbnmt_plugin.training.checksums import sha256_of


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
    add("--output", type=Path, help="new file (standard output)")
    add("--nbest", action=command.AtLeastOne, default=1, help="hypotheses (1)")
    add("--scores", action="store_true", help="write the score before each text")
    add("--records", type=Path, help="file of each direction's best, as JSON lines")
    add("--device", choices=DEVICES, help="(cuda if there is a GPU)")
    add("--dtype", choices=DTYPES, default=DTYPES[0], help=f"({DTYPES[0]})")
    add("--beam", action=command.AtLeastOne, help="hypotheses of the search (MODEL's)")
    add("--lenpen", type=float, help="length penalty (MODEL's)")
    add("--rescore", type=float, metavar="W", help="weight of rescoring (MODEL's)")
    args = parser.parse_args()
    files = {"--output": args.output, "--records": args.records}
    given = {flag: str(path) for flag, path in files.items() if path}
    for place, (flag, path) in enumerate(given.items()):
        refuse_overwriting(path, args.input, *[*given.values()][:place])
        if Path(path).resolve().is_relative_to(args.model.resolve()):
            raise ValueError(f"{path} must not be in {args.model}: choose another name")
        if Path(path).is_file():
            raise FileExistsError(
                f"{flag} {path} must be a new file, but exists: remove it to translate "
                "anew, or choose another name"
            )
    return args


def begun(args: argparse.Namespace, search: dict[str, object]) -> dict[str, str]:
    """Return what must be the same for a command to go on with what it has written."""
    known = args.input != STANDARD_INPUT and Path(args.input).is_file()
    return {
        "model": sha256_of(args.model / NAME),
        "input": sha256_of(args.input) if known else "a stream",
        "options": json.dumps([search, args.dtype, args.nbest, args.scores]),
    }


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
                whose, remedy = f"--input {args.input}", "| sbnmt translate …"
                refuse_other_form(whose, lines.read(2), f"{args.input} {remedy}")
                lines.seek(0)
                total = sum(count_lines(lines))
    options = args.beam, args.lenpen, args.rescore
    nbest = None if args.records else args.nbest
    model = load(args.model, args.device, args.dtype, *options, nbest)
    check(args.nbest, Range(int, 1, model.engine.most), "--nbest")
    how = begun(args, model.description.search) if args.output or args.records else {}
    failed = 0
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(contextlib.closing(Growing(path, rows, how)))
            for path, rows in ((args.output, args.nbest), (args.records, 1))
            if path is not None
        ]
        done = min(each.done for each in files) if args.output else 0
        for each in files:
            each.go_on(done)
        if done:
            print(f"{done} lines are translated already", file=sys.stderr)
        bar = stack.enter_context(progress(total=total, initial=done, unit="line"))
        output = files[0].file if args.output else sys.stdout.buffer
        records = files[-1].file if args.records else None
        how_many = args.nbest, args.scores, records, done
        for count, problems in translate_stream(model, source, output, *how_many):
            bar.update(count)
            failed += len(problems)
            for problem in problems:
                write(f"sbnmt translate: {problem}", file=sys.stderr)
        for each in files:
            each.finish()
    if failed:
        sys.exit(1)
