r"""fairseq-train, alone or as one of several processes, with the batch kept the same.

    sbnmt train DATA …                                                  one process
    torchrun --standalone --nproc-per-node 8 -m sbnmt_plugin train DATA …     eight
    torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d \
        --rdzv-endpoint HOST:29500 -m sbnmt_plugin train DATA …      on each of two

--update-freq is for one process.  Among N processes it is divided by N, so that an
update holds as many sentences wherever it runs.  On a CPU (--cpu) gloo connects the
processes; a bare fairseq-train would start N independent trainings there.
"""

from __future__ import annotations

import os
import sys

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.launch import distributed, gives, run_fairseq


def main() -> None:
    if sys.argv[1:] in ([], ["-h"], ["--help"]):
        print(command.parser(__doc__, usage="sbnmt train DATA …").format_help())
        return
    if not any(gives(sys.argv[1:], flag) for flag in ("--arch", "-a")):
        raise ValueError(
            "--arch must be given, such as sb_transformer, but is not: give "
            "fairseq-train's options"
        )
    sys.argv[1:] = distributed(sys.argv[1:], dict(os.environ))
    run_fairseq("fairseq-train")
