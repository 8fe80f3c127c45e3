"""Steps of a recipe are run, each with a log that says when and at what cost."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.command import step_command
from sbnmt_plugin.tools.command_names import HOME, IS_CLONE
from sbnmt_plugin.tools.launch import FAIRSEQ
from sbnmt_plugin.tools.recipes import costs, gpus
from sbnmt_plugin.tools.recipes.jobs import refuse_jobs
from sbnmt_plugin.tools.recipes.process import Logged, Tell
from sbnmt_plugin.tools.recipes.slurm import Cluster
from sbnmt_plugin.tools.recipes.step import Step, Word, in_order, words_of
from sbnmt_plugin.tools.unfinished import rename, sync

WANTED = ("epoch", "loss", "ppl", "bleu", "num_updates")


class Runner:
    """A runner of steps, side by side if asked, whose output goes to WORK/logs.

    Args:
        work: folder.
        environment: variables; one of the same name in the user's own wins.
        cluster: where steps go that run a model; None: they run here.
        inherited: file descriptors that steps inherit.

    Attributes:
        hearing: of a step that is run here: what gets every line of its output.
    """

    def __init__(
        self,
        work: Path,
        environment: dict[str, Any],
        cluster: Cluster | None = None,
        inherited: tuple[int, ...] = (),
    ) -> None:
        self.work, self.cluster, self.inherited = work, cluster, inherited
        self.environment = {str(k): str(v) for k, v in environment.items()}
        self.running: list[Logged] = []
        self.hearing: dict[Step, Tell] = {}
        self.ending = False
        self.jobs = 1  # steps side by side, which share the GPUs
        self.lender = gpus.Lender()
        self.made: set[Step] = set()
        self.locks: dict[Step, threading.Lock] = {}
        self.failed: dict[Step, BaseException] = {}

    def has(self, step: Step) -> bool:
        """Check whether a step need not be run any more."""
        return step in self.made or step.complete.exists()

    def check(self, targets: Sequence[Step]) -> None:
        """Refuse, before anything runs, a step that could not be run.

        Raises:
            ValueError: a step lacks its input, or has begun with other options.
        """
        pending = in_order(targets, is_done=self.has)
        if refusals := [step.refusal for step in pending if step.refusal]:
            raise ValueError(refusals[0])
        for step in pending:
            if step.record:
                step.record.check()

    def make_all(self, targets: Sequence[Step], jobs: int = 1) -> None:
        """Make steps in this order, with all that they need, ``jobs`` side by side.

        Where one fails those that have begun go on to their end; where the user
        interrupts, all stop.
        """
        errors: list[BaseException] = []
        begun: set[Step] = set()
        self.jobs = min(jobs, len(targets))

        def make(step: Step) -> None:
            if errors:
                return
            begun.add(step)
            try:
                self.make(step)
            except BaseException as error:
                new = error not in errors
                errors.append(error)
                if new and len(begun) > 1:
                    print(f"\n{error}\nWhat runs goes on to its end.", flush=True)
            begun.remove(step)

        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(make, step) for step in targets]
            try:
                wait(futures)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.stop()
                raise
        if errors:
            raise errors[0]

    def make(self, step: Step) -> None:
        """Run a step and those before it, unless they are done.

        Others that need the same step at the same time wait for it, and fail with it.
        """
        with self.locks.setdefault(step, threading.Lock()):
            if self.has(step):
                return
            if step in self.failed:
                raise self.failed[step]
            for needed in step.inputs:
                self.make(needed)
            if step.clears:
                step.clears.unlink(missing_ok=True)
            if step.record:
                begun, log = step.record.path.exists(), self.log(step)
                if mended := step.record.begin():
                    print(mended, flush=True)
                    begun = (step.record.made / "checkpoint_last.pt").exists()
                if log.exists() and not begun:
                    rename(log, log.with_suffix(".earlier"))  # of another training
            try:
                self.run(step)
            except BaseException as error:
                self.failed[step] = error
                raise
            if step.marks:
                folder = step.complete.parent
                sync(*folder.iterdir(), folder)  # or the mark might outlive the model
                step.complete.touch()
            self.made.add(step)

    def log(self, step: Step) -> Path:
        return self.work / "logs" / f"{step.log}.log"

    def run(self, step: Step) -> None:
        """Run a step, its workers side by side, here or on the cluster."""
        parts = workers_of(step)
        jobs = self.work / "jobs" / step.log
        if not self.cluster or step.gpus is None:
            refuse_jobs(jobs)
            wanted = step.gpus == 1 and self.jobs * step.workers > 1
            with ExitStack() as stack, ThreadPoolExecutor(len(parts)) as pool:
                lent = [stack.enter_context(self.lender.lend(wanted)) for _ in parts]
                commands = list(map(self.prepared, parts, lent))
                list(pool.map(self.run_here, parts, commands))
            return
        commands = [self.prepared(part) for part in parts]
        statuses = self.cluster.run(
            *(jobs, commands, step.gpus),
            lambda place, line: self.show(parts[place], line),
        )
        for part, status in zip(parts, statuses):
            self.finish(part, status, "done")

    def run_here(self, step: Step, command: Logged) -> None:
        """Run a command, and show of its output the lines that tell how it goes."""
        started = time.monotonic()
        self.running.append(command)
        try:
            hear = self.hearing.get(step)
            status = command.run(lambda line: self.show(step, line), hear)
        finally:
            self.running.remove(command)
        self.finish(step, status, f"done in {time.monotonic() - started:.0f} s")

    def prepared(self, step: Step, variables: dict[str, str] | None = None) -> Logged:
        """Return a step's command; the folders that it writes to are made.

        Args:
            variables: that win over those of the environment.

        Raises:
            ValueError: the recipe is ending: a row that has waited for another's step,
                which was ended, must not begin it again.
        """
        if self.ending:
            raise ValueError(f"step {step.name} is left out: the recipe is ending")
        log = self.log(step)
        for folder in log.parent, step.makes.parent:
            folder.mkdir(parents=True, exist_ok=True)
        shown = shlex.join(map(typed, step.words))
        print(f"\n== {step.name}\n   {shown}", flush=True)
        defaults = self.environment
        if not self.cluster and step.words[0] != "torchrun":
            # torchrun itself gives each process one thread
            defaults = share_of_cores(self.jobs * step.workers) | defaults
        return Logged(
            *(executable(step.words), shown, log, defaults, variables or {}),
            self.inherited if step.gpus is None or not self.cluster else (),
        )

    def show(self, step: Step, line: str) -> None:
        print(f"   {step.name}: {shorten(costs.simple(line))}", flush=True)

    def stop(self) -> None:
        """End all commands that run, and begin no other."""
        self.ending = True
        if self.cluster:
            self.cluster.cancel()
        for command in list(self.running):
            command.end()

    def finish(self, step: Step, status: int, done: str) -> None:
        """Say that a step is done, or raise its failure, with the end of its log."""
        log = self.log(step)
        tail = costs.read_log(log)[-16:-1]
        # a thread of fairseq's loader now and then aborts the interpreter on its way
        # out, when everything is written
        if status < 0 and any("done training in" in line for line in tail):
            self.show(step, f"signal {-status} after the end, all is written")
        elif status:
            raise ValueError(
                f"step {step.name} failed, its log {log} ends with\n" + "\n".join(tail)
            )
        self.show(step, done)


def share_of_cores(commands: int) -> dict[str, str]:
    """Return the variables that give each of some commands its own share of the cores.

    Where each computes with as many threads as there are cores, they wait for one
    another within every product.
    """
    if commands == 1:
        return {}
    share = len(os.sched_getaffinity(0)) // commands
    return {"OMP_NUM_THREADS": str(max(1, share))}


def workers_of(step: Step) -> list[Step]:
    """Return the commands that share a step's work, each as a step of its own."""
    if step.workers == 1:
        return [step]
    return [
        replace(
            step,
            name=f"{step.name}/{place}",
            words=words_of(*step.words, "--of", step.workers, "--worker", place),
        )
        for place in range(step.workers)
    ]


def executable(words: Sequence[Word]) -> list[str]:
    """Return a user's command line as this process starts it.

    The commands are those of this very environment, whatever PATH says.
    """
    program, *rest = map(str, words)
    if program == "torchrun":
        return [sys.executable, "-m", "torch.distributed.run", *rest]
    if program == "sbnmt":
        return step_command(*rest)
    return step_command(program, *rest) if program in FAIRSEQ else [program, *rest]


def typed(word: Word) -> str:
    """Write a word as a user types it: in a clone, with paths relative to it."""
    return str(word).replace(f"{HOME}/", "") if IS_CLONE else str(word)


def shorten(line: str) -> str:
    """Shorten fairseq's validation line to what a reader looks for."""
    parts = [part.strip() for part in line.split("|")]
    kept = [part for part in parts if part.split(" ")[0] in WANTED]
    return " | ".join(kept) if "valid" in parts else line
