"""Calls of the steps of ``sbnmt``, in this process and in one of their own."""

import os
import subprocess
import sys
import time
from unittest import mock

from commands import ROOT

from sbnmt_plugin.tools.command import child_environment


def call(module, *words):
    """Run the main() of a step's module with a command line; errors pass through."""
    with mock.patch.object(sys, "argv", [f"sbnmt {name_of(module)}", *map(str, words)]):
        module.main()


def name_of(module):
    """Return the name of a step, given its module."""
    return module.__name__.rpartition(".")[2].replace("_", "-")


def put(path, *lines):
    """Write lines to a file, whose folder is made if need be; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def ran(words, **options):
    """Run a command to its end; it has its output and its errors as text."""
    words = list(map(str, words))
    return subprocess.run(words, capture_output=True, text=True, **options)


def imported(*words):
    """Return the names of the modules that Python imports for a command line."""
    done = ran([sys.executable, "-X", "importtime", *words], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return {line.split("|")[-1].strip() for line in done.stderr.splitlines()}


def pseudo_command(data, teacher, source, output, *words):
    """Return the words of ``sbnmt pseudo`` with an R2L teacher and a beam of 2."""
    command = [data, "--path", teacher, "--sb-direction", "r2l", "--cpu", "--beam", 2]
    return [*command, "--input", source, "--output", output, *words]


def wait_for(condition, seconds=120):
    """Wait until something is so."""
    for _ in range(seconds * 20):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("this took too long")


def environment():
    """Return the variables of a process that a step starts."""
    return {**os.environ, **child_environment()}
