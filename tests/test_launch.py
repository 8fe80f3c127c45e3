"""Trainings and translations shared by several processes."""

import shutil
import subprocess

import commands
import in_process
import pytest
import torch
from steps import call

from sbnmt_plugin.tools import launch
from sbnmt_plugin.tools.command import step_command
from sbnmt_plugin.tools.commands import train
from sbnmt_plugin.tools.recipes import runner
from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.row_steps import RowSteps


def test_the_batch_stays_the_same_among_processes():
    environment = {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1"}
    words = launch.distributed(["data", "--update-freq", "8"], environment)
    assert words[:3] == ["data", "--update-freq", "2"]
    assert words[-2:] == ["--device-id", "1"]
    assert words[words.index("--distributed-rank") + 1] == "3"
    joined = launch.distributed(["data", "--update-freq=8"], environment)
    assert joined[:3] == ["data", "--update-freq", "2"]
    twice = launch.distributed(["--update-freq", "1", "--update-freq=8"], environment)
    assert twice[:4] == ["--update-freq", "1", "--update-freq", "2"]
    # alone means alone, however many GPUs there are
    alone = ["data", "--distributed-world-size", "1"]
    assert launch.distributed(["data"], {}) == alone
    assert launch.distributed(alone, {}) == alone
    with pytest.raises(ValueError, match=r"must be one number.*but is 8,4"):
        launch.distributed(["data", "--update-freq", "8,4"], environment)
    with pytest.raises(ValueError, match="a multiple of --processes 4"):
        launch.distributed(["data", "--update-freq", "6"], environment)
    with pytest.raises(ValueError, match=r"but is 1: raise it"):
        launch.distributed(["data"], environment)
    with pytest.raises(ValueError, match="but is : raise it"):
        launch.distributed(["data", "--update-freq"], environment)
    for name in "RANK", "LOCAL_RANK":
        lacking = {k: v for k, v in environment.items() if k != name}
        with pytest.raises(ValueError, match=f"^{name} must be set .* is 4"):
            launch.distributed(["data", "--update-freq", "8"], lacking)


def test_a_training_without_an_architecture_is_refused():
    with pytest.raises(ValueError, match=r"^--arch must be given, such as sb_trans"):
        call(train, "data", "--update-freq", 8)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """The same recipe by one process and by two, which begin with the same text."""
    root = tmp_path_factory.mktemp("processes")
    folder = in_process.write_recipe(
        root / "recipe",
        rows=["teacher-l2r"],
        teacher_train={"--update-freq": 2, "--max-tokens": 300},
    )
    one, two = root / "by1", root / "by2"
    in_process.make(folder, "--work", one, "--processes", 1)
    shutil.copytree(one, two, ignore=lambda *_: {"teacher-l2r", "results", "logs"})
    words = step_command("recipe", folder, "--work", two, "--processes", 2)
    with open(root / "told", "w") as told:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=told)
    return one, two


def test_a_recipe_tells_nothing_of_fairseqs_beside_its_steps(two_runs):
    assert not (two_runs[0].parent / "told").read_text()


def test_a_batch_that_cannot_be_shared_is_refused_before_anything_runs(tmp_path):
    folder = in_process.write_recipe(tmp_path / "recipe", rows=["teacher-l2r"])
    said = "step train/teacher-l2r .* --update-freq must be .* but is 1: raise it"
    with pytest.raises(ValueError, match=said):
        in_process.make(folder, "--work", tmp_path / "work", "--processes", 2)
    assert not (tmp_path / "work" / "text").exists()


def test_two_processes_train_what_one_does(two_runs):
    states = [
        commands.load(work / "teacher-l2r" / "checkpoint_last.pt") for work in two_runs
    ]
    sizes = [
        state["cfg"]["distributed_training"]["distributed_world_size"]
        for state in states
    ]
    assert sizes == [1, 2]
    updates = [s["optimizer_history"][-1]["num_updates"] for s in states]
    assert updates[0] == updates[1] > 1
    for name, value in states[0]["model"].items():
        torch.testing.assert_close(value, states[1]["model"][name], rtol=0, atol=2e-4)


def test_two_workers_translate_what_one_does(two_runs, tmp_path, monkeypatch):
    folder = two_runs[0].parent / "recipe"
    settings = load_recipe(folder, small=False)
    settings["pseudo"] = ["--shard-size", 7]
    found = []
    for processes in (1, 2):
        work = tmp_path / str(processes)
        shutil.copytree(two_runs[0], work)
        steps = RowSteps(Run(settings, work, folder, processes=processes))
        pseudo = steps.pseudo("l2r")
        with monkeypatch.context() as here:
            if processes == 1:
                here.setattr(runner.Runner, "run", in_process.run)
            runner.Runner(work, {}).make(pseudo)
        found.append(pseudo.makes.read_text())
    assert found[0] == found[1]
    assert found[0].count("\n") == 60
    logs = sorted(path.name for path in (work / "logs").glob("pseudo*"))
    assert logs == ["pseudo-l2r-0.log", "pseudo-l2r-1.log"]
