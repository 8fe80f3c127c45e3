"""Jobs that a cluster was given: which are queued, run, or have ended.

A folder that all machines see holds ``jobs.json``, the jobs that were submitted and
their commands.  Each job that has ended by itself leaves its exit status there.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from sbnmt_plugin.tools.text import as_written

LOOK = 0.5  # seconds between looks at files
PATIENCE = 10.0  # seconds in which jobs of this machine are to end
BOOK = "jobs.json"


def status_file(folder: Path, place: int) -> Path:
    """Return the file of a job's exit status."""
    return folder / f"{place}.status"


class Book(NamedTuple):
    """The jobs that were submitted for some commands.

    Attributes:
        executor: that they were submitted by.
        jobs: their names.
        commands: as a user types them.
    """

    executor: str
    jobs: list[str]
    commands: list[str]


def read_book(folder: Path) -> Book:
    """Read a folder's book; it is empty where no jobs were submitted, or all were seen.

    Raises:
        ValueError: it is damaged.
    """
    path = folder / BOOK
    if not path.exists():
        return Book("local", [], [])
    with as_written(path, f"cancel its jobs if any run, and remove {folder}"):
        known = json.loads(path.read_text(encoding="utf-8"))
        return Book(known["executor"], [*map(str, known["jobs"])], known["commands"])


def jobs_to_follow(folder: Path, commands: list[str]) -> list[str]:
    """Return the jobs that were submitted for the same commands, if any.

    Raises:
        ValueError: jobs are at work there for other commands.
    """
    book = read_book(folder)
    files = {job: status_file(folder, i) for i, job in enumerate(book.jobs)}
    ended = {job for job, status in files.items() if status.exists()}
    work = alive(book.executor, book.jobs) - ended
    same = book.commands == commands and len(book.jobs) == len(commands)
    if work and not same:
        raise ValueError(
            f"{folder} must be free, but job {min(work)} is at work with other "
            "options: wait for it or cancel it"
        )
    done = all(job in ended and files[job].read_text() == "0\n" for job in book.jobs)
    return book.jobs if same and (work or done) else []


def refuse_jobs(folder: Path) -> None:
    """Refuse to run a command here that is at work as a job.

    Raises:
        ValueError: it is.
    """
    book = read_book(folder)
    if names := alive(book.executor, book.jobs):
        raise ValueError(
            f"{folder} must have no jobs at work, but job {min(names)} is: give "
            f"--executor {book.executor} to follow it, or cancel it"
        )


def alive(executor: str, names: list[str]) -> set[str]:
    """Return the jobs that are queued or run; where nobody can tell, all."""
    if executor == "local":
        return {name for name in names if is_submitits(name)}
    found: set[str] = set()
    for main in {name.partition("_")[0] for name in names}:
        command = ["squeue", "--noheader", "--array", "--format=%i", f"--jobs={main}"]
        answer = subprocess.run(command, capture_output=True, text=True)
        if not answer.returncode:
            found |= set(answer.stdout.split())
        elif "Invalid job id" not in answer.stderr:
            found |= set(names)
    return found & set(names)


def is_submitits(process: str) -> bool:
    """Check whether a process was started by submitit on this machine."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return b"submitit.local._local" in words


def cancel(executor: str, names: list[str]) -> None:
    """End jobs.

    Jobs of this machine pass SIGTERM on to their commands.  They get it more than once:
    before a job has begun, the signal is lost.  SIGINT, which submitit sends, is
    ignored by all that is started in the background of a script.
    """
    if executor != "local":
        for name in names:
            subprocess.run(["scancel", name], check=False)
        return
    deadline = time.monotonic() + PATIENCE
    while (left := alive("local", names)) and time.monotonic() < deadline:
        for name in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(name), signal.SIGTERM)
        time.sleep(LOOK)
