#!/usr/bin/env python3
"""fairseq-train, alone or as one of several processes, with the batch kept the same.

    train.py DATA …                                          one process
    torchrun --standalone --nproc-per-node 8 train.py DATA … one machine
    torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d \
        --rdzv-endpoint HOST:29500 train.py DATA …           on each of two

--update-freq is that of one process: among N it is divided by N, so that an update
holds as many sentences wherever it runs.  On a CPU (--cpu) gloo connects the processes
(a bare fairseq-train would start N independent trainings there).
"""

from __future__ import annotations

import os
import re
import sys

from texts import run

CPU = ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]


def split_flag(word: str) -> list[str]:
    """``--flag=value`` as two words."""
    return word.split("=", 1) if re.match("--[a-z-]+=", word) else [word]


def distributed(words: list[str], environment: dict[str, str]) -> list[str]:
    """The command line of one of torchrun's processes.

    Args:
        words: the command line for one process.
        environment: with torchrun's WORLD_SIZE, RANK and LOCAL_RANK.

    Raises:
        ValueError: an --update-freq that cannot be divided.
    """
    size = int(environment.get("WORLD_SIZE", "1"))
    words = [part for word in words for part in split_flag(word)]
    if size == 1:
        # fairseq would take every GPU that it sees, and a batch for each
        chosen = "--distributed-world-size" in words
        return words if chosen else [*words, "--distributed-world-size", "1"]
    if "--update-freq" not in words:
        words += ["--update-freq", "1"]
    place = words.index("--update-freq") + 1
    steps = words[place]
    if not steps.isdigit() or int(steps) % size:
        raise ValueError(
            f"--update-freq must be one number, a multiple of the {size} processes by "
            f"which it is divided, but is {steps}: raise it and lower --max-tokens by "
            "as much"
        )
    words[place] = str(int(steps) // size)
    words += ["--distributed-init-method", "env://", "--distributed-no-spawn"]
    words += ["--distributed-world-size", str(size)]
    words += ["--distributed-rank", environment["RANK"]]
    if "--cpu" in words:
        return words + CPU
    return [*words, "--device-id", environment["LOCAL_RANK"]]


def main() -> None:
    if sys.argv[1:] in ([], ["-h"], ["--help"]):
        print(f"usage: train.py DATA [options of fairseq-train]\n\n{__doc__}")
        return
    sys.argv[1:] = distributed(sys.argv[1:], dict(os.environ))
    # torchrun knows nothing of fairseq's exit; and importing it takes seconds
    from fairseq_cli.train import cli_main

    cli_main()


if __name__ == "__main__":
    run(main)
