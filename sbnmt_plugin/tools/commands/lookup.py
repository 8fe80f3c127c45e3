"""Translate a text roughly by a phrase table.

    sbnmt lookup --table table --input bpe/test.en --output lookup.de

From the left it takes the longest phrase that the table has, and skips tokens that
begin none.  Every line gives a line, empty where no phrase is found.
"""

from __future__ import annotations

from collections.abc import Iterator

from sbnmt_plugin.lines import each_line
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.text import refuse_overwriting, write_lines
from sbnmt_plugin.training.phrase_table import PhraseTable


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--table", required=True, help="from sbnmt phrase-table")
    parser.add_argument("--input", required=True, help="source text, in its tokens")
    parser.add_argument("--output", required=True, help="file to write to")
    args = parser.parse_args()
    refuse_overwriting(args.output, args.table, args.input)
    table = PhraseTable.load(args.table)
    lines = each_line(args.input)
    counts = {True: 0, False: 0}

    def translated() -> Iterator[str]:
        for line in lines:
            text = " ".join(table.lookup(line.split()))
            counts[not text] += 1
            yield text

    write_lines(args.output, translated())
    print(f"{counts[True]} of {sum(counts.values())} lines hold no phrase of the table")
