"""Commands that are started, killed, and looked for."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sbnmt_plugin.tools.command import child_environment

MARK = "SBNMT_CAMPAIGN"  # variable by which all that a command starts can be found
PATIENCE = 20.0  # seconds within which everything has to end
LIMIT = 600.0  # seconds that a command may take
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1  # prctl(2), capabilities(7)
# how a command may end that was killed, or that was done before the signal came
STATUSES = {
    signal.SIGKILL: {-signal.SIGKILL},
    signal.SIGTERM: {-signal.SIGTERM, 128 + signal.SIGTERM},
    signal.SIGINT: {-signal.SIGINT, 128 + signal.SIGINT},
}


@dataclass
class Running:
    """A command that has been started; its output goes to a file."""

    process: subprocess.Popen[bytes]
    log: Path
    started: float = field(default_factory=time.monotonic)

    def wait(self) -> int:
        return self.process.wait(timeout=LIMIT)

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def variables(mark: str) -> dict[str, str]:
    """Return the environment of a command.

    Args:
        mark: of this attempt, for :func:`alive`.
    """
    own = {MARK: mark, "OMP_NUM_THREADS": "1"}
    return {**os.environ, **child_environment(), **own}


def start(words: list[str], log: Path, mark: str) -> Running:
    """Start a command.

    Args:
        log: for its standard output and error.
        mark: as for :func:`variables`.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "wb") as file:
        process = subprocess.Popen(words, stdout=file, stderr=file, env=variables(mark))
    return Running(process, log)


def hindered(
    words: list[str], mark: str, before: Callable[[], None]
) -> tuple[int, str]:
    """Run a command that lacks something.

    Args:
        mark: as for :func:`variables`.
        before: called in its process, before the command.

    Returns:
        Its exit status, and all that it says, which goes to no file.
    """
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=variables(mark),
        preexec_fn=before,
        timeout=LIMIT,
    )
    return done.returncode, done.stdout.decode(errors="replace")


def alive(mark: str) -> list[str]:
    """Return the command lines of all processes of an attempt that live."""
    found = []
    wanted = f"{MARK}={mark}".encode()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            words = (folder / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile, or is somebody else's
            continue
        if wanted in variables and words:  # a zombie has none
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found


def outlived(mark: str) -> list[str]:
    """Return the command lines that still live after :data:`PATIENCE`."""
    end = time.monotonic() + PATIENCE
    while (left := alive(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def small_files(size: int) -> Callable[[], None]:
    """Make a disk full: no file may get longer than ``size`` bytes."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def not_almighty() -> None:
    """Let permissions of files hold for root, too."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)
