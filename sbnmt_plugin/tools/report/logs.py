"""Training curves and speed, read from fairseq's own logs."""

from __future__ import annotations

import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from sbnmt_plugin.tools.recipes.costs import simple

LINE = re.compile(
    r"\| (train_inner|train|valid) \| epoch \d+(?::\s+\d+ / \d+| \|) (.*)$"
)
PAIR = re.compile(r"([^\s,|]+)[ =]([^\s,|]+)")  # name=value, or name value
Curve = tuple[list[float], list[float]]  # updates, and values


@dataclass
class TrainLog:
    """Numbers of a log of fairseq-train, by kind of line.

    Attributes:
        points: kind -> one dict of numbers a line, each with ``num_updates``.
    """

    points: dict[str, list[dict[str, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def series(self, kind: str, name: str) -> Curve:
        """Return updates and values of one quantity, of each update the last value.

        A continued training repeats updates that an interrupted one had done.
        """
        found = {
            point["num_updates"]: point[name]
            for point in self.points[kind]
            if name in point
        }
        updates = sorted(found)
        return updates, [found[update] for update in updates]

    def speed(self, name: str) -> float | None:
        """Return the median of ``ups`` or ``wps`` over the log's intervals.

        The median, because the first interval holds the start and others a pause.
        """
        points = self.points["train_inner"] or self.points["train"]
        values = [point[name] for point in points if name in point]
        return median(values) if values else None


def numbers(text: str) -> dict[str, float]:
    """Return the quantities of a line whose value is a number that can be drawn."""
    found = {}
    for name, value in PAIR.findall(text):
        with contextlib.suppress(ValueError):
            found[name] = float(value)
    # a gradient that overflows in float16 has inf
    return {name: number for name, number in found.items() if math.isfinite(number)}


def read_train_log(lines: Iterable[str]) -> TrainLog:
    """Parse the lines of ``fairseq-train --log-format simple``, or ``json``."""
    log = TrainLog()
    for line in map(simple, lines):
        if found := LINE.search(line):
            point = numbers(found[2])
            if "num_updates" in point:
                log.points[found[1]].append(point)
    return log
