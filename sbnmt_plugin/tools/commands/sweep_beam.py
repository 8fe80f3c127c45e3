r"""Decode a test set with several beam sizes (Figure 8), skipping what is done.

    sbnmt sweep-beam --data data --reference text/test.tgt --output sweep.json \
        --system "L2R=--path l2r/model.pt --sb-direction l2r" \
        --system "R2L=--path r2l/model.pt --sb-direction r2l" \
        --system "SB-NMT=--path sb/model.pt" \
        [--beams 1,2,4,8,16] [options of fairseq-generate, as --lenpen 0.6]
    sbnmt sweep-beam --work work/toy          # systems and options of a recipe's run
    sbnmt sweep-beam --work work/toy --rows sb-lambda0+rescored sb sb+rescored

    # choose each system's length penalty on the validation set, then test with it
    sbnmt sweep-beam --work work/toy --rows sb transformer-pl --gen-subset valid \
        --beams 4 --lenpens 0.6,1,1.5,2 --output valid.json
    sbnmt sweep-beam --work work/toy --rows sb transformer-pl --chosen-by valid.json \
        --output test.json

A beam counts the hypotheses of both directions, so that of SB-NMT is even.  BLEU is the
paper's, on tokens.  --reference is tokenised text, and may be given several times.
With --phonemes a line is a word, and error rates are computed, too.  --raw 13a is for
raw text, with subwords of kind sentencepiece, and names its tokeniser.  --chosen-by
decodes each system only with the beam and length penalty that were best in that sweep,
seeds together.  Each finished run is kept in OUTPUT.runs, so a repeated command goes on
where it was interrupted.  sbnmt report --beam-sweep draws the result.
"""

from __future__ import annotations

import argparse

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.evaluation import add_raw
from sbnmt_plugin.tools.results.sweep import render_sweep
from sbnmt_plugin.tools.results.sweep_plan import BEAMS, Plan, planned
from sbnmt_plugin.tools.results.sweep_runs import decoded
from sbnmt_plugin.tools.text import refuse_overwriting


def parser() -> argparse.ArgumentParser:
    made = command.parser(__doc__, allow_abbrev=False)
    add = made.add_argument
    # no positional argument: it would take the value of an option of fairseq's
    add("--data", help="binarised data, as for fairseq-generate")
    add("--work", help="folder of sbnmt recipe, which has all that is needed")
    add("--system", action="append", metavar="NAME=OPTIONS")
    add("--rows", nargs="+", metavar="ROW", help="rows of --work, as systems")
    add(
        "--reference",
        action="append",
        dest="references",
        metavar="TEXT",
        help="tokenised; may be repeated",
    )
    add("--phonemes", action="store_true", help="error rates, too")
    add("--lowercase", action="store_true", help="BLEU ignores case")
    add_raw(made)
    add("--beams", help=f"default {BEAMS}")
    add("--lenpens", help="length penalties, as 0.6,1,1.5: every beam with each")
    add(
        "--chosen-by",
        metavar="FILE",
        help="a sweep whose best settings replace these two",
    )
    add("--gen-subset", dest="subset", metavar="SET", help="default test")
    add(
        "--output",
        help="JSON file to write; rewritten when more is decoded (default: in WORK "
        "beam-sweep.json, lenpen-sweep.json with --lenpens, chosen-sweep.json)",
    )
    return made


def main() -> None:
    plan = Plan()  # its values are the flags' defaults
    _, plan.options = parser().parse_known_args(namespace=plan)
    searches = planned(plan)
    refuse_overwriting(plan.output, plan.chosen_by, *plan.references)
    print(render_sweep(decoded(plan, searches)), end="")
