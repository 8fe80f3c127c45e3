r"""Translate by Rerank-NMT: both teachers propose, and both score the proposals.

    sbnmt rerank data --l2r l2r/model.pt --r2l r2l/model.pt --beam 10 --lenpen 0.6 \
        --input bpe/test.en --output rerank.tsv

Each teacher proposes its --beam best translations of a sentence (the paper's k = 10);
both score the union, each in its own direction, and the translation with the largest
sum of both log-probabilities wins (Liu et al., NAACL 2016).  The result has a line
"id<TAB>sum<TAB>translation" per sentence, in natural logarithms.  Files, shards and
resuming are those of sbnmt pseudo, and so are all other options.
"""

from __future__ import annotations

from sbnmt_plugin.tools.jobs import job_parser, run_job
from sbnmt_plugin.tools.launch import gives
from sbnmt_plugin.tools.reranking import Reranker


def main() -> None:
    parser = job_parser(__doc__)
    parser.add_argument("--l2r", required=True, help="the L2R teacher's checkpoint")
    parser.add_argument("--r2l", required=True, help="the R2L teacher's checkpoint")
    args, others = parser.parse_known_args()
    for flag in ("--path", "--sb-direction", "--sb-answer"):
        if gives(others, flag):
            raise ValueError(f"{flag} is not for reranking: give --l2r and --r2l")
    for flag, path in ("--l2r", args.l2r), ("--r2l", args.r2l):
        if ":" in path:
            raise ValueError(f"{flag} must be one checkpoint, but is {path}")
    teachers = args.l2r, args.r2l
    words = [*others, *teachers]
    run_job(args, words, lambda: Reranker(others, *teachers), teachers)
