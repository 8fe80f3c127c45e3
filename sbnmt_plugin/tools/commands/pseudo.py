r"""Translate a text with the teachers, shard by shard, so that a killed run continues.

    sbnmt pseudo data --path teacher/checkpoint_best.pt --sb-direction l2r \
        --input text/train.en --output pseudo/l2r.tsv --beam 4 --lenpen 0.6

INPUT holds one sentence a line, as binarised (BPE applied).  The result has a line
"id<TAB>score<TAB>translation" per sentence, id counting input lines from 0, ids in
order; the score is in natural logarithms.  A source that is over-long or that fails
has no line, and is listed with its reason in OUTPUT.skipped.

The work is cut into shards of --shard-size lines, kept in OUTPUT.shards.  Several
processes, on several machines if the folder is shared, divide them by --of N
--worker I (0 … N - 1).  The one that finds all shards done writes OUTPUT.
OUTPUT.shards also notes input, options and models: the same command then has nothing to
do, another is refused.  With --executor slurm this command submits N workers as an
array of jobs, follows them, and joins their shards; killed and repeated, it follows
them again.

With --engine ctranslate2 the teacher is converted for CTranslate2, which is faster on
a CPU.  A few lines are then translated otherwise, more with --beam 1, which is greedy.
How many is measured on the first lines, and told on standard error.

Any other option is one of fairseq-generate or of the task.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

from sbnmt_plugin.tools.command_names import ENGINES
from sbnmt_plugin.tools.jobs import job_parser, run_job
from sbnmt_plugin.tools.recipes.runner import Runner
from sbnmt_plugin.tools.recipes.slurm import Cluster, add_options, chosen
from sbnmt_plugin.tools.recipes.step import Step
from sbnmt_plugin.tools.translator import Translator


def main() -> None:
    parser = job_parser(__doc__)
    add_options(parser)
    parser.add_argument(
        "--engine", choices=ENGINES, default=ENGINES[0], help="(fairseq)"
    )
    args, others = parser.parse_known_args()
    make: Callable[[list[str]], Translator] = Translator
    words = others
    if args.engine != ENGINES[0]:
        from sbnmt_plugin.tools.models.pseudo_engine import ConvertedTranslator

        make, words = ConvertedTranslator, [*others, "--engine", args.engine]
    cluster = chosen(args.executor, args.cluster)
    if cluster:
        spread(cluster, args, words)
        args.of, args.worker = 1, 0  # this process joins the shards
    run_job(args, words, lambda: make(others))


def spread(cluster: Cluster, args: argparse.Namespace, others: list[str]) -> None:
    """Have an array of --of jobs translate what is missing.

    Raises:
        ValueError: one of them fails, or --of and --worker do not fit.
    """
    if args.worker:
        raise ValueError("--executor starts all workers: leave --worker out")
    source, output = Path(args.input), Path(args.output).resolve()
    if not source.is_file() or source.is_relative_to("/dev"):
        raise ValueError(f"--input must be a file with --executor, but is {source}")
    if output.exists():
        return
    words = ["sbnmt", "pseudo", *others, "--input", args.input, "--output", args.output]
    words += ["--shard-size", args.shard_size]
    step = Step.of("pseudo", "", words, output, gpus=0, workers=args.of)
    runner = Runner(Path(f"{output}.shards"), {}, cluster)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            runner.run(step)
    except (KeyboardInterrupt, SystemExit):
        runner.stop()
        raise
