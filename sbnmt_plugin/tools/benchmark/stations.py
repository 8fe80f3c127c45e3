"""The systems of a case: each in processes of its own, measured in turn."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import logging
import multiprocessing
import os
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.benchmark.results import FAILED, Row
from sbnmt_plugin.tools.progress import progress, write
from sbnmt_plugin.tools.tied import tie

GIB = 2**30
PATIENCE = 3.0  # seconds that a worker has to end by itself
Rounds = list[list[Row]]  # of a system: the answers of its processes, round by round


def reset_peak(device: str) -> None:
    """Forget the peak of memory so far, and give freed memory back to the system."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return  # then the peak is that of the process


def peak_memory(device: str) -> float:
    """Return the peak since :func:`reset_peak`, weights included.

    Returns:
        GiB: of the GPU's memory, or of memory that is resident.
    """
    if device == "cuda":
        import torch

        return float(torch.cuda.max_memory_allocated()) / GIB
    path = Path("/proc/self/status")
    text = path.read_text() if path.exists() else ""
    if (found := re.search(r"VmHWM:\s+(\d+)", text)) is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB
    return int(found[1]) * 1024 / GIB


def timed(action: Callable[[], Any], device: str) -> tuple[Any, float, float]:
    """Return the result of an action, its seconds, and its peak of memory in GiB."""
    reset_peak(device)
    start = time.perf_counter()
    result = action()
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
    return result, time.perf_counter() - start, peak_memory(device)


def begin(parent: int, threads: int) -> None:
    """Set up a worker: it ends with its parent, and writes nothing on its own.

    It imports the classes of its arguments, and fairseq with them, only later.
    """
    tie(parent, signal.SIGKILL)  # it has nothing to put in order
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    quiet.silence()
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(threads)


@lru_cache(1)
def served(place: str, arguments: tuple[Any, ...]) -> Any:
    """Return the object of a worker, which is made for the first call."""
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)(*arguments)


def call(place: str, arguments: Any, method: str, words: Any) -> tuple[bool, Any]:
    """Return True and a method's result, or False and the traceback of its error."""
    try:
        return True, getattr(served(place, arguments), method)(*words)
    except Exception:  # told to the parent, which raises
        return False, traceback.format_exc()


class Failure(Exception):
    """The traceback of an error in a worker."""

    @property
    def reason(self) -> str:
        """Return its last line."""
        return str(self).strip().split("\n")[-1].removeprefix("ValueError: ")


class Worker:
    """An object in a process of its own.

    Args:
        place: ``module:class`` of the object.
        arguments: those of its constructor.
        threads: of torch in the process.

    Attributes:
        made: done, for :func:`answers`, when the object is made.
    """

    def __init__(self, place: str, arguments: tuple[Any, ...], threads: int) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA bears no fork
        self.pool = ProcessPoolExecutor(1, context, begin, (os.getpid(), threads))
        # the child is like the command: it imports after begin() has begun
        words, sys.argv = sys.argv, ["sbnmt"]
        try:
            self.number = self.pool.submit(os.getpid)
        finally:
            sys.argv = words
        self.object = place, arguments
        self.made = self.ask("__str__")

    def ask(self, method: str, *words: Any) -> Future[tuple[bool, Any]]:
        """Have a method of the object called."""
        self.last = self.pool.submit(call, *self.object, method, words)
        return self.last

    def close(self) -> None:
        """End the process, also one that works, or waits for one that has failed."""
        with contextlib.suppress(BrokenProcessPool, ProcessLookupError):
            for number in (signal.SIGTERM, signal.SIGKILL):
                if not self.last.done():
                    os.kill(self.number.result(), number)
                    wait([self.last], PATIENCE)
        self.pool.shutdown()


def answers(asked: Sequence[Future[tuple[bool, Any]]]) -> list[Any]:
    """Return the answers of workers that work together, in order.

    Raises:
        Failure: of the first that fails; the others may wait for it for ever.
    """
    for future in as_completed(asked):
        try:
            good, answer = future.result()
        except BrokenProcessPool as error:
            raise Failure(
                "the process has died, as when the system has no memory left"
            ) from error
        if not good:
            raise Failure(answer)
    return [future.result()[1] for future in asked]


@dataclass
class Stations(contextlib.AbstractContextManager[Any]):
    """The processes of all systems.

    One that fails is out of its case, and started anew for the next.

    Attributes:
        place: ``module:class`` of the object in every process.
        arguments: of a system, those of its constructor, for each of its processes.
        systems: the arguments of ``arguments``.
        threads: of each process.
        workers: the processes of each system.
        failed: systems that failed in this case, and why.
    """

    place: str
    arguments: Callable[[Any], list[tuple[Any, ...]]]
    systems: list[Any]
    threads: int
    workers: dict[Any, list[Worker]] = field(default_factory=dict)
    failed: dict[Any, str] = field(default_factory=dict)

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
            write(f"{name} failed: {failure}", file=sys.stderr)
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
        for number in progress(range(rounds), desc=title, unit="round", leave=False):
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

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """End all processes; a further case starts them anew."""
        for system in [*self.workers]:
            self._end(system)


def compared(runs: Rounds, baseline: Rounds | None) -> Row:
    """Return seconds and memory of rounds, and ratios to the baseline, round by round.

    Processes that share a round are as slow as the slowest.
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
