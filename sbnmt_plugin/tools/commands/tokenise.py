"""Tokenise a text as the Moses script does (sacremoses), or undo it.

    sbnmt tokenise --language de [--lowercase] INPUT OUTPUT
    sbnmt tokenise --language de --undo INPUT OUTPUT

Chinese (--language zh) is segmented into words by jieba's dictionary and model
(rjieba); its punctuation is left as it is.  --language none splits at white space,
--language characters also around every ideograph.
Letters are written in Unicode's composed form (NFC).  The step says what share of the
lines --undo does not give back, tried with a sample.  - is standard input.
"""

from __future__ import annotations

import sys

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.text import read_lines, refuse_overwriting, write_lines
from sbnmt_plugin.tools.tokens import changed_lines, detokenise, tokenise


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument(
        "--language", required=True, help="two-letter code, none or characters"
    )
    parser.add_argument("--lowercase", action="store_true")
    parser.add_argument("--undo", action="store_true", help="detokenise")
    parser.add_argument("input")
    parser.add_argument("output")
    args = parser.parse_args()
    if args.undo and args.lowercase:
        raise ValueError("--lowercase cannot be undone: leave it out with --undo")
    refuse_overwriting(args.output, args.input)
    lines = read_lines(args.input)
    if args.undo:
        write_lines(args.output, detokenise(lines, args.language))
        return
    write_lines(args.output, tokenise(lines, args.language, args.lowercase))
    changed, tried = changed_lines(lines, args.language, args.lowercase)
    if changed:
        print(
            f"{args.input}: --undo gives {100 * len(changed) / tried:.1f} % of the "
            f"lines back otherwise ({tried} tried), line {changed[0] + 1} for one",
            file=sys.stderr,
        )
