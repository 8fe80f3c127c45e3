"""Objects in processes of their own, which take turns."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.progress import progress, write
from sbnmt_plugin.tools.tied import tie

PATIENCE = 3.0  # seconds that workers have to end by themselves
Name = tuple[str, str]  # of a system, and of the type of its weights
Make = Callable[..., Any]  # gives a worker's object; it is imported by its name
DIED = "the process has died, as when the system has no memory left"
held: dict[str, Any] = {}  # in a worker: its object


def begin(parent: int) -> None:
    """Make a worker end with its parent, and write nothing on its own.

    What it is sent is imported, and fairseq with it, after all is silent.
    """
    tie(parent, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # removes temporary files
    quiet.silence()
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")


def make_held(make: Make, words: Sequence[Any], threads: int) -> None:
    """Make a worker's object."""
    import torch

    torch.set_num_threads(threads)
    held["it"] = make(*words)


def ask_held(method: str, words: Sequence[Any]) -> Any:
    """Return what a method of a worker's object returns."""
    return getattr(held["it"], method)(*words)


class Worker:
    """An object in a process of its own, which begins to make it.

    Args:
        words: arguments of ``make``.
        threads: of torch in the process.
    """

    def __init__(self, make: Make, words: Sequence[Any], threads: int) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA bears no fork
        self.process = ProcessPoolExecutor(1, context, begin, (os.getpid(),))
        # the child is like the command: it imports after begin() has begun
        argv, sys.argv = sys.argv, ["sbnmt"]
        try:
            self.made = self.process.submit(make_held, make, words, threads)
        finally:
            sys.argv = argv

    def ask(self, method: str, *words: Any) -> Future[Any]:
        """Have a method of the object called, unless making the object has failed."""
        if self.made.exception() is not None:
            return self.made
        return self.process.submit(ask_held, method, words)


class Stations(contextlib.AbstractContextManager[Any]):
    """The workers of all systems.

    One that fails is out of its case, and started anew for the next.

    Args:
        make: gives the object of a system, from its name and type of weights.
        threads: of each process.

    Attributes:
        failed: systems that failed in this case, and why.
    """

    def __init__(self, make: Make, systems: Sequence[Name], threads: int) -> None:
        self.make, self.systems, self.threads = make, systems, threads
        self.workers: dict[Name, Worker] = {}
        self.failed: dict[Name, str] = {}

    def begin(self) -> None:
        """Start the workers that are not there, before a case; all load at once."""
        self.failed = {}
        for system in self.systems:
            if system not in self.workers:
                self.workers[system] = Worker(self.make, system, self.threads)

    def ask(self, system: Name, method: str, *words: Any) -> Any:
        """Return a system's answer, or None where it has failed in this case."""
        if system in self.failed:
            return None
        error: BaseException | None
        try:
            asked = self.workers[system].ask(method, *words)
            error = asked.exception()  # the worker's; a signal to this process is not
        except BrokenProcessPool as lost:
            error = lost
        if error is None:
            return asked.result()
        told = "".join(traceback.format_exception(error))
        write(f"{', '.join(system)} failed: {told}", file=sys.stderr)
        reason = told.strip().split("\n")[-1].removeprefix("ValueError: ")
        self.failed[system] = DIED if isinstance(error, BrokenProcessPool) else reason
        self.workers.pop(system).process.shutdown()
        return None

    def measure(self, rounds: int, case: Any) -> dict[Name, list[Any]]:
        """Have every system ``prepare`` a case, and ``measure`` it in turn.

        The order is another one in every round, so that a machine that gets slower is
        slower for all.

        Returns:
            The rounds of each system.
        """
        self.begin()
        for system in self.systems:
            self.ask(system, "prepare", case)
        found: dict[Name, list[Any]] = {system: [] for system in self.systems}
        for number in progress(
            range(rounds), desc="decoding", unit="round", leave=False
        ):
            shift = number % len(self.systems)
            for system in [*self.systems[shift:], *self.systems[:shift]]:
                found[system].append(self.ask(system, "measure"))
        return found

    def __exit__(self, *_: Any) -> None:
        ending = multiprocessing.active_children()
        for process in ending:
            process.terminate()  # one that is at work, too
        until = time.monotonic() + PATIENCE
        for process in ending:
            process.join(max(0.0, until - time.monotonic()))
            process.kill()
        for worker in self.workers.values():
            worker.process.shutdown()
