"""Commands as steps, each with a log that says when, by what and at what cost."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sbnmt_plugin.steps import HOME, IS_CLONE
from sbnmt_plugin.tools.command import child_environment, step_command, tied
from sbnmt_plugin.tools.recipes import costs
from sbnmt_plugin.tools.recipes.step import Step, Word
from sbnmt_plugin.tools.recipes.systems import Options
from sbnmt_plugin.tools.recipes.work_folder import DONE, mend_last, same_options
from sbnmt_plugin.tools.text import read_lines, write_lines

# what of a step's output tells how it goes
SHOWN = re.compile(
    r"\| valid \||\d sentences, |written; |\d translated, |shards: +\d+%|"
    r"^  source |^     [lr]2[lr] "
)
WANTED = ("epoch", "loss", "ppl", "bleu", "num_updates")
KIBI = 1024
# commands that are modules: of this very environment, whatever PATH says
MODULES = {
    "fairseq-train": "fairseq_cli.train",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
    "torchrun": "torch.distributed.run",
}


class Runner:
    """Runs steps, keeps their output in WORK/logs, and the folder's books.

    Args:
        work: folder.
        environment: variables; one of the same name in the user's own wins.
    """

    def __init__(self, work: Path, environment: dict[str, Any]) -> None:
        self.work = work
        self.inherited: tuple[int, ...] = ()  # file descriptors that steps inherit
        self.running: set[subprocess.Popen[str]] = set()
        self.environment = {str(k): str(v) for k, v in environment.items()}

    def has(self, path: Path) -> bool:
        return path.exists()

    def begin(self, folder: Path, options: Options) -> bool:
        same_options(folder, options)
        if (folder / DONE).exists():
            return False
        mended = mend_last(folder)
        if mended:
            print(mended, flush=True)
        return True

    def finish(self, folder: Path) -> None:
        (folder / DONE).touch()

    def keep(self, source: Path, copy: Path) -> None:
        if not copy.exists():
            write_lines(copy, read_lines(source))

    def clear(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def log(self, step: str) -> Path:
        return self.work / "logs" / f"{step.replace('/', '-')}.log"

    def run(self, step: Step) -> None:
        """Run a step with a log, and show of its output what tells how it goes."""
        log = self.log(step.name)
        for folder in log.parent, step.makes.parent:
            folder.mkdir(parents=True, exist_ok=True)
        shown = shlex.join(map(typed, step.words))
        print(f"\n== {step.name}\n   {shown}", flush=True)
        started = time.monotonic()
        with open(log, "a", encoding="utf-8") as file:
            file.write(costs.launch_line(shown))
            file.flush()
            process = subprocess.Popen(
                tied(executable(step.words)),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={
                    **self.environment,
                    **os.environ,
                    **step.variables,
                    **child_environment(),
                },
                pass_fds=self.inherited,
            )
            self.running.add(process)
            assert process.stdout is not None
            for line in process.stdout:
                file.write(line)
                file.flush()
                if SHOWN.search(line):
                    file.write(costs.at_line())
                    print(f"   {step.name}: {shorten(line.rstrip())}", flush=True)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.running.discard(process)
            file.write(costs.end_line(usage.ru_maxrss / KIBI / KIBI))
        self.check(step.name, process.returncode)
        print(f"   {step.name}: done in {time.monotonic() - started:.0f} s", flush=True)

    def stop(self) -> None:
        """End all commands that run."""
        for process in list(self.running):
            process.terminate()

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
    """A user's command line as this process starts it."""
    program, *rest = map(str, words)
    if program == "sbnmt":
        return step_command(*rest)
    if program in MODULES:
        return [sys.executable, "-m", MODULES[program], *rest]
    return [program, *rest]


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
