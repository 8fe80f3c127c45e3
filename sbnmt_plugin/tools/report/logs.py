"""Training curves, read from fairseq's own logs."""

from __future__ import annotations

import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Iterable

from sbnmt_plugin.tools.recipes.costs import simple

LINE = re.compile(
    r"\| (train_inner|train|valid) \| epoch \d+(?::\s+\d+ / \d+| \|) (.*)$"
)
PAIR = re.compile(r"([^\s,|]+)[ =]([^\s,|]+)")  # name=value, or name value
# kind of line and name of a quantity -> update -> value
Curves = dict[tuple[str, str], dict[float, float]]


def numbers(text: str) -> dict[str, float]:
    """Return the quantities of a line whose value is a number that can be drawn."""
    found = {}
    for name, value in PAIR.findall(text):
        with contextlib.suppress(ValueError):
            found[name] = float(value)
    # a gradient that overflows in float16 has inf
    return {name: number for name, number in found.items() if math.isfinite(number)}


def read_train_log(lines: Iterable[str]) -> Curves:
    """Parse the lines of ``fairseq-train --log-format simple``, or ``json``.

    A continued training repeats updates that an interrupted one had done; the last
    value counts.
    """
    curves: Curves = defaultdict(dict)
    for line in map(simple, lines):
        if found := LINE.search(line):
            values = numbers(found[2])
            for name in values if "num_updates" in values else ():
                curves[found[1], name][values["num_updates"]] = values[name]
    return curves
