"""Duration of a run's trainings, from the speed of the first updates."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from sbnmt_plugin.tools.recipes.costs import read_train_log
from sbnmt_plugin.tools.recipes.step import Step

# Seconds of an update in both directions for one of a Transformer with as many
# sentences: examples/benchmark, 0.68 of its sentences a second.
BOTH = 1.5


def forecast(trainings: Sequence[Step], lines: list[str], jobs: int = 1) -> str:
    """Say how long trainings will take, "" where the log or a limit does not tell.

    Args:
        trainings: that are not done, the first of them the log's.
        lines: of the log.  The second report of the speed is taken: the first holds the
            start.
        jobs: trainings side by side; those of teachers come before the others.
    """
    curves = read_train_log(lines)
    speeds, tokens = (curves["train_inner", name] for name in ("ups", "wps"))
    reports = sorted(speeds.keys() & tokens.keys())
    if len(reports) < 2 or not speeds[reports[1]]:
        return ""
    done = reports[1]
    words = [[*map(str, training.words)] for training in trainings]
    if any("--max-update" not in each for each in words):  # limited by epochs
        return ""
    slower = [BOTH if "--sb-fusion" in each else 1 for each in words]
    updates = [int(each[each.index("--max-update") + 1]) for each in words]
    updates[0] -= int(done)
    teachers = [training.name.startswith("train/teacher") for training in trainings]
    in_all = 0.0
    for kind in True, False:
        own = [a * b for a, b, c in zip(slower, updates, teachers) if c == kind]
        in_all += max([sum(own) / min(jobs, len(own)), *own]) if own else 0
    minutes = in_all / slower[0] / speeds[done] / 60
    hours = f"{minutes / 60:.0f} hours"
    long = hours if minutes > 120 else f"{minutes + 1:.0f} minutes"
    return (
        f"There is no GPU. At {tokens[done]:,.0f} tokens a second, as in the first "
        f"updates, the trainings take about {long}; decoding can take as long again. "
        "Another --work with fewer --updates, or with --size small, takes less."
    )


def forecaster(trainings: Sequence[Step], jobs: int) -> Callable[[str], None]:
    """Return what hears the first training's lines, and tells the forecast once."""
    heard: list[str] = []

    def hear(line: str) -> None:
        if "| train_inner |" in line and len(heard) < 2:
            heard.append(line)
            if told := forecast(trainings, heard, jobs):
                print(f"\n{told}\n", file=sys.stderr, flush=True)

    return hear
