"""Killed processes: what they leave behind, and what goes on without them."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from unittest import mock

import pytest
from campaign import __main__ as campaign
from commands import ROOT
from steps import call, environment

from sbnmt_plugin.__main__ import main
from sbnmt_plugin.tools import command, in_use, unfinished
from sbnmt_plugin.tools.recipes import costs

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


# ---------------------------------------------------------------- temporary files


def left_by(pid, path):
    """What a process of that number would leave if it were killed."""
    return path.with_name(f".{path.name}.{pid}.tmp")


def test_what_a_killed_writer_has_left_is_removed_by_the_next(tmp_path):
    path, other = tmp_path / "out.tsv", tmp_path / "out.tsv.more"
    abandoned = left_by(4_000_001, path)
    abandoned.write_text("half a li")
    folder = left_by(4_000_002, path)
    (folder / "inner").mkdir(parents=True)
    kept = [left_by(4_000_001, other), tmp_path / ".out.tsv.tmp"]
    for name in kept:
        name.touch()  # of another file, and of another kind
    with unfinished.new_file(path) as file:
        file.write("whole\n")
    assert sorted(tmp_path.iterdir()) == sorted([path, *kept])


def test_what_another_is_writing_is_left_alone(tmp_path):
    path = tmp_path / "out"
    with open(left_by(4_000_001, path), "w") as theirs:
        fcntl.flock(theirs, fcntl.LOCK_EX)
        with unfinished.new_file(path) as file:
            file.write("ours\n")
        assert os.path.exists(theirs.name)
    assert path.read_text() == "ours\n"


def test_two_writers_of_one_name_take_turns(tmp_path):
    """Of the same number on two machines that share the folder."""
    path = tmp_path / "out"
    words = "import os, sys, time\nsys.argv[0] = 'sbnmt'  # which imports no torch\n"
    words += "from sbnmt_plugin.tools.unfinished import new_file\n"
    words += "os.getpid = lambda: 7\n"
    words += "with new_file(sys.argv[1]) as file:\n"
    words += "    for i in range(200):\n"
    words += "        file.write(sys.argv[2] + '\\n')\n"
    words += "        file.flush(); time.sleep(0.001)\n"
    started = [
        subprocess.Popen([sys.executable, "-c", words, path, name], env=environment())
        for name in ("a", "b")
    ]
    assert [process.wait() for process in started] == [0, 0]
    lines = path.read_text().split()
    assert len(lines) == 200 and len(set(lines)) == 1
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_appears_when_it_is_whole_and_replaces_the_old(tmp_path):
    path = tmp_path / "report"
    for content in ("one", "two"):
        with unfinished.new_folder(path) as folder:
            (folder / "file").write_text(content)
            assert not path.exists() or (path / "file").read_text() == "one"
    assert (path / "file").read_text() == "two"
    with pytest.raises(KeyError), unfinished.new_folder(path) as folder:
        (folder / "file").write_text("three")
        raise KeyError
    assert (path / "file").read_text() == "two"
    assert list(tmp_path.iterdir()) == [path]


# ---------------------------------------------------------------- the clock


def test_a_clock_that_is_set_back_takes_nothing_from_the_cost():
    times = ["10:00:00", "10:00:20", "09:00:00", "09:00:30"]
    lines = [f"2026-11-21 {time} | INFO | x" for time in times]
    lines.insert(0, f"{costs.LAUNCH}2026-11-21 10:00:00 | commit x |")
    assert costs.seconds(lines) == 50


# ---------------------------------------------------------------- the campaign


def run_here(self, commands):
    """Undisturbed commands need no process of their own: fairseq is imported once."""
    for words in commands:
        with mock.patch.object(sys, "argv", ["sbnmt", *words[3:]]):
            main()


@pytest.fixture(scope="module")
def accidents(data, teacher, tmp_path_factory):
    from campaign.accidents import Accidents
    from campaign.faults import Faults

    faults = Faults(tmp_path_factory.mktemp("campaign"), 5)
    faults.stage.data, faults.stage.teacher = data, teacher.parent
    faults.stage.direction = "r2l"
    return Accidents(faults)


@pytest.mark.parametrize("name, limit", [("binarise", 300), ("translate", 100)])
def test_a_full_disk_and_then_a_kill_lose_nothing(accidents, name, limit, monkeypatch):
    """A short round of the campaign: one error, a kill while files are written, and
    then the files of a run that nobody disturbed."""
    from campaign.processes import small_files

    monkeypatch.setattr(type(accidents.faults), "whole", run_here)
    subject = accidents.subjects[name]
    trial, place = accidents.failed(f"full disk {name}", name, small_files(limit))
    accidents.faults.disturb(subject, place, 0.05, trial, aimed=True)
    assert sum(trial.kills.values()) >= 1
    accidents.completed(subject, place, trial)
    assert trial.files and not trial.faults


def test_losses_would_be_found(tmp_path):
    from campaign import faults, processes, subjects

    (tmp_path / ".a.7.tmp").touch()
    assert faults.unfinished(tmp_path)
    told = faults.differences({"a": "1", "b": "1"}, {"b": "2", "c": "1"})
    assert told == ["differs: b", "missing: a", "too many: c"]
    running = processes.start(SLEEPS, tmp_path / "log", "here")
    for _ in range(100):
        if processes.alive("here"):
            break
        time.sleep(0.02)
    assert processes.alive("here") and not processes.alive("there")
    running.process.kill()
    running.wait()
    times = {"score": 1, "seconds": [2], "rows": [{"tokens/s": 3, "steps": 4}]}
    assert subjects.without_times(times) == {"score": 1, "rows": [{"steps": 4}]}


@pytest.mark.parametrize(
    "words",
    [
        ["recipe", "toy", "--work", "a:b"],
        ["binarise", "-s", "a", "-t", "b", "--destdir", "a:b"],
    ],
)
def test_a_folder_that_fairseq_would_split_is_refused(words, tmp_path):
    words = [sys.executable, "-m", "sbnmt_plugin", *words]
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=tmp_path, env=environment()
    )
    assert done.returncode == 2 and "must have no : in it" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words, named",
    [
        (("fuzz", "--kills", 3), "--kills is an option of campaign faults"),
        (("fuzz", "--subjects", "recipe"), "--subjects is an option of campaign"),
        (("faults", "--minutes", 1), "--minutes is an option of campaign fuzz"),
        (("faults", "--kills", 0), "--kills must be > 0"),
    ],
)
def test_options_that_a_campaign_does_not_have_are_refused(tmp_path, words, named):
    with pytest.raises(ValueError, match=named):
        call(campaign, *words, "--output", tmp_path / "new")
    assert not (tmp_path / "new").exists()
