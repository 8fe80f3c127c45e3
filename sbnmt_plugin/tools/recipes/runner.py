"""Commands as steps, each with a log that says when, by what and at what cost."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.command import step_command
from sbnmt_plugin.tools.command_names import HOME, IS_CLONE
from sbnmt_plugin.tools.launch import FAIRSEQ
from sbnmt_plugin.tools.recipes import costs
from sbnmt_plugin.tools.recipes.process import Logged
from sbnmt_plugin.tools.recipes.slurm import Cluster, refuse_jobs
from sbnmt_plugin.tools.recipes.step import Step, Word
from sbnmt_plugin.tools.recipes.system import Options
from sbnmt_plugin.tools.recipes.work_folder import (
    DONE,
    mend_last,
    note_teacher,
    same_options,
)
from sbnmt_plugin.tools.text import read_lines, write_lines

WANTED = ("epoch", "loss", "ppl", "bleu", "num_updates")


class Runner:
    """Runs steps, keeps their output in WORK/logs, and the folder's books.

    Args:
        work: folder.
        environment: variables; one of the same name in the user's own wins.
        cluster: where steps go that run a model; None: they run here.
    """

    def __init__(
        self, work: Path, environment: dict[str, Any], cluster: Cluster | None = None
    ) -> None:
        self.work = work
        self.inherited: tuple[int, ...] = ()  # file descriptors that steps inherit
        self.running: list[Logged] = []
        self.ending = False
        self.environment = {str(k): str(v) for k, v in environment.items()}
        self.cluster = cluster

    def has(self, path: Path) -> bool:
        return path.exists()

    def begin(self, folder: Path, options: Options) -> bool:
        begun = same_options(folder, options)
        if (folder / DONE).exists():
            return False
        if mended := mend_last(folder):
            print(mended, flush=True)
            begun = not (folder / "checkpoint_last.pt").exists()
        log = self.log(f"train/{folder.relative_to(self.work)}")
        if begun and log.exists():  # of a training that is not this one
            log.replace(log.with_suffix(".earlier"))
        return True

    def finish(self, folder: Path) -> None:
        (folder / DONE).touch()

    def note_teacher(self, texts: Path, options: Options) -> None:
        if note_teacher(texts, options):  # logs are of others, which are gone
            for log in (self.work / "logs").glob(f"pseudo-{texts.stem}*.log"):
                log.replace(log.with_suffix(".earlier"))

    def keep(self, source: Path, copy: Path) -> None:
        if not copy.exists():
            write_lines(copy, read_lines(source))

    def clear(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def log(self, step: str) -> Path:
        return self.work / "logs" / f"{step.replace('/', '-')}.log"

    def jobs(self, step: Step) -> Path:
        """Folder for the books of a step's jobs."""
        return self.work / "jobs" / step.name.replace("/", "-")

    def run(self, step: Step) -> None:
        """Run a step with a log, and show of its output what tells how it goes."""
        command = self.prepared(step)
        if self.cluster and step.gpus is not None:
            self.submit([step], [command])
            return
        refuse_jobs(self.jobs(step))
        started = time.monotonic()
        self.running.append(command)
        try:
            status = command.run(lambda line: self.show(step, line))
        finally:
            self.running.remove(command)
        self.check(step.name, status)
        self.show(step, f"done in {time.monotonic() - started:.0f} s")

    def run_all(self, steps: Sequence[Step]) -> None:
        """Run steps side by side, or on a cluster as one array of jobs."""
        if self.cluster:
            self.submit(steps, [self.prepared(step) for step in steps])
            return
        with ThreadPoolExecutor(len(steps)) as pool:
            list(pool.map(self.run, steps))

    def submit(self, steps: Sequence[Step], commands: Sequence[Logged]) -> None:
        """Have commands run by the cluster, and show how it goes."""
        assert self.cluster
        folder, gpus = self.jobs(steps[0]), steps[0].gpus
        statuses = self.cluster.run(
            *(folder, commands, gpus),
            lambda place, line: self.show(steps[place], line),
        )
        for step, status in zip(steps, statuses):
            self.check(step.name, status)
            self.show(step, "done")

    def prepared(self, step: Step) -> Logged:
        """A step's command, and the folders that it writes to.

        Raises:
            ValueError: the recipe is ending: a row that has waited for another's step,
                which was ended, must not begin it again.
        """
        if self.ending:
            raise ValueError(f"step {step.name} is left out: the recipe is ending")
        log = self.log(step.name)
        for folder in log.parent, step.makes.parent:
            folder.mkdir(parents=True, exist_ok=True)
        shown = shlex.join(map(typed, step.words))
        print(f"\n== {step.name}\n   {shown}", flush=True)
        variables = {}
        if step.place is not None and step.gpus and not self.cluster:
            variables = {"CUDA_VISIBLE_DEVICES": gpu(step.place)}
        return Logged(
            *(executable(step.words), shown, log, self.environment, variables),
            self.inherited if step.gpus is None or not self.cluster else (),
        )

    def show(self, step: Step, line: str) -> None:
        print(f"   {step.name}: {shorten(line)}", flush=True)

    def tell(self, failure: str) -> None:
        print(f"\n{failure}", flush=True)

    def stop(self) -> None:
        """End all commands that run, and begin no other."""
        self.ending = True
        if self.cluster:
            self.cluster.cancel()
        for command in list(self.running):
            command.end()

    def check(self, step: str, status: int) -> None:
        """Raise a step's failure, with the end of its log."""
        log = self.log(step)
        tail = costs.read_log(log)[-16:-1]
        # a thread of fairseq's loader now and then aborts the interpreter on its way
        # out, when everything is written
        if status < 0 and any("done training in" in line for line in tail):
            print(f"   {step}: signal {-status} after the end, all is written")
        elif status:
            raise ValueError(
                f"step {step} failed, its log {log} ends with\n" + "\n".join(tail)
            )


def executable(words: Sequence[Word]) -> list[str]:
    """Return a user's command line as this process starts it.

    The commands are those of this very environment, whatever PATH says.
    """
    program, *rest = map(str, words)
    if program == "sbnmt":
        return step_command(*rest)
    if program in FAIRSEQ:
        return step_command(program, *rest)
    if program == "torchrun":
        return [sys.executable, "-m", "torch.distributed.run", *rest]
    return [program, *rest]


def gpu(place: int) -> str:
    """Name of the GPU of the worker of that number, of those that the user has chosen.

    Raises:
        ValueError: there are fewer than workers.
    """
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = chosen.split(",") if chosen else None
    if names and place >= len(names):
        raise ValueError(
            f"--processes must be ≤ {len(names)}, as CUDA_VISIBLE_DEVICES names so "
            "many GPUs, but is more"
        )
    return names[place] if names else str(place)


def typed(word: Word) -> str:
    """A word as a user types it: in a clone, with paths relative to it."""
    return str(word).replace(f"{HOME}/", "") if IS_CLONE else str(word)


def shorten(line: str) -> str:
    """Keep of fairseq's validation line what a reader looks for."""
    if "| valid |" not in line:
        return line
    parts = [part.strip() for part in line.split("|")]
    kept = [part for part in parts if part.split(" ")[0] in WANTED]
    return " | ".join(kept)
