"""A folder in which one command at a time is at work."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

LOCK = ".lock"  # in the folder
PATIENCE = 10.0  # seconds; processes that load data look for theirs every 5


def taken(lock: int, how: Callable[[int, int], None]) -> bool:
    """Lock an open file, and return whether nobody else holds it.

    On a file system without locks nobody can tell, and nobody counts as holding it.

    Args:
        how: ``flock``, which descriptors hold that are inherited, or ``lockf``, which
            a process holds.
    """
    try:
        how(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EACCES, errno.EAGAIN)
    return True


def take(lock: int, how: Callable[[int, int], None], held: str) -> None:
    """Lock an open file; a killed holder is ending, and is waited for.

    Raises:
        ValueError: somebody else holds it for :data:`PATIENCE` seconds; with ``held``.
    """
    patience = time.monotonic() + PATIENCE
    while not taken(lock, how):
        if time.monotonic() > patience:
            raise ValueError(held)
        time.sleep(0.1)


@contextlib.contextmanager
def hold(folder: Path, flag: str = "--work") -> Iterator[int]:
    """Keep others out of a folder.

    A process that has inherited the descriptor goes on holding it.

    Args:
        folder: made where it does not exist.
        flag: the option by which the user gave it.

    Yields:
        A file descriptor, for steps to inherit that must end before others begin.

    Raises:
        ValueError: somebody else holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        take(
            *(lock, fcntl.flock),
            f"{flag} {folder} must not be in use, but another run, or a step that it "
            "began, is still at work there: wait for it or end it",
        )
        yield lock
    finally:
        os.close(lock)
