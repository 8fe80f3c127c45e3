"""Steps that are run: failures, interrupts, kills, and how a run goes on."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import in_process
import pytest
import torch
import yaml
from recipe_drivers import noted, steps_in
from steps import call, put, wait_for

from sbnmt_plugin import in_use
from sbnmt_plugin.tools.command import step_command
from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.recipes import costs, gpus, runner
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.step import Step
from sbnmt_plugin.tools.recipes.work_folder import ModelRecord


def test_two_drivers_do_not_share_a_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(in_use, "PATIENCE", 0)

    def held():
        with in_use.hold(tmp_path):
            return True

    with in_use.hold(tmp_path) as lock:
        with pytest.raises(ValueError, match="another run, or a step that it began"):
            held()
        child = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    with pytest.raises(ValueError, match="another run, or a step that it began"):
        held()  # the step lives on
    child.kill()
    child.wait()
    assert held()


def test_a_file_system_without_locks_keeps_nobody_out(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(in_use.fcntl, "flock", flock)
    with in_use.hold(tmp_path), in_use.hold(tmp_path):
        pass


def test_an_interrupted_driver_ends_its_steps(tmp_path):
    recipe = runner.Runner(tmp_path, {})
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    sleep = Step("sleep", "Sleep", words, tmp_path / "nothing")
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(recipe.run, sleep)
        while not recipe.running:
            time.sleep(0.02)
        recipe.stop()
        with pytest.raises(ValueError, match="step sleep failed"):
            step.result()
    assert not recipe.running
    # nor does a row begin that has waited for it
    with pytest.raises(ValueError, match="step sleep is left out"):
        recipe.run(sleep)


def assert_marked_when_synced(folder, sync):
    """The mark says that a model is whole: it must not survive where that is lost."""
    model, synced = folder / "row" / "model.pt", {}

    def watched(*paths):
        sync(*paths)
        synced[model.parent] = sorted(path.name for path in paths)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "sync", watched)
        words = ["cp", put(folder / "made", "weights"), model]
        done = model.with_name("done")
        step = Step("average", "Average", words, model, done=done, marks=True)
        runner.Runner(folder, {}).make(step)
    assert done.exists()
    assert synced.get(model.parent) == [model.name, "row"], (
        "marked before it was on disk"
    )


def test_a_mark_follows_what_is_on_disk(tmp_path):
    assert_marked_when_synced(tmp_path, runner.sync)


def test_the_check_of_marks_can_fail(tmp_path, monkeypatch):
    def make(self, step):
        self.run(step)
        step.complete.touch()
        runner.sync(*step.complete.parent.iterdir())

    monkeypatch.setattr(runner.Runner, "make", make)
    with pytest.raises(AssertionError, match="marked before it was on disk"):
        assert_marked_when_synced(tmp_path, runner.sync)


def test_a_training_that_begins_anew_has_a_log_of_its_own(tmp_path):
    record = ModelRecord(tmp_path / "sb", {"--lr": 1})
    words = ["touch", tmp_path / "sb" / "model.pt"]
    step = Step("train/sb", "Train", words, words[1], record=record)
    log, earlier = (tmp_path / "logs" / f"train-sb.{end}" for end in ("log", "earlier"))

    def launches():
        words[1].unlink(missing_ok=True)
        runner.Runner(tmp_path, {}).make(step)
        return log.read_text().count(costs.LAUNCH)

    assert [launches(), launches()] == [1, 2]  # which goes on
    shutil.rmtree(tmp_path / "sb")
    assert launches() == 1
    assert earlier.read_text().count(costs.LAUNCH) == 2
    put(tmp_path / "sb" / "checkpoint_last.pt", "cut off, and the only one")
    assert launches() == 1


def steps_that(tmp_path, **does):
    """Return a runner whose steps do what they are told, the steps, and those done."""
    made, done = runner.Runner(tmp_path, {}), []

    def run(step):
        does[step.name]()
        done.append(step.name)

    made.run = run
    return made, [Step(name, "", [], tmp_path / name) for name in does], done


def fails():
    raise ValueError("no disk left")


def test_after_a_failure_nothing_begins_and_steps_that_run_end(tmp_path, capsys):
    told = threading.Event()
    never = mock.Mock()
    made, (slow, failing, *others), done = steps_that(
        tmp_path, before=lambda: told.wait(30), fails=fails, a=never, b=never
    )
    # which goes on to its own end, not only to that of the step that runs
    row = Step("row", "", [], tmp_path / "row", inputs=(slow,))
    ran = made.run
    made.run = lambda step: done.append("row") if step is row else ran(step)

    def listen():
        for _ in range(1000):
            if "no disk left" in capsys.readouterr().out:
                told.set()  # it is said while the other row still runs
                return
            time.sleep(0.02)

    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(listen)
        with pytest.raises(ValueError, match="no disk left"):
            made.make_all([row, failing, *others], jobs=2)
        heard.result()
    assert told.is_set()
    assert done == ["before", "row"]
    assert not never.called


def test_a_step_that_several_rows_need_fails_once(tmp_path):
    began = threading.Barrier(3)
    made, (shared,), _ = steps_that(tmp_path, shared=mock.Mock(side_effect=fails))
    rows = [Step(x, "", [], tmp_path / x, inputs=(shared,)) for x in ("a", "b", "c")]
    has, tries = made.has, []
    made.has = lambda step: (step in rows and began.wait(20) < 0) or has(step)
    ran = made.run
    made.run = lambda step: (tries.append(step), time.sleep(0.2), ran(step))
    with pytest.raises(ValueError, match="no disk left"):
        made.make_all(rows, jobs=3)
    assert tries == [shared]


def test_an_interrupt_after_a_failure_ends_the_steps_that_run(tmp_path):
    ended = threading.Event()
    made, steps, _ = steps_that(tmp_path, a=lambda: ended.wait(20), b=fails)
    made.stop = ended.set
    waiting = mock.Mock(side_effect=KeyboardInterrupt)
    interrupted = mock.patch.object(runner, "wait", waiting)
    with interrupted, pytest.raises(KeyboardInterrupt):
        made.make_all(steps, jobs=2)
    assert ended.is_set()


# notes the GPUs that it sees, and waits until as many as it is told have done so
SEES = """
printenv CUDA_VISIBLE_DEVICES >"$1.sees"
for _ in {1..600}; do
  [[ $(ls -- *.sees | wc -l) -lt $2 ]] || break
  sleep 0.05
