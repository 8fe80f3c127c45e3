"""Duration of a run's trainings, from the speed of the first updates."""

from __future__ import annotations

import re
import threading
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


def speed(lines: list[str]) -> tuple[float, float] | None:
    """Return tokens and updates a second of a training's log, once it is warm."""
    for line in lines:
        found = SPEED.search(line)
        if found and int(found[3]) >= WARM and float(found[2]) > 0:
            return float(found[1]), float(found[2])
    return None


def factor(training: Step) -> float:
    """Return the duration of a training's update, in updates of a Transformer."""
    return BOTH if "--sb-fusion" in training.words else 1


def updates_of(training: Step) -> int:
    """Return the number of updates of a training."""
    return int(str(training.words[list(training.words).index("--max-update") + 1]))


def in_words(seconds: float) -> str:
    """Write a duration as a person says it."""
    minutes = seconds / 60
    if minutes < 2:
        return "a minute or two"
    if minutes < 120:
        return f"{minutes:.0f} minutes"
    return (
        f"{minutes / 60:.0f} hours" if minutes < 2880 else f"{minutes / 1440:.0f} days"
    )


def forecast(trainings: Sequence[Step], lines: list[str]) -> str:
    """Say how long trainings will take, "" while the log does not tell.

    Args:
        trainings: that are not done, the first of them the log's.
        lines: of the log.
    """
    found = speed(lines)
    if not found:
        return ""
    tokens, updates = found
    whole = sum(updates_of(each) * factor(each) for each in trainings)
    seconds = whole / (updates * factor(trainings[0]))
    return (
        f"There is no GPU. At {tokens:,.0f} tokens a second, as in the first updates, "
        f"the trainings take about {in_words(seconds)}; translating comes on top."
    )


def watch(
    log_of: Callable[[Step], Path],
    trainings: Sequence[Step],
    tell: Callable[[str], None],
) -> None:
    """Tell a forecast, once, as soon as the log of the first training has a speed.

    It is looked for beside the run, and no longer than this process lives.
    """

    def look() -> None:
        pause, log = threading.Event(), log_of(trainings[0])
        while True:
            told = forecast(trainings, read_log(log)) if log.exists() else ""
            if told:
                tell(told)
                return
            pause.wait(LOOK)

    if trainings:
        threading.Thread(target=look, daemon=True).start()
