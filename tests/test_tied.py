"""Killed processes: the commands that they started end, and folders are free."""

import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest
from commands import ROOT
from steps import environment

from sbnmt_plugin import in_use
from sbnmt_plugin.tools import command

SLEEPS = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
# starts a command, says its number, and waits for it
STARTS = """
import subprocess, sys
sys.argv[0] = "sbnmt"  # which imports no torch
from sbnmt_plugin.tools.command import tied
words = sys.argv[2:]
child = subprocess.Popen(tied(words) if sys.argv[1] == "tied" else words)
print(child.pid, flush=True)
child.wait()
"""
RECIPE = ROOT / "examples" / "toy" / "recipe.yaml"
SLOW = "import os, time\nopen({pid!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"


def lives(pid):
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid, seconds=20):
    for _ in range(seconds * 50):
        if not lives(pid):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("kind", ["tied", "loose"])
def test_a_tied_command_ends_with_the_one_that_started_it(kind):
    words = [sys.executable, "-c", STARTS, kind, *SLEEPS]
    parent = subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=environment()
    )
    child = int(parent.stdout.readline())
    assert parent.stdout.readline() == "up\n"
    parent.kill()
    parent.wait()
    if kind == "tied":
        assert ends(child)
    else:  # which shows that the test can fail
        assert not ends(child, 1)
        os.kill(child, signal.SIGKILL)


def test_a_command_that_was_started_too_late_ends_at_once():
    words = command.tied(SLEEPS)
    words[words.index(str(os.getpid()))] = "1"  # the parent has ended meanwhile
    done = subprocess.run(words, capture_output=True, timeout=30)
    assert done.returncode == -signal.SIGTERM and not done.stdout


def test_a_tied_command_keeps_status_and_messages():
    words = [sys.executable, "-c", "import sys; print('x'); sys.exit(3)"]
    done = subprocess.run(command.tied(words), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "x\n")
    done = subprocess.run(command.tied(["/no/such"]), capture_output=True, text=True)
    assert done.returncode == 127 and done.stderr.startswith("/no/such: No such file")


def test_a_driver_killed_outright_takes_its_step_along(tmp_path):
    """SIGKILL to the driver alone: it can do nothing for its step any more."""
    folder, work = tmp_path / "recipe", tmp_path / "work"
    folder.mkdir()
    (folder / "recipe.yaml").write_text(RECIPE.read_text())
    pid = tmp_path / "pid"
    (folder / "prepare.py").write_text(SLOW.format(pid=str(pid)))
    words = [sys.executable, "-m", "sbnmt_plugin", "recipe", folder, "--work", work]
    driver = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment())
    for _ in range(3000):
        if pid.exists() and pid.read_text():
            break
        time.sleep(0.02)
    step = int(pid.read_text())
    assert lives(step)
    driver.kill()
    driver.wait()
    assert ends(step)
    with in_use.hold(work):  # nobody holds the folder
        pass


def test_a_folder_is_waited_for_while_a_killed_drivers_step_ends(tmp_path):
    with open(tmp_path / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ending = subprocess.Popen(["sleep", "1"], pass_fds=(file.fileno(),))
    with in_use.hold(tmp_path):
        assert ending.wait() == 0
