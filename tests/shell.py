"""A shell script whose commands run in this process, where everything is imported."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import runpy
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from fairseq import checkpoint_utils

MODULES = {
    "sbnmt": "sbnmt_plugin",
    "fairseq-train": "fairseq_cli.train",
    "fairseq-generate": "fairseq_cli.generate",
    "fairseq-interactive": "fairseq_cli.interactive",
}
# what stands on PATH under each name: it hands its words over, and takes output and
# exit status back
STUB = """#!/bin/sh
printf '%s\\n' "${0##*/}" "$@" >'FOLDER/words'
cat 'FOLDER/output'
read -r status <'FOLDER/status'
exit "$status"
"""


def run_script(
    text: str,
    folder: Path,
    change: Callable[[str, list[str]], list[str]],
    typed: str = "",
) -> tuple[int, str]:
    """Run a bash script in a folder, until its first command that fails.

    Args:
        text: of the script.  Its commands run one after the other, and no word of
            theirs holds a line break.
        change: command and words to words, for options of a test's own.
        typed: what fairseq-interactive reads.

    Returns:
        Exit status and output, what the commands print included.
    """
    place = folder / "stubs"
    place.mkdir(exist_ok=True)
    for name in ("words", "output", "status"):
        with contextlib.suppress(FileExistsError):
            os.mkfifo(place / name)
    for name in (*MODULES, "python"):
        (place / name).write_text(STUB.replace("FOLDER", str(place)))
        (place / name).chmod(0o755)
    shell = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env={**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    printed: list[str] = []

    def follow() -> None:
        printed.append(shell.stdout.read())
        (place / "words").write_text("")  # the last one: nobody else writes any more

    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    before = os.getcwd()
    os.chdir(folder)
    try:
        while words := (place / "words").read_text().splitlines():
            name, *rest = words
            status, output = called(name, change(name, rest), typed)
            (place / "output").write_text(output)
            (place / "status").write_text(f"{status}\n")
        return shell.wait(), printed[0]
    finally:
        os.chdir(before)
        shell.kill()


def called(name: str, words: list[str], typed: str) -> tuple[int, str]:
    """Exit status and standard output of one command, and of a failed one the rest."""
    # fairseq keeps the best score of the process's last training there
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    output, errors = io.StringIO(), io.StringIO()
    status: object = None
    with contextlib.ExitStack() as stack:
        # the module is there already, from another test: it is run anew all the same
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", RuntimeWarning)
        for logger in logging.getLogger(), logging.getLogger("fairseq"):
            stack.callback(logger.setLevel, logger.level)  # other tests have their own
        stack.enter_context(mock.patch.object(sys, "argv", [name, *words]))
        stack.enter_context(mock.patch("signal.signal"))
        reading = stack.enter_context(mock.patch("fileinput.input"))
        reading.return_value.__enter__.return_value = io.StringIO(typed)
        stack.enter_context(contextlib.redirect_stdout(output))
        stack.enter_context(contextlib.redirect_stderr(errors))
        try:
            if name == "python":
                exec(words[words.index("-c") + 1], {})
            else:
                runpy.run_module(MODULES[name], run_name="__main__", alter_sys=False)
        except SystemExit as stop:
            status = stop.code
    if not status:
        return 0, output.getvalue()
    return int(status), output.getvalue() + errors.getvalue()
