"""The systems of a case: each in processes of its own, measured in turn."""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median
from typing import Any

from tqdm import tqdm

from sbnmt_plugin.tools.benchmark.results import FAILED
from sbnmt_plugin.tools.benchmark.workers import Failure, Worker, answers

Row = dict[str, Any]
Rounds = list[list[Row]]  # of a system: the answers of its processes, round by round


class Stations:
    """The processes of all systems.

    One that fails is out of its case, and started anew for the next.

    Args:
        place: ``module:class`` of the object in every process.
        arguments: of a system, those of its constructor, for each of its processes.
        systems: whatever ``arguments`` tells apart.
        threads: of each process.
    """

    def __init__(
        self,
        place: str,
        arguments: Callable[[Any], list[tuple[Any, ...]]],
        systems: list[Any],
        threads: int,
    ) -> None:
        self.place = place
        self.arguments = arguments
        self.systems = systems
        self.threads = threads
        self.workers: dict[Any, list[Worker]] = {}
        self.failed: dict[Any, str] = {}  # in this case

    def begin(self) -> None:
        """Start the processes that are not there, before a case; all load at once."""
        self.failed = {}
        for system in self.systems:
            if system not in self.workers:
                self.workers[system] = [
                    Worker(self.place, words, self.threads)
                    for words in self.arguments(system)
                ]

    def ask(self, system: Any, method: str, *words: Any) -> list[Any]:
        """Return the answers of a system's processes; none if it fails in this case."""
        if system in self.failed:
            return []
        try:
            workers = self.workers[system]
            asked = [worker.ask(method, *words) for worker in workers]
            answers([worker.made for worker in workers])
            return answers(asked)
        except Failure as failure:
            self.failed[system] = failure.reason
            name = system if isinstance(system, str) else ", ".join(system)
            tqdm.write(f"{name} failed: {failure}", file=sys.stderr)
            self._end(system)  # its other processes may wait for the one that failed
            return []

    def _end(self, system: Any) -> None:
        for worker in self.workers.pop(system):
            worker.close()

    def measure(
        self, rounds: int, title: str, *case: Any
    ) -> tuple[dict[Any, list[Row]], dict[Any, Rounds]]:
        """Have every system prepare a case, and measure it in turn.

        The order is another one in every round, so that a machine that gets slower is
        slower for all.

        Returns:
            What the processes of each system say of the case, and its rounds.
        """
        self.begin()
        heads = {s: self.ask(s, "prepare", *case) for s in self.systems}
        runs: dict[Any, Rounds] = {s: [] for s in self.systems}
        for number in tqdm(range(rounds), desc=title, unit="round", leave=False):
            shift = number % len(self.systems)
            for system in [*self.systems[shift:], *self.systems[:shift]]:
                runs[system].append(self.ask(system, "measure"))
        return heads, runs

    def rows(
        self, begin: Callable[[Any], Row], numbers: Callable[[Any], Row]
    ) -> list[Row]:
        """Return a row for each system.

        Args:
            begin: gives the beginning of a system's row.
            numbers: gives the rest; a system that failed has its reason instead.
        """
        return [
            {**begin(s), **({FAILED: reason} if reason else numbers(s))}
            for s in self.systems
            for reason in [self.failed.get(s)]
        ]

    def __enter__(self) -> Stations:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """End all processes; a further case starts them anew."""
        for system in [*self.workers]:
            self._end(system)


def compared(runs: Rounds, baseline: Rounds | None) -> Row:
    """Return seconds and memory of some rounds, and their ratios to the baseline's.

    Processes that share a round are as slow as the slowest.  Ratios of speed are taken
    round by round.
    """

    def seconds(rounds: Rounds) -> list[float]:
        return [max(run["seconds"] for run in group) for group in rounds]

    def peak(rounds: Rounds) -> float:
        return max(float(run["memory"]) for group in rounds for run in group)

    found: Row = {"seconds": seconds(runs), "memory": peak(runs)}
    if baseline is not None:
        times = [b / a for a, b in zip(found["seconds"], seconds(baseline))]
        found |= {
            "ratio": median(times),
            "ratio, least": min(times),
            "ratio, most": max(times),
            "memory ratio": found["memory"] / peak(baseline),
        }
    return found
