"""Processes that hold a system each, so that each has its own memory."""

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
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from pathlib import Path
from typing import Any

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.tied import tie

GIB = 2**30


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
    status = Path("/proc/self/status")
    found = (
        re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    )
    if found is None:
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
        return self.pool.submit(call, *self.object, method, words)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        with contextlib.suppress(BrokenProcessPool, ProcessLookupError):
            os.kill(self.number.result(), signal.SIGKILL)
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
