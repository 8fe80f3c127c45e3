"""Duration of a run's trainings, from the speed of the first updates."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from sbnmt_plugin.tools.recipes.costs import LAUNCH, read_log
from sbnmt_plugin.tools.recipes.step import Step

SPEED = re.compile(
    r"\| train_inner \| .*\bwps=([\d.]+), ups=([\d.]+),.*\bnum_updates=(\d+)\b"
)
# Seconds of an update in both directions for one of a Transformer with as many
# sentences: examples/benchmark, 0.68 of its sentences a second.
BOTH = 1.5
LOOK = 2.0  # seconds between looks at the log


def forecast(trainings: Sequence[Step], lines: list[str]) -> str:
    """Say how long trainings will take, "" while the log does not tell.

    Args:
        trainings: that are not done, the first of them the log's.
        lines: of the log's last launch.  Its second report of the speed is taken: the
            first holds the start.
    """
    reports = [found for line in lines if (found := SPEED.search(line))]
    if len(reports) < 2 or not float(reports[1][2]):
        return ""
    warm = reports[1]
    words = [[*map(str, training.words)] for training in trainings]
    slower = [BOTH if "--sb-fusion" in each else 1 for each in words]
    updates = [int(each[each.index("--max-update") + 1]) for each in words]
    updates[0] -= int(warm[3])
    in_all = sum(a * b for a, b in zip(slower, updates)) / slower[0]
    minutes = in_all / float(warm[2]) / 60
    hours = f"{minutes / 60:.0f} hours"
    long = hours if minutes > 120 else f"{minutes + 1:.0f} minutes"
    return (
        f"There is no GPU. At {float(warm[1]):,.0f} tokens a second, as in the first "
        f"updates, the trainings take about {long}; decoding can take as long again. "
        "Another --work with --size small or fewer --updates takes less."
    )


def last_launch(log: Path) -> list[str]:
    """Return a log's lines from its last launch on."""
    lines: list[str] = []
    with contextlib.suppress(FileNotFoundError):  # it may be renamed at any time
        lines = read_log(log)
    starts = [i for i, line in enumerate(lines) if line.startswith(LAUNCH)]
    return lines[starts[-1] :] if starts else []


@contextlib.contextmanager
def watched(log: Path, trainings: Sequence[Step]) -> Iterator[None]:
    """Tell a forecast, once, as soon as the first training is launched and has a speed.

    It is looked for beside the block, and no longer than the block lasts.
    """
    before = last_launch(log)[:1]
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK):
            lines = last_launch(log)
            told = forecast(trainings, lines) if lines[:1] != before else ""
            if told:
                print(f"\n{told}\n", file=sys.stderr, flush=True)
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
