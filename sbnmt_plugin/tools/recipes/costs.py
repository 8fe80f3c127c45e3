"""The cost of a step, read from its log.

A log holds, for every launch of the step, a line that begins with LAUNCH, the
command's own output, lines that begin with AT and tell the time of the line before, and
a line that begins with END unless the driver was killed.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.machine import commit, machine, versions

LAUNCH, AT, END = "== launch ", "== at ", "== end "
STAMP = re.compile(r"^(?:== (?:launch|at|end) )?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \|")
COMMIT = re.compile(r"^== launch .*\| commit (\S+) \|")
MACHINE = re.compile(r"^== launch [^|]*\| commit \S+ \| (\d+ cores, [^|]*), Python ")
JSON = re.compile(r'(.*\| (train_inner|train|valid) \| )\{"epoch": (\d+), (.*)\}$')
VALUE = re.compile(r'"(?:(?:train|valid)_)?([^"]+)": "?([^",}]+)')
NUMBER = r"\d+(?:\.\d+)?"
PEAK = re.compile(rf"^== end .*\| peak ({NUMBER}) GiB")
GPU = re.compile(rf"total memory = ({NUMBER}) ?GB ; name = (\S.*?)\s*$")
LINE = re.compile(
    r"\| (train_inner|train|valid) \| epoch \d+(?::\s+\d+ / \d+| \|) (.*)$"
)
PAIR = re.compile(r"([^\s,|]+)[ =]([^\s,|]+)")  # name=value, or name value
# kind of line and name of a quantity -> update -> value
Curves = dict[tuple[str, str], dict[float, float]]

# keys of costs
WALL, LEFT_OUT = "seconds", "batches left out"
PEAKS = GPU_MEMORY, PEAK_MEMORY = "peak GPU memory (GiB)", "peak memory (GiB)"
# fairseq's words for a batch that it leaves out: no memory, or no finite gradient
SKIPPED = re.compile(r"(attempting to recover from OOM|AMP: skipping this batch)")


def now() -> str:
    return f"{datetime.datetime.now():%Y-%m-%d %H:%M:%S}"


def launch_line(command: str) -> str:
    here = f"{machine()}, {versions()}"
    return f"{LAUNCH}{now()} | commit {commit()} | {here} | {command}\n"


def at_line() -> str:
    return f"{AT}{now()} |\n"


def end_line(peak: float) -> str:
    """Write the last line of a launch.

    Args:
        peak: largest resident memory of the command's processes, in GiB.
    """
    return f"{END}{now()} | peak {peak:.2f} GiB\n"


def read_log(log: Path) -> list[str]:
    text = log.read_text(encoding="utf-8", errors="replace")
    return [simple(line) for line in text.splitlines()]


def simple(line: str) -> str:
    """Return a line of ``--log-format json`` as ``simple`` has it, others unchanged."""
    if not (found := JSON.match(line)):
        return line
    head, kind, epoch, rest = found.groups()
    pairs = VALUE.findall(rest)
    if kind == "train_inner":
        return f"{head}epoch {epoch:0>3}:  0 / 0 {', '.join(map('='.join, pairs))}"
    return f"{head}epoch {epoch:0>3} | {' | '.join(map(' '.join, pairs))}"


def told(pattern: re.Pattern[str], lines: list[str]) -> list[str]:
    """Return what a pattern's group finds in some lines."""
    return [found[1] for line in lines if (found := pattern.search(line))]


def seconds(lines: list[str]) -> int:
    """Return the wall-clock time of all launches, without the time between them.

    A clock that is set back meanwhile takes nothing away.
    """
    total = 0.0
    last: datetime.datetime | None = None
    for line in lines:
        if line.startswith(LAUNCH):
            last = time_of(line)
        elif stamp := time_of(line):
            total += max(0.0, (stamp - (last or stamp)).total_seconds())
            last = stamp
    return round(total)


def time_of(line: str) -> datetime.datetime | None:
    """Return when a line of a log was written, if it says so."""
    found = STAMP.match(line)
    with contextlib.suppress(ValueError):  # no day of any month
        return datetime.datetime.fromisoformat(found.group(1)) if found else None
    return None


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


def progress(curves: Curves, start: int = 0) -> tuple[int, int]:
    """Return updates done, and labels seen, of both directions for SB-NMT.

    An epoch that was interrupted and done again counts once.

    Args:
        start: updates of the training that this one continues.
    """
    tokens, before = 0.0, float(start)
    for updates, words in sorted(curves["train", "wpb"].items()):
        tokens += words * (updates - before)
        before = updates
    return round(before) - start, round(tokens)


def gpu_memory(lines: list[str], curves: Curves) -> dict[str, Any]:
    """Return the GPU and the largest memory in use on it; nothing without one."""
    cards = [found for line in lines if (found := GPU.search(line))]
    kinds = "train", "train_inner"  # the first has an epoch's last batch alone
    free = [least for kind in kinds for least in curves[kind, "gb_free"].values()]
    if not cards:
        return {}
    total = float(cards[-1][1])
    memory = {GPU_MEMORY: round(total - min(free), 2)} if free else {}
    return {"gpu": cards[-1][2], **memory}


def step_cost(log: Path, start: int = 0) -> dict[str, Any]:
    """Return the cost of a step.

    It is seconds by the clock, peak memory, commits and machines; for a training also
    updates, tokens, and the number of batches left out, if any.

    Args:
        start: as for :func:`progress`.
    """
    lines = read_log(log)
    curves = read_train_log(lines)
    cost: dict[str, Any] = {WALL: seconds(lines)}
    for key, pattern in ("commits", COMMIT), ("machines", MACHINE):
        cost[key] = list(dict.fromkeys(told(pattern, lines))) or None
    cost[PEAK_MEMORY] = max(map(float, told(PEAK, lines)), default=None)
    cost[LEFT_OUT] = len(told(SKIPPED, lines)) or None
    updates, tokens = progress(curves, start)
    if updates:
        cost |= {"updates": updates, "tokens": tokens}
    known = {key: value for key, value in cost.items() if value is not None}
    return known | gpu_memory(lines, curves)
