"""One process a system, so that each has its own memory; they are asked in turn."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import logging
import multiprocessing
import re
import resource
import signal
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.tied import tie

GIB = 2**30
PATIENCE = 10  # seconds that a worker has to end by itself


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def reset_peak(device: str) -> None:
    """Forget the peak of memory so far; freed memory goes back to the system."""
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
    """GiB since :func:`reset_peak`: of the GPU, or resident, weights included."""
    if device == "cuda":
        import torch

        return float(torch.cuda.max_memory_allocated()) / GIB
    status = Path("/proc/self/status")
    found = (
        re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    )
    if found is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB
    return int(found[1]) * 1024 / GIB


def timed(action: Callable[[], Any], device: str) -> tuple[Any, float, float]:
    """What an action returns, its seconds, and its peak of memory in GiB."""
    reset_peak(device)
    start = time.perf_counter()
    result = action()
    if device == "cuda":
        import torch

        torch.cuda.synchronize()
    return result, time.perf_counter() - start, peak_memory(device)


def serve(connection: Any, place: str, threads: int) -> None:
    """Answer calls of an object's methods until told to stop.

    Args:
        connection: whose first message are the arguments of its constructor; to receive
            them here is to import their classes, and fairseq with them, here.
        place: ``module:class`` of the object.
    """
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None:
        tie(parent.pid, signal.SIGKILL)  # it has nothing to put in order
    quiet.silence()
    logging.disable(logging.INFO)
    warnings.simplefilter("ignore")
    try:
        import torch

        torch.set_num_threads(threads)
        module, name = place.split(":")
        served = getattr(importlib.import_module(module), name)(*connection.recv())
        connection.send((True, None))
        for method, words in iter(connection.recv, None):
            connection.send((True, getattr(served, method)(*words)))
    except Exception:  # told to the parent, which raises
        connection.send((False, traceback.format_exc()))


class Failure(Exception):
    """What went wrong in a worker: its traceback."""

    @property
    def reason(self) -> str:
        """In one line."""
        return str(self).strip().split("\n")[-1].removeprefix("ValueError: ")


class Worker:
    """A system in a process of its own.

    Args:
        place, threads: as for :func:`serve`.
        arguments: of the object's constructor.
        wait: until the object is made; else :meth:`receive` is the caller's to call.

    Raises:
        Failure: what went wrong in there, here and in :meth:`ask`.
    """

    def __init__(
        self, place: str, arguments: tuple[Any, ...], threads: int, wait: bool = True
    ) -> None:
        context = multiprocessing.get_context("spawn")  # CUDA bears no fork
        self.connection, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(theirs, place, threads), daemon=True
        )
        # the child is like the command: it imports after serve() has begun
        words, sys.argv = sys.argv, ["sbnmt"]
        try:
            self.process.start()
        finally:
            sys.argv = words
        theirs.close()
        self.connection.send(arguments)
        if wait:
            self.receive()

    def send(self, method: str, *words: Any) -> None:
        """Ask; :meth:`receive` gives the answer, or says that the process is dead."""
        with contextlib.suppress(BrokenPipeError):
            self.connection.send((method, words))

    def receive(self) -> Any:
        """Wait for an answer; the first says that the object is there."""
        try:
            good, answer = self.connection.recv()
        except (EOFError, ConnectionResetError) as error:
            self.process.join()
            status = self.process.exitcode
            raise Failure(f"the process has died (exit {status})") from error
        if not good:
            raise Failure(answer)
        return answer

    def ask(self, method: str, *words: Any) -> Any:
        """Call a method and wait for what it returns."""
        self.send(method, *words)
        return self.receive()

    def close(self) -> None:
        """End the process, which has nothing to do, or whose answer nobody awaits."""
        with contextlib.suppress(BrokenPipeError):
            self.connection.send(None)
        self.process.join(PATIENCE)
        self.process.kill()
        self.process.join()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def ask_all(workers: list[Worker], method: str, *words: Any) -> list[Any]:
    """Ask processes that work together.

    Raises:
        Failure: of the first that fails; the others may wait for it for ever.
    """
    for worker in workers:
        worker.send(method, *words)
    return receive_all(workers)


def receive_all(workers: list[Worker]) -> list[Any]:
    """What each answers, as :func:`ask_all` has it."""
    answers: dict[int, Any] = {}
    while len(answers) < len(workers):
        left = [i for i in range(len(workers)) if i not in answers]
        ready = wait([workers[i].connection for i in left])
        for place in left:
            if workers[place].connection in ready:
                answers[place] = workers[place].receive()
    return [answers[place] for place in range(len(workers))]
