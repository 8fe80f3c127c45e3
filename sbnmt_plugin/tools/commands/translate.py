r"""Translate a text with the teachers, shard by shard, so that a killed run continues.

    sbnmt translate data --path teacher/checkpoint_best.pt --sb-direction l2r \
        --input text/train.en --output pseudo/l2r.tsv --beam 4 --lenpen 0.6

INPUT holds one sentence a line, as binarised (BPE applied).  The result has a line
"id<TAB>score<TAB>translation" per sentence, id counting input lines from 0, ids in
order; the score is in natural logarithms.  A source that is over-long or that fails
has no line, and is listed with its reason in OUTPUT.skipped.

The work is cut into shards of --shard-size lines, kept in OUTPUT.shards.  Several
processes, on several machines if the folder is shared, divide them by --of N
--worker I (0 … N - 1); the one that finds all shards done writes OUTPUT.  OUTPUT.shards
also says from what OUTPUT was made: the same command has then nothing to do, another
is refused.  Any other option is one of fairseq-generate's or of the task's.
"""

from __future__ import annotations

from sbnmt_plugin.tools.jobs import job_parser, run_job
from sbnmt_plugin.tools.translator import Translator


def main() -> None:
    args, others = job_parser(__doc__).parse_known_args()
    run_job(args, others, lambda: Translator(others))
