"""Commands as jobs of a cluster, submitted by submitit and followed by their files.

A folder that all machines see holds what a follower needs: ``jobs.json`` says which
jobs were submitted and for what, and each job that has ended by itself leaves its exit
status.  So a follower that was ended, by SIGKILL or with its machine, is replaced by
the next one, which submits nothing that is queued, runs or is done.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from sbnmt_plugin.tools.command import child_environment, extra
from sbnmt_plugin.tools.recipes.process import SHOWN, Logged
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import new_file

if TYPE_CHECKING:
    import argparse

    import submitit

EXECUTORS = ("slurm", "local")
DEFAULTS = {"timeout_min": 1440, "stderr_to_stdout": True}
TIMEOUTS = 1000  # each continues where it was
LOOK = 0.5  # seconds between looks at files
ASK = 15.0  # seconds between questions to the cluster
PATIENCE = 10.0  # seconds in which jobs of this machine are to end
BOOKS = "jobs.json"
Telling = Callable[[int, str], None]  # takes which command it is, and a line of its log


@dataclass
class Job:
    """What submitit runs on another machine, and once more after each requeue.

    Attributes:
        command: with its log.
        status: file in which the exit status appears when the command has ended.
    """

    command: Logged
    status: Path

    def __call__(self) -> None:
        told: list[int] = []

        def terminated(number: int, _: Any) -> None:
            told.append(number)
            self.command.end()

        signal.signal(signal.SIGTERM, terminated)
        status = self.command.run(lambda line: None)
        if told or status in (-signal.SIGTERM, 128 + signal.SIGTERM):
            # cancelled, or preempted and soon queued again: this was not its end
            os._exit(128 + signal.SIGTERM)
        with new_file(self.status) as file:
            file.write(f"{status}\n")

    def checkpoint(self) -> Any:
        """What to submit in place of a job that is preempted, or whose time is over."""
        from submitit.helpers import DelayedSubmission

        self.command.end()
        if self.command.process is not None:
            self.command.process.wait()
        return DelayedSubmission(Job(self.command, self.status))


@dataclass
class Cluster:
    """Where jobs go.

    Attributes:
        executor: one of :data:`EXECUTORS`; ``local`` is this machine, for trying.
        parameters: of submitit's AutoExecutor.
    """

    executor: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.followed: list[str] = []  # jobs that have not ended
        self.guard = threading.Lock()
        self.ending = threading.Event()

    def run(
        self, folder: Path, commands: Sequence[Logged], gpus: int | None, tell: Telling
    ) -> list[int]:
        """Commands as one job, or an array of them, followed to their ends.

        Args:
            folder: for their books, theirs alone.
            commands: their logs and files are to be seen by all machines.
            gpus: of each, unless the parameters say it; None: not said.

        Returns:
            Exit statuses.

        Raises:
            ValueError: a job has gone without leaving one, or a parameter is wrong.
        """
        folder = folder.resolve()
        jobs = [Job(c, folder / f"{i}.status") for i, c in enumerate(commands)]
        known = names_of(folder, [command.typed for command in commands])
        told = [size_of(command.log) for command in commands]
        names = known or self.submit(folder, jobs, gpus)
        for place, name in enumerate(names):
            tell(place, f"job {name}" + " is followed again" * bool(known))
        with self.guard:
            self.followed += names
        try:
            statuses = self.follow(jobs, names, told, tell)
        finally:
            with self.guard:
                self.followed = [name for name in self.followed if name not in names]
        (folder / BOOKS).unlink()  # the rest is submitit's, which is still writing it
        return statuses

    def submit(self, folder: Path, jobs: list[Job], gpus: int | None) -> list[str]:
        """Submit jobs, and note their names."""
        shutil.rmtree(folder, ignore_errors=True)
        executor = self.made(folder, gpus)
        for job in jobs:
            job.status.unlink(missing_ok=True)
            job.command.log.parent.mkdir(parents=True, exist_ok=True)
        with self.guard, clean_environment():
            if len(jobs) == 1:
                submitted = [executor.submit(jobs[0])]
            else:
                with executor.batch():
                    submitted = [executor.submit(job) for job in jobs]
        names = [str(job.job_id) for job in submitted]
        with new_file(folder / BOOKS) as file:
            commands = [job.command.typed for job in jobs]
            books = {"executor": self.executor, "jobs": names, "commands": commands}
            json.dump(books, file, indent=1)
        return names

    def made(self, folder: Path, gpus: int | None) -> submitit.AutoExecutor:
        """submitit's executor.

        Raises:
            ValueError: it is not installed, there is no such cluster, or a parameter is
                not one of its.
        """
        with extra("cluster"):
            import submitit
        name = f"sbnmt-{folder.name}"
        wanted = {**DEFAULTS, "name": name, "gpus_per_node": gpus, **self.parameters}
        try:
            executor = submitit.AutoExecutor(
                folder, cluster=self.executor, slurm_max_num_timeout=TIMEOUTS
            )
            executor.update_parameters(
                **{key: value for key, value in wanted.items() if value is not None}
            )
        except RuntimeError as error:
            raise ValueError(
                f"--executor {self.executor} must be there, but submitit says: {error}"
            ) from error
        except (NameError, AssertionError, ValueError, TypeError) as error:
            raise ValueError(
                "--cluster must be parameters of submitit's AutoExecutor "
                f"(timeout_min=600 slurm_partition=gpu), but submitit says: {error}"
            ) from error
        return executor

    def follow(
        self, jobs: list[Job], names: list[str], told: list[int], tell: Telling
    ) -> list[int]:
        """Wait for the ends of jobs.

        Args:
            told: bytes of each log that are known already.
        """
        asked = time.monotonic()
        gone: set[str] = set()
        while not self.ending.wait(LOOK):
            # before statuses are looked at: what leaves one is not gone
            if time.monotonic() > asked + ASK:
                gone = set(names) - alive(self.executor, names)
                asked = time.monotonic()
            left = {n for n, job in zip(names, jobs) if not job.status.exists()}
            # after them: the log of a job that has ended is whole
            for place, job in enumerate(jobs):
                told[place] = tell_new(job.command.log, told[place], place, tell)
            if not left:
                return [int(job.status.read_text()) for job in jobs]
            if left <= gone:
                raise ValueError(
                    f"job {min(left)} must leave its exit status, but the cluster "
                    "knows it no more: it was cancelled, or its machine failed; repeat "
                    "the command to submit it again"
                )
        raise ValueError(f"job {min(names)} is cancelled, with this command")

    def cancel(self) -> None:
        """End all jobs that are followed, and those who follow them."""
        self.ending.set()
        with self.guard:
            names = list(self.followed)
        if self.executor == "local":
            end_here(names)
            return
        for name in names:
            subprocess.run(["scancel", name], check=False)


def end_here(names: list[str]) -> None:
    """End jobs of this machine, which pass SIGTERM on to their commands.

    More than once: before a job has begun, the signal gets lost.  SIGINT, which
    submitit sends, is ignored by all that is started in the background of a script.
    """
    deadline = time.monotonic() + PATIENCE
    while (left := alive("local", names)) and time.monotonic() < deadline:
        for name in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(name), signal.SIGTERM)
        time.sleep(LOOK)


def alive(executor: str, names: list[str]) -> set[str]:
    """Which of the jobs are queued or run, or may be: where nobody can tell, all."""
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
    """Whether a process is what submitit has started here."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False
    return b"submitit.local._local" in words