done
touch "$1"
"""


@pytest.mark.parametrize(
    ("chosen", "wanted", "jobs", "seen"),
    [
        ("4,5", 1, 3, ["4", "4", "5"]),  # the first one twice
        ("4,5", 1, 1, ["4,5"] * 3),
        ("4,5", 0, 3, ["4,5"] * 3),
        ("4", 1, 3, ["4"] * 3),
    ],
    ids=["more than GPUs", "in turn", "on the CPU", "one GPU"],
)
def test_steps_side_by_side_have_a_gpu_each(
    tmp_path, monkeypatch, chosen, wanted, jobs, seen
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    monkeypatch.chdir(tmp_path)
    steps = []
    for name in "abc":
        words = ["bash", "-c", SEES, "bash", name, str(jobs)]
        steps.append(Step(name, "", words, tmp_path / name, gpus=wanted))
    runner.Runner(tmp_path, {}).make_all(steps, jobs=jobs)
    found = [path.read_text().strip() for path in tmp_path.glob("*.sees")]
    assert sorted(found) == seen


def test_gpus_are_those_that_there_are_where_none_is_chosen(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    lender = gpus.Lender()
    with lender.lend(True) as one, lender.lend(False) as none:
        for _ in range(2):  # given back, it is lent again
            with lender.lend(True) as two:
                found = one, two, none
    first, second = ({"CUDA_VISIBLE_DEVICES": name} for name in "01")
    assert found == (first, second, {})


@pytest.mark.parametrize(
    ("targets", "jobs", "workers", "chosen", "seen"),
    [
        (3, 1, 1, {}, "all"),
        (3, 2, 1, {}, "4"),
        (2, 2, 2, {}, "2"),
        (9, 9, 1, {}, "1"),
        (2, 9, 1, {}, "4"),
        (1, 9, 1, {}, "all"),
        (2, 2, 1, {"recipe": "3"}, "3"),
        (2, 2, 1, {"recipe": "3", "user": "5"}, "5"),
    ],
)
def test_commands_side_by_side_share_the_cores(
    tmp_path, monkeypatch, targets, jobs, workers, chosen, seen
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if "user" in chosen:
        monkeypatch.setenv("OMP_NUM_THREADS", chosen["user"])
    own = {"OMP_NUM_THREADS": chosen["recipe"]} if "recipe" in chosen else {}
    made = runner.Runner(tmp_path, own)
    echo, steps = 'echo "${OMP_NUM_THREADS-all}" >>"$1"', []
    for path in [tmp_path / str(place) for place in range(targets)]:
        words = ["bash", "-c", echo, "", path]
        steps.append(Step(path.name, "", words, path, workers=workers))
    made.make_all(steps, jobs=jobs)
    told = [line for step in steps for line in step.makes.read_text().split()]
    assert told == [seen] * workers * targets


def test_processes_of_a_training_keep_the_thread_that_torchrun_gives(tmp_path):
    made = runner.Runner(tmp_path, {})
    made.jobs = 2
    for program, named in ("fairseq-train", True), ("torchrun", False):
        command = made.prepared(Step("a", "", [program], tmp_path / "a"))
        assert ("OMP_NUM_THREADS" in command.defaults) == named


def kill_when(process, condition):
    """Kill a driver and all that it has started as soon as something is there."""
    wait_for(lambda: condition() or process.poll() is not None, 180)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_killed_driver_goes_on_where_it_was(tmp_path, capsys):
    """Killed within the teacher's training, with processes of its own."""
    changes = {"rows": ["teacher-l2r"]}
    folder = in_process.write_recipe(tmp_path / "recipe", **changes)
    settings = yaml.safe_load((folder / "recipe.yaml").read_text())
    settings["train"] |= {"--max-epoch": 12}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(settings))
    work = tmp_path / "work"
    in_process.make(folder, "--work", work, "--prepare")  # the steps before, at once
    command = step_command("recipe", folder, "--work", work)
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL
    )
    saved = work / "teacher-l2r" / "checkpoint2.pt"
    kill_when(process, saved.exists)
    with in_use.hold(work):  # a killed step may take a moment to let the folder go
        pass
    assert not (work / "teacher-l2r" / "done").exists(), "killed too late"
    dictionary = (work / "data" / "dict.src.txt").stat().st_mtime_ns
    capsys.readouterr()
    in_process.make(folder, "--work", work)
    assert "== data" not in capsys.readouterr().out
    assert (work / "data" / "dict.src.txt").stat().st_mtime_ns == dictionary
    log = (work / "logs" / "train-teacher-l2r.log").read_text()
    assert log.count(costs.LAUNCH) == 2
    assert log.count(costs.END) == 1
    assert "Loaded checkpoint" in log
    (row,) = json.loads((work / "table.json").read_text())["rows"]
    assert "epoch 012 | loss" in log
    assert row["updates"] % 12 == 0


