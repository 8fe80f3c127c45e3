"""Commands as jobs of a cluster, submitted by submitit and followed by their files.

The files (see :mod:`jobs`) are all that a follower needs.  If one is ended, by SIGKILL
or with its machine, the next one submits nothing that is queued, runs or is done.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from sbnmt_plugin.tools.command import child_environment, extra
from sbnmt_plugin.tools.recipes.jobs import (
    BOOK,
    LOOK,
    Book,
    alive,
    cancel,
    jobs_to_follow,
    status_file,
)
from sbnmt_plugin.tools.recipes.process import Logged
from sbnmt_plugin.tools.unfinished import new_file, write_json

if TYPE_CHECKING:
    import argparse

    import submitit

EXECUTORS = ("slurm", "local")
DEFAULTS = {"timeout_min": 1440, "stderr_to_stdout": True}
TIMEOUTS = 1000  # each continues where it was
# what submitit raises for a cluster or a parameter that there is not
WRONG = RuntimeError, NameError, AssertionError, ValueError, TypeError
ASK = 15.0  # seconds between questions to the cluster
Telling = Callable[[int, str], None]  # takes which command it is, and a line


@dataclass
class Job:
    """A command as submitit runs it on another machine, again after each requeue.

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
        """Return the job to submit in place of one preempted, or out of time."""
        from submitit.helpers import DelayedSubmission

        self.command.end()
        if self.command.process is not None:
            self.command.process.wait()
        anew = replace(self.command)  # without the process, for another machine
        return DelayedSubmission(Job(anew, self.status))


class Cluster:
    """A cluster that jobs are submitted to.

    Args:
        executor: one of :data:`EXECUTORS`; ``local`` is this machine, for trying.
        parameters: of submitit's AutoExecutor.
    """

    def __init__(self, executor: str, /, **parameters: Any) -> None:
        self.executor, self.parameters = executor, parameters
        self.followed: list[str] = []  # jobs that have not ended
        self.guard = threading.Lock()
        self.ending = threading.Event()

    def run(
        self, folder: Path, commands: Sequence[Logged], gpus: int, tell: Telling
    ) -> list[int]:
        """Submit commands as one job, or an array, and follow them to their ends.

        Args:
            folder: for their files, theirs alone.
            commands: their logs and files are to be seen by all machines.
            gpus: of each, unless the parameters say it; of 0 nothing is said.

        Returns:
            Exit statuses.

        Raises:
            ValueError: a job has gone without leaving one, or a parameter is wrong.
        """
        folder = folder.resolve()
        jobs = [Job(c, status_file(folder, i)) for i, c in enumerate(commands)]
        known = jobs_to_follow(folder, [command.typed for command in commands])
        names = known or self.submit(folder, jobs, gpus)
        if known:
            with self.guard:
                self.followed += names
        for place, name in enumerate(names):
            tell(place, f"job {name}" + " is followed again" * bool(known))
        try:
            statuses = self.follow(jobs, names)
        finally:
            with self.guard:
                if not self.ending.is_set():  # else who cancels is about to read them
                    self.followed = [n for n in self.followed if n not in names]
        (folder / BOOK).unlink()  # the rest is submitit's, which is still writing it
        return statuses

    def submit(self, folder: Path, jobs: list[Job], gpus: int) -> list[str]:
        """Submit jobs, note their names, and follow them from now on.

        Raises:
            ValueError: the command is ending.
        """
        shutil.rmtree(folder, ignore_errors=True)
        executor = self.made(folder, gpus)
        for job in jobs:
            job.status.unlink(missing_ok=True)
            job.command.log.parent.mkdir(parents=True, exist_ok=True)
        array = executor.batch() if len(jobs) > 1 else contextlib.nullcontext()
        with self.guard:  # who cancels waits, and finds them followed
            if self.ending.is_set():
                raise ValueError("no job is submitted: the command is ending")
            with clean_environment(), array:
                submitted = [executor.submit(job) for job in jobs]
            names = [str(job.job_id) for job in submitted]
            book = Book(self.executor, names, [job.command.typed for job in jobs])
            write_json(folder / BOOK, book._asdict())
            self.followed += names
        return names

    def made(self, folder: Path, gpus: int) -> submitit.AutoExecutor:
        """Make submitit's executor.

        Raises:
            ValueError: it is not installed, there is no such cluster, or a parameter is
                not one of its.
        """
        with extra("cluster"):
            import submitit
        name = f"sbnmt-{folder.name}"
        asked = {"gpus_per_node": gpus} if gpus else {}
        wanted = {**DEFAULTS, "name": name, **asked, **self.parameters}
        try:
            executor = submitit.AutoExecutor(
                folder, cluster=self.executor, slurm_max_num_timeout=TIMEOUTS
            )
            executor.update_parameters(**wanted)
        except WRONG as error:
            raise ValueError(
                f"--executor {self.executor} must be there, and --cluster parameters "
                "of submitit's AutoExecutor (timeout_min=600 slurm_partition=gpu), but "
                f"submitit says: {error}"
            ) from error
        return executor

    def follow(self, jobs: list[Job], names: list[str]) -> list[int]:
        """Wait for the ends of jobs; return their exit statuses."""
        asked = time.monotonic()
        gone: set[str] = set()
        while not self.ending.wait(LOOK):
            # before statuses are looked at: what leaves one is not gone
            if time.monotonic() > asked + ASK:
                gone = set(names) - alive(self.executor, names)
                asked = time.monotonic()
            left = {n for n, job in zip(names, jobs) if not job.status.exists()}
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
        cancel(self.executor, names)


@contextlib.contextmanager
def clean_environment() -> Iterator[None]:
    """Set the variables by which jobs import this package, and none of another job."""
    from submitit.helpers import clean_env

    before = dict(os.environ)
    own = {**child_environment(), "SBNMT_JOB": "1"}
    with clean_env():
        os.environ.update(own)
        try:
            yield
        finally:
            for name in own:
                del os.environ[name]
            os.environ.update({name: before[name] for name in own if name in before})


# the command line


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add --executor and --cluster."""
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
    """Return the cluster that --executor and --cluster ask for.

    Raises:
        ValueError: one without the other, or no KEY=VALUE.
    """
    if executor is None:
        if words:
            raise ValueError("--cluster is for --executor: give both, or none")
        return None
    try:
        pairs = dict(word.split("=", 1) for word in words or [])
        return Cluster(executor, **{k: yaml.safe_load(v) for k, v in pairs.items()})
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(
            f"--cluster must be KEY=VALUE …, each value YAML, but is {words}"
        ) from error
