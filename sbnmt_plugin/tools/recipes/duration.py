"""Duration of a run's trainings, from the speed of the first updates."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Sequence
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
    words = [[*map(str, training.words)] for training in trainings]
    slower = [BOTH if "--sb-fusion" in each else 1 for each in words]
    updates = [int(each[each.index("--max-update") + 1]) for each in words]
    in_all = sum(a * b for a, b in zip(slower, updates)) / slower[0]
    minutes = in_all / float(warm[2]) / 60
    hours = f"{minutes / 60:.0f} hours"
    long = hours if minutes > 120 else f"{minutes + 1:.0f} minutes"
    return (
        f"There is no GPU. At {float(warm[1]):,.0f} tokens a second, as in the first "
        f"updates, the trainings take about {long}; decoding can take as long again. "
        "Of all sizes, --size small with a new --work takes the least."
    )


def watch(log: Path, trainings: Sequence[Step]) -> None:
    """Tell a forecast, once, as soon as the log of the first training has a speed.

    It is looked for beside the run, and no longer than this process lives.
    """

    def look() -> None:
        while not (told := forecast(trainings, read_log(log)) if log.exists() else ""):
            time.sleep(LOOK)
        print(f"\n{told}\n", file=sys.stderr, flush=True)

    threading.Thread(target=look, daemon=True).start()