@pytest.mark.parametrize("others", [["checkpoint1.pt", "checkpoint2.pt"], []])
def test_a_training_killed_while_it_saved_goes_on(tmp_path, others):
    """fairseq was copying checkpoint2.pt to checkpoint_last.pt."""
    steps = steps_in(tmp_path / "recipe", tmp_path / "work")
    model = steps.model(Row("teacher-l2r"))
    folder = tmp_path / "work" / "teacher-l2r"
    folder.mkdir(parents=True)
    last = folder / "checkpoint_last.pt"
    for age, name in enumerate([*others, last.name]):
        torch.save({"number": age}, folder / name)
        os.utime(folder / name, (age, age))
    whole = last.read_bytes()
    last.write_bytes(whole[:-9])  # the end of a zip file's list
    data = steps.gold()
    assert noted(steps, model, made=[data]).names[0] == "train/teacher-l2r"
    if others:
        assert torch.load(last) == {"number": 1}
    else:
        assert not last.exists()
    # one that is whole is left alone
    last.write_bytes(whole)
    (folder / "done").unlink()
    noted(steps, model, made=[data])
    assert last.read_bytes() == whole


def test_a_failing_step_shows_its_log(tmp_path):
    folder = in_process.write_recipe(tmp_path / "recipe")
    put(folder / "prepare.py", "raise SystemExit('no such corpus')")
    with pytest.raises(
        ValueError, match=r"(?s)step text failed, its log .*no such corp"
    ):
        call(run_recipe, folder, "--work", tmp_path / "work")
