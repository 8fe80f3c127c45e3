"""A command whose output, time and memory go to a log, here or on another machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sbnmt_plugin.tools.command import child_environment, tied
from sbnmt_plugin.tools.recipes import costs

# lines of a step's output that tell how it goes
SHOWN = re.compile(
    r"\| valid \||\d sentences, |written; |\d translated, |\d of \d+ shards|"
    r"^  source |^     [lr]2[lr] |^(train|valid|test): "
)
KIBI = 1024
Tell = Callable[[str], None]  # takes a line of output


@dataclass
class Logged:
    """One command; :meth:`run` it once, or again after it has been ended.

    Attributes:
        words: of the command that is executed.
        typed: the same as a user types it.
        log: file to append to.
        defaults: variables; one of the same name in the environment wins.
        variables: that win over those of the environment.
        inherited: file descriptors that the command inherits.
    """

    words: Sequence[str]
    typed: str
    log: Path
    defaults: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    inherited: tuple[int, ...] = ()
    process: subprocess.Popen[str] | None = field(default=None, init=False)
    ending: bool = field(default=False, init=False)

    def run(self, tell: Tell, hear: Tell | None = None) -> int:
        """Execute it to its end, which comes with that of this thread at the latest.

        Args:
            tell: gets the lines of its output that tell how it goes.
            hear: gets every line.

        Returns:
            Its exit status, negative for the number of a signal that has ended it.
        """
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(costs.launch_line(self.typed))
            file.flush()
            self.process = process = subprocess.Popen(
                tied(list(self.words)),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env=self.defaults | os.environ | self.variables | child_environment(),
                pass_fds=self.inherited,
            )
            if self.ending:
                process.terminate()
            assert process.stdout is not None
            for line in process.stdout:
                file.write(line)
                if hear is not None:
                    hear(line)
                if SHOWN.search(line):
                    file.write(costs.at_line())
                    tell(line.rstrip())
                file.flush()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            file.write(costs.end_line(usage.ru_maxrss / KIBI / KIBI))
        return process.returncode

    def end(self) -> None:
        """Ask a command to end that runs, or is about to."""
        self.ending = True
        if self.process is not None:
            self.process.terminate()
