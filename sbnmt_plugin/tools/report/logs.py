"""Training curves and speed, read from fairseq's own logs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from sbnmt_plugin.tools.recipes.costs import simple

KINDS = ("train_inner", "train", "valid")
INNER = re.compile(r"\| train_inner \| epoch \d+:\s+\d+ / \d+ (.*)$")
EPOCH = re.compile(r"\| (train|valid) \| epoch \d+ \| (.*)$")
Curve = tuple[list[float], list[float]]  # updates, and values


@dataclass
class TrainLog:
    """Numbers of a log of fairseq-train, by kind of line.

    Attributes:
        points: kind -> one dict of numbers a line, each with ``num_updates``.
    """

    points: dict[str, list[dict[str, float]]] = field(
        default_factory=lambda: {kind: [] for kind in KINDS}
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
        for kind in ("train_inner", "train"):
            values = [point[name] for point in self.points[kind] if name in point]
            if values:
                return median(values)
        return None


def numbers(pairs: Iterable[tuple[str, str]]) -> dict[str, float]:
    """Return the pairs whose value is a number, and one that can be drawn."""
    found = {}
    for name, value in pairs:
        try:
            number = float(value)
        except ValueError:
            continue
        if math.isfinite(number):  # a gradient that overflows in float16 has inf
            found[name.strip()] = number
    return found


def read_train_log(lines: Iterable[str]) -> TrainLog:
    """Parse the lines of ``fairseq-train --log-format simple``, or ``json``."""
    log = TrainLog()
    for line in map(simple, lines):
        inner = INNER.search(line)
        epoch = EPOCH.search(line)
        if inner:
            words = [word.partition("=") for word in inner[1].split(", ")]
            point = numbers((name, value) for name, _, value in words)
            kind = "train_inner"
        elif epoch:
            parts = [part.strip().rpartition(" ") for part in epoch[2].split(" | ")]
            point = numbers((name, value) for name, _, value in parts)
            kind = epoch[1]
        else:
            continue
        if "num_updates" in point:
            log.points[kind].append(point)
    return log
