"""Commands as steps, each with a log that says when, by what and at what cost."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sbnmt_plugin.steps import HOME, PLUGIN
from sbnmt_plugin.tools.command import child_environment, step_command
from sbnmt_plugin.tools.recipes import costs

# what of a step's output tells how it goes
SHOWN = re.compile(
    r"\| valid \||\d sentences, |written; |\d translated, |shards: +\d+%|"
    r"^  source |^     [lr]2[lr] "
)
WANTED = ("epoch", "loss", "ppl", "bleu", "num_updates")
KIBI = 1024


class Runner:
    """Runs commands, and keeps their output in WORK/logs.

    Args:
        work: folder.
        environment: variables; one of the same name in the user's own wins.
    """

    def __init__(self, work: Path, environment: dict[str, Any]) -> None:
        self.work = work
        self.inherited: tuple[int, ...] = ()  # file descriptors that steps inherit
        self.running: set[subprocess.Popen[str]] = set()
        self.environment = {str(k): str(v) for k, v in environment.items()}

    def log(self, step: str) -> Path:
        return self.work / "logs" / f"{step.replace('/', '-')}.log"

    def own(self, step: str, command: str, *words: Any, **variables: str) -> None:
        """Run a step of ``sbnmt``."""
        self.command(step, step_command(command, *words), **variables)

    def fairseq(self, step: str, command: str, *words: Any) -> None:
        """Run a command of fairseq's: ``train`` or ``generate``."""
        module = [sys.executable, "-m", f"fairseq_cli.{command}"]
        self.command(step, [*module, *map(str, words)])

    def command(self, step: str, command: list[str], **variables: str) -> None:
        """Run a command with a log, and show of its output what tells how it goes."""
        log = self.log(step)
        log.parent.mkdir(parents=True, exist_ok=True)
        shown = shlex.join(plain(command))
        print(f"\n== {step}\n   {shown}", flush=True)
        started = time.time()
        with open(log, "a", encoding="utf-8") as file:
            file.write(costs.launch_line(shown))
            file.flush()
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={
                    **self.environment,
                    **os.environ,
                    **variables,
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
                    print(f"   {step}: {shorten(line.rstrip())}", flush=True)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.running.discard(process)
            file.write(costs.end_line(usage.ru_maxrss / KIBI / KIBI))
        self.check(step, process.returncode)
        print(f"   {step}: done in {time.time() - started:.0f} s", flush=True)

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


def plain(words: list[str]) -> list[str]:
    """A command as a user would type it."""
    first = [sys.executable, "-m"]
    if words[:2] == first and words[2].startswith("fairseq_cli."):
        words = [words[2].replace("_cli.", "-"), *words[3:]]
    elif words[:2] == first and words[2] == PLUGIN.name:
        words = ["sbnmt", *words[3:]]
    return [word.replace(f"{HOME}/", "") for word in words]


def shorten(line: str) -> str:
    """Keep of fairseq's validation line what a reader looks for."""
    if "| valid |" not in line:
        return line
    parts = [part.strip() for part in line.split("|")]
    kept = [part for part in parts if part.split(" ")[0] in WANTED]
    return " | ".join(kept)
