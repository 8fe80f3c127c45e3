"""Duration of a run's trainings, from the speed of the first updates."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sbnmt_plugin.tools.recipes.costs import read_log
from sbnmt_plugin.tools.recipes.step import Step

SPEED = re.compile(
    r"\| train_inner \| .*\bwps=([\d.]+), ups=([\d.]+),.*\bnum_updates=(\d+)\b"
)
WARM = 20  # updates, after which a training has its speed
# Seconds of an update in both directions for one of a Transformer with as many
# sentences: examples/benchmark, 0.68 of its sentences a second.
BOTH = 1.5
LOOK = 2.0  # seconds between looks at the log


def in_words(seconds: float) -> str:
    """Write a duration as a person says it."""
    units = ("minutes", 60.0, 120), ("hours", 3600.0, 48), ("days", 86400.0, 1e9)
    unit, length, _ = next(x for x in units if seconds / x[1] < x[2])
    return f"{max(2, seconds / length):.0f} {unit}"


def factor(training: Step) -> float:
    """Return the duration of a training's update, in updates of a Transformer."""
    return BOTH if "--sb-fusion" in training.words else 1


def forecast(trainings: Sequence[Step], lines: list[str]) -> str:
    """Say how long trainings will take, "" while the log does not tell.

    Args:
        trainings: that are not done, the first of them the log's.
        lines: of the log.
    """
    told = (found for line in lines if (found := SPEED.search(line)))
    warm = next((x for x in told if int(x[3]) >= WARM and float(x[2])), None)
    if not warm:
        return ""
    whole = 0.0
    for each in trainings:
        words = [*map(str, each.words)]
        whole += factor(each) * int(words[words.index("--max-update") + 1])
    seconds = whole / factor(trainings[0]) / float(warm[2])
    return (
        f"There is no GPU. At {float(warm[1]):,.0f} tokens a second, as in the first "
        f"updates, the trainings take about {in_words(seconds)}; translating comes on "
        "top."
    )


def watch(log: Path, trainings: Sequence[Step], tell: Callable[[str], None]) -> None:
    """Tell a forecast, once, as soon as the log of the first training has a speed.

    It is looked for beside the run, and no longer than this process lives.
    """

    def look() -> None:
        while True:
            if told := forecast(trainings, read_log(log)) if log.exists() else "":
                tell(told)
                return
            time.sleep(LOOK)

    threading.Thread(target=look, daemon=True).start()