def names_of(folder: Path, commands: list[str]) -> list[str]:
    """Jobs that were submitted for the same commands; [] if there are none to follow.

    Raises:
        ValueError: jobs are at work there for other commands.
    """
    path = folder / BOOKS
    if not path.exists():
        return []
    with as_written(path, f"cancel its jobs if any run, and remove {folder}"):
        books = json.loads(path.read_text(encoding="utf-8"))
        executor, names = books["executor"], [str(name) for name in books["jobs"]]
        same = books["commands"] == commands and len(names) == len(commands)
    ended = {n: folder / f"{i}.status" for i, n in enumerate(names)}
    ended = {name: status for name, status in ended.items() if status.exists()}
    work = alive(executor, names) - ended.keys()
    if work and not same:
        raise ValueError(
            f"{folder} must be free, but job {min(work)} is at work with other "
            "options: wait for it or cancel it"
        )
    done = all(name in ended and ended[name].read_text() == "0\n" for name in names)
    return names if same and (work or done) else []


def refuse_jobs(folder: Path) -> None:
    """A command that is not to be followed must not be at work as a job.

    Raises:
        ValueError: it is.
    """
    path = folder / BOOKS
    if path.exists():
        with as_written(path, f"cancel its jobs if any run, and remove {folder}"):
            books = json.loads(path.read_text(encoding="utf-8"))
            names = alive(books["executor"], [str(name) for name in books["jobs"]])
        if names:
            raise ValueError(
                f"{folder} must have no jobs at work, but job {min(names)} is: give "
                f"--executor {books['executor']} to follow it, or cancel it"
            )


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def tell_new(log: Path, start: int, place: int, tell: Telling) -> int:
    """Tell what has come to a log, whole lines; how many bytes are known then."""
    if not log.exists():
        return start
    with open(log, "rb") as file:
        file.seek(start)
        text, end, _ = file.read().rpartition(b"\n")
    for line in text.decode("utf-8", errors="replace").splitlines():
        if SHOWN.search(line):
            tell(place, line)
    return start + len(text) + len(end)


@contextlib.contextmanager
def clean_environment() -> Iterator[None]:
    """Variables by which jobs import this package, and none of a job that submits."""
    from submitit.helpers import clean_env

    before = dict(os.environ)
    own = {**child_environment(), "SBNMT_JOB": "1"}
    with clean_env():
        os.environ.update(own)
        try:
            yield
        finally:
            for name in own:
                os.environ.pop(name)
                if name in before:
                    os.environ[name] = before[name]


# the command line


def add_options(parser: argparse.ArgumentParser) -> None:
    """--executor and --cluster."""
    parser.add_argument(
        "--executor",
        choices=EXECUTORS,
        help="run models as jobs of Slurm, or, to try it, of this machine",
    )
    parser.add_argument(
        "--cluster",
        nargs="+",
        metavar="KEY=VALUE",
        help="with --executor: parameters of submitit's AutoExecutor, such as "
        "timeout_min=600 slurm_partition=gpu",
    )


def chosen(executor: str | None, words: list[str] | None) -> Cluster | None:
    """What --executor and --cluster ask for.

    Raises:
        ValueError: one without the other, or no KEY=VALUE.
    """
    if executor is None:
        if words:
            raise ValueError("--cluster is for --executor: give both, or none")
        return None
    parameters = {}
    for word in words or []:
        key, found, value = word.partition("=")
        if not found or not key:
            raise ValueError(f"--cluster must be KEY=VALUE …, but has {word}")
        parameters[key] = yaml.safe_load(value)
    return Cluster(executor, parameters)
