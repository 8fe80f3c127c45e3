"""Objects in processes of their own, which take turns."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.progress import progress, write
from sbnmt_plugin.tools.tied import tie

PATIENCE = 3.0  # seconds that a worker has to end by itself
Name = tuple[str, str]  # of a system, and of the type of its weights
Make = Callable[..., Any]  # gives a worker's object; it is imported by its name
DIED = "the process has died, as when the system has no memory left"


def serve(pipe: Connection, parent: int, threads: int) -> None:
    """Make an object and call its methods as asked, until something fails.

    This is a worker's whole life.  It ends with its parent, and writes nothing on its
    own.  What the pipe brings is imported, and fairseq with it, after all is silent.
    """
    tie(parent, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # removes temporary files
    quiet.silence()
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(threads)
    try:
        make, words = pipe.recv()
        made = make(*words)
        while True:
            method, words = pipe.recv()
            pipe.send((True, getattr(made, method)(*words)))
    except Exception:  # told to the parent, which raises
        pipe.send((False, traceback.format_exc()))
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is ending


class Failure(Exception):
    """The traceback of an error in a worker."""

    @property
    def reason(self) -> str:
        """Return its last line."""
        return str(self).strip().split("\n")[-1].removeprefix("ValueError: ")


class Worker:
    """An object in a process of its own, which begins to make it.

    Args:
        words: arguments of ``make``.
        threads: of torch in the process.
    """

    def __init__(self, make: Make, words: Sequence[Any], threads: int) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA bears no fork
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(theirs, os.getpid(), threads), daemon=True
        )
        # the child is like the command: it imports after serve() has begun
        argv, sys.argv = sys.argv, ["sbnmt"]
        try:
            self.process.start()
        finally:
            sys.argv = argv
        self.pipe.send((make, words))
        theirs.close()

    def ask(self, method: str, *words: Any) -> Any:
        """Return what a method of the object returns.

        Raises:
            Failure: it failed, or the object could not be made.  The worker is of no
                further use.
        """
        try:
            with contextlib.suppress(BrokenPipeError):  # it has told why it ended
                self.pipe.send((method, words))
            good, answer = self.pipe.recv()
        except (EOFError, ConnectionError) as error:
            raise Failure(DIED) from error
        if not good:
            raise Failure(answer)
        return answer

    def close(self) -> None:
        """End the process, also one that is at work."""
        self.process.terminate()
        self.process.join(PATIENCE)
        self.process.kill()
        self.process.join()
        self.pipe.close()


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
        try:
            return self.workers[system].ask(method, *words)
        except Failure as failure:
            self.failed[system] = failure.reason
            write(f"{', '.join(system)} failed: {failure}", file=sys.stderr)
            self.workers.pop(system).close()
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
        for worker in self.workers.values():
            worker.process.terminate()  # all end at once
        for worker in self.workers.values():
            worker.close()
