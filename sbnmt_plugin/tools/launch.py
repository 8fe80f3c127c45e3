"""Command lines of fairseq's, and that of one of torchrun's processes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

CPU = ["--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp"]


def gives(words: Iterable[str], flag: str) -> bool:
    """Whether a command line has an option, as ``--flag value`` or ``--flag=value``."""
    return any(word.partition("=")[0] == flag for word in words)


def split_flag(word: str) -> list[str]:
    """``--flag=value`` as two words."""
    return word.split("=", 1) if re.match("--[a-z-]+=", word) else [word]


def alone(words: Iterable[Any]) -> list[Any]:
    """The command line of one process that shall stay alone.

    fairseq would take every GPU that it sees, and a batch for each.
    """
    words = list(words)
    chosen = "--distributed-world-size" in words
    return words if chosen else [*words, "--distributed-world-size", "1"]


def distributed(given: Iterable[Any], environment: Mapping[str, str]) -> list[str]:
    """The command line of one of torchrun's processes.

    Args:
        given: the command line for one process.
        environment: with torchrun's WORLD_SIZE, RANK and LOCAL_RANK.

    Raises:
        ValueError: an --update-freq that cannot be divided.
    """
    size = int(environment.get("WORLD_SIZE", "1"))
    words = [part for word in given for part in split_flag(str(word))]
    if size == 1:
        return alone(words)
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
