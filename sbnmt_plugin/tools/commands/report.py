r"""Analyse translations as the paper does, in one HTML page with figures and numbers.

    sbnmt report --source test.en --reference test.de [--reference test2.de] \
        --system L2R=l2r.txt --system SB-NMT=sb.txt [--records SB-NMT=sb.jsonl] \
        [--train-log SB-NMT=train.log] [--beam-sweep sweep.json] --output FOLDER
    sbnmt report --work work/toy --output FOLDER        # all from a recipe's run

The command writes FOLDER/report.html, which needs neither network nor server.  The
same figures are in FOLDER/figures, all numbers in FOLDER/numbers.  A section whose
input is missing says so.  The first system is the baseline of the paired tests.
--tokenize is sacreBLEU's tokeniser for BLEU, as zh for Chinese, ja-mecab, ko-mecab or
char; none is for texts that are tokens already.
"""

from __future__ import annotations

import argparse
from typing import Any

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.scoring import TOKENISERS


def parser() -> argparse.ArgumentParser:
    made = command.parser(__doc__)
    add = made.add_argument
    one: dict[str, Any] = {"nargs": 1, "default": []}
    many: dict[str, Any] = {"action": "append", "default": []}
    add("--source", **one, help="source text, one sentence a line")
    add("--reference", **many, help="reference; repeat for several")
    add("--system", **many, metavar="NAME=FILE", help="a system's output")
    add("--work", help="folder of sbnmt recipe, which has all of these files")
    add("--records", **many, metavar="NAME=JSONL", help="written by --sb-records")
    add("--train-log", **many, metavar="NAME=LOG", help="fairseq-train's log")
    add("--beam-sweep", **one, metavar="FILE", help="written by sbnmt sweep-beam")
    add("--lowercase", action="store_true", help="ignore case everywhere")
    add("--tokenize", choices=TOKENISERS, help="for BLEU; default 13a")
    add("--title", default="Translation report")
    add("--output", required=True, metavar="FOLDER", help="to write; may be a report")
    return made


def main() -> None:
    args = parser().parse_args()
    with command.extra("report"):
        from sbnmt_plugin.tools.report import build
    print(build.write_report(args))
