"""Command lines of fairseq's, run in this process, and that of a torchrun process."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# name of a command of fairseq's -> its module
FAIRSEQ = {
    "fairseq-train": "fairseq_cli.train",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
}
CPU = ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]


def run_fairseq(command: str) -> None:
    """Run a command of :data:`FAIRSEQ` in this process; ``sys.argv`` has its arguments.

    Its module comes first: it sets up logging, which only the first to try can do.
    """
    module = importlib.import_module(FAIRSEQ[command])
    from sbnmt_plugin.register import register

    register()
    module.cli_main()


def gives(words: Iterable[str], flag: str) -> bool:
    """Return whether a command line has ``--flag value`` or ``--flag=value``."""
    return any(word.partition("=")[0] == flag for word in words)


def alone(words: Iterable[Any]) -> list[Any]:
    """Return the command line of one process that shall stay alone.

    Without it fairseq takes every GPU that it sees, and a batch for each.
    """
    words = list(words)
    chosen = "--distributed-world-size" in words
    return words if chosen else [*words, "--distributed-world-size", "1"]


def divided(words: Sequence[str], size: int) -> list[str]:
    """Divide --update-freq by a number of processes, so that batches stay the same.

    Raises:
        ValueError: it cannot be divided.
    """
    words = [*words, *([] if "--update-freq" in words else ["--update-freq", "1"])]
    place = len(words) - words[::-1].index("--update-freq")  # of the last, which counts
    steps = "".join(words[place : place + 1])  # it may lack its value
    if not steps.isdigit() or int(steps) % size:
        raise ValueError(
            f"--update-freq must be one number, a multiple of --processes {size} (or "
            f"torchrun's), by which it is divided, but is {steps}: raise it and lower "
            "--max-tokens by as much"
        )
    words[place] = str(int(steps) // size)
    return words


def distributed(given: Iterable[Any], environment: Mapping[str, str]) -> list[str]:
    """Return the command line of one of torchrun's processes.

    Args:
        given: the command line for one process.
        environment: with torchrun's WORLD_SIZE, RANK and LOCAL_RANK.

    Raises:
        ValueError: an --update-freq that cannot be divided, or a variable is missing.
    """
    size = int(environment.get("WORLD_SIZE", "1"))
    words: list[str] = []
    for word in map(str, given):  # --flag=value is two
        words += word.split("=", 1) if re.match("--[a-z-]+=", word) else [word]
    if size == 1:
        return alone(words)
    if missing := [name for name in ("RANK", "LOCAL_RANK") if name not in environment]:
        raise ValueError(
            f"{missing[0]} must be set where WORLD_SIZE is {size}, but is not: start "
            "the command by torchrun, or unset WORLD_SIZE"
        )
    words = divided(words, size)
    words += ["--distributed-init-method", "env://", "--distributed-no-spawn"]
    words += ["--distributed-world-size", str(size)]
    words += ["--distributed-rank", environment["RANK"]]
    if "--cpu" in words:
        return words + CPU
    return [*words, "--device-id", environment["LOCAL_RANK"]]
