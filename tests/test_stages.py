"""Trainings in stages, and rows that are decoded with rescoring."""

import json
import shutil
from pathlib import Path
from unittest import mock

import in_process
import pytest
import torch
from commands import assert_equal_models, load
from fairseq.trainer import Trainer
from recipe_drivers import train

from sbnmt_plugin.tools.recipes import costs, stages
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.stages import (
    FUNCTION,
    training_options,
    training_stages,
)
from sbnmt_plugin.tools.results import work_folder_rows as results

ENDS = "-stage-1", "-stage-2", ""  # of the stages' logs
ROWS = ["sb-staged", "sb-staged+rescored", "sb-noise-lambda0"]
STAGES = [
    {"data": "gold", "--max-epoch": 2},
    {"data": "two", "--max-epoch": 1, "--lr": 0.001},
    {"data": "six", "--max-epoch": 3, "--lr": 0.001, "continue": True},
]


def write(folder, **changes):
    changes = {"stages": {"sb-staged": STAGES}, "average": 2, **changes}
    return in_process.write_recipe(folder, **changes)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """All new rows of a tiny recipe, run in this process."""
    folder = tmp_path_factory.mktemp("stages")
    work = folder / "work"
    in_process.make(write(folder / "toy"), "--work", work, "--rows", *ROWS)
    return work


def test_all_stages_are_trained_and_counted(made):
    rows = {r["name"]: r for r in json.loads((made / "table.json").read_text())["rows"]}
    assert set(rows) == set(ROWS)
    row = rows["sb-staged"]
    logs = [made / "logs" / f"train-sb-staged{end}.log" for end in ENDS]
    seconds = [costs.step_cost(log)["seconds"] for log in logs]
    assert row["seconds"] == sum(seconds)  # whole ones: a stage may have none
    rescored = rows["sb-staged+rescored"]
    assert rescored["updates"] == row["updates"]
    assert rescored["title"] == row["title"] + ", rescored"
    folders = made / "sb-staged" / "stage-1", made / "sb-staged"
    states = [load(folder / "checkpoint_last.pt") for folder in folders]
    found = [state["optimizer_history"][-1]["num_updates"] for state in states]
    assert row["updates"] == sum(found)  # the second began anew


def test_a_stage_begins_with_the_weights_of_the_one_before(made):
    log = (made / "logs" / "train-sb-staged-stage-2.log").read_text()
    assert "loading pretrained model from" in log
    assert "sb-staged/stage-1/checkpoint_last.pt" in log


def test_a_rescored_row_is_the_same_model_searched_otherwise(made):
    assert not (made / "sb-staged+rescored").exists()
    plain, rescored = (
        [json.loads(line) for line in (made / "results" / f"{name}.jsonl").open()]
        for name in ROWS[:2]
    )
    assert "l2r" in rescored[0]["l2r"] and "l2r" not in plain[0]["l2r"]


def test_three_triples_are_trained_on(made):
    lines = (made / "examples" / "three" / "train.src").read_text().splitlines()
    assert len(lines) == 180


def test_every_row_may_have_stages(tmp_path):
    recipe = load_recipe(write(tmp_path / "toy", stages={"sb": STAGES[:2]}), False)
    own = Row("sb-tanh-1.0")
    assert stages.same_training(recipe, own) == own
    first, last = training_stages(recipe, Row("sb", 2, rescored=True))
    assert (first.name, last.name) == ("sb@2/stage-1", "sb@2")
    assert (first.data, first.options["--max-epoch"]) == ("gold", 2)


def test_a_staged_row_needs_no_stages_of_the_recipe(tmp_path):
    recipe = load_recipe(write(tmp_path / "toy", stages={}), False)
    for name in "sb-staged", "sb-staged-lambda0":
        found = training_stages(recipe, Row(name))
        assert [stage.data for stage in found] == ["gold", "two"]
        assert not any(stage.continues for stage in found)


@pytest.mark.parametrize(
    ("train", "first", "fine"),
    [
        ({}, {"--max-epoch": 1}, True),
        ({}, {"--max-update": 1}, False),
        ({}, {"--max-epoch": 1, "--max-update": 1}, False),
        ({}, {"--max-epoch": 1, "--stop-time-hours": 1}, False),
        ({}, {}, False),
        ({}, {"--max-epoch": 0}, False),
        ({"--max-epoch": 2}, {}, True),
        ({"--max-update": 9}, {"--max-epoch": 1}, False),
        ({"--max-update": 9}, {"--max-epoch": 1, "--max-update": False}, True),
    ],
    ids=str,
)
def test_what_continues_begins_its_data_at_their_start(tmp_path, train, first, fine):
    """Amid an epoch fairseq's checkpoint says where, and means the data before."""
    recipe = load_recipe(write(tmp_path / "toy"), False)
    kept = {k: v for k, v in recipe["train"].items() if not k.startswith("--max-")}
    recipe |= {"train": {**kept, "--max-tokens": 600, **train}, "sb_train": {}}
    for going_on in False, True:
        second = {"data": "two", "--max-epoch": 3, "continue": going_on}
        recipe["stages"] = {"sb": [first, second]}
        if fine or not going_on:
            assert len(training_stages(recipe, Row("sb"))) == 2
        else:
            with pytest.raises(
                ValueError, match=r"stages\.sb: .* by --max-epoch alone"
            ):
                training_stages(recipe, Row("sb"))


@pytest.mark.parametrize("flag", FUNCTION)
def test_what_continues_keeps_its_function(tmp_path, flag):
    recipe = load_recipe(write(tmp_path / "toy"), False) | {"train": {}, "sb_train": {}}
    stages = [{"--max-epoch": 1}, {"--max-epoch": 3, "continue": True, flag: 7}]
    recipe["stages"] = {"sb": stages}
    with pytest.raises(
        ValueError, match=rf"stages\.sb: .* must keep {flag} of the one"
    ):
        training_stages(recipe, Row("sb"))
    stages[1]["continue"] = False
    assert len(training_stages(recipe, Row("sb"))) == 2


def test_a_cost_is_that_of_all_stages_and_their_updates_count_once(tmp_path):
    recipe = {"stages": {"sb-staged": [{}, {}, {"continue": True}, {"continue": True}]}}
    recipe = {**load_recipe(write(tmp_path / "toy"), False), **recipe}
    found = training_stages(recipe, Row("sb-staged"))
    for stage, updates in zip(found, (100, 250, 300, 340)):  # as each log counts
        line = f"x | train | epoch 001 | loss 6 | wpb 10 | num_updates {updates}\n"
        memory = f"train_inner | epoch 001: 1 / 2 num_updates={updates}, gb_free="
        line += f"x | {memory}{updates / 10}\nx | total memory = 80.0 GB ; name = H\n"
        text = costs.launch_line("x") + line
        (tmp_path / f"{stage.log}.log").write_text(text)
    cost = results.training_cost(tmp_path, found)
    assert cost["tokens"] == 10 * cost["updates"] == 10 * (100 + 340)
    assert cost["peak GPU memory (GiB)"] == 80 - 10  # of the first stage


def test_a_missing_log_leaves_the_cost_out(tmp_path):
    recipe = load_recipe(write(tmp_path / "toy"), False)
    (tmp_path / "train-sb-staged.log").write_text(costs.launch_line("x"))
    found = training_stages(recipe, Row("sb-staged"))
    assert results.training_cost(tmp_path, found) == {}


# several updates an epoch, some of them saved in its middle; dropout, whose draws must
# be the same again
SHORT = {"--max-tokens": 1200, "--save-interval-updates": 4, "--keep-last-epochs": 2}
SHORT |= {"--dropout": 0.1, "--disable-validation": None}
KILLED_AT = 18  # updates of the second stage that are begun


def saved(work):
    """The second stage's last checkpoint."""
    return load(work / "sb-staged" / "checkpoint_last.pt")


def updates(work):
    return saved(work)["optimizer_history"][-1]["num_updates"]


@pytest.fixture(scope="module", params=[False, True], ids=["anew", "continued"])
def killed(request, made, tmp_path_factory):
    """A recipe, its work folder amid the second stage, and at its end.

    What is there amid it is what a kill would leave.
    """
    base = tmp_path_factory.mktemp("killed")
    stages = [{"data": "gold", "--max-epoch": 1}, {"data": "two", "--max-epoch": 2}]
    if request.param:
        stages[1] |= {"--max-epoch": 3, "continue": True}
    stages = [{**SHORT, **stage} for stage in stages]
    folder = write(base / "toy", stages={"sb-staged": stages})
    left, whole = base / "killed", base / "whole"
    for data in "data", "data-two":
        shutil.copytree(made / data, whole / data)
    begun, step = [], Trainer.train_step

    def train_step(self, *words, **options):
        if Path(self.cfg.checkpoint.save_dir) == whole / "sb-staged":  # the last stage
            begun.append(self)
            if len(begun) == KILLED_AT:
                shutil.copytree(whole, left)
        return step(self, *words, **options)

    with mock.patch.object(Trainer, "train_step", train_step):
        train(folder, whole)
    return folder, left, whole


def again(killed, work, change=None):
    """A copy of the killed work folder is changed, and its training repeated."""
    folder, left, whole = killed
    shutil.copytree(left, work)
    if change:
        change(work)
    own, other = train(folder, work), whole / "sb-staged" / "model.pt"
    return load(own)["model"], load(other)["model"]


def nothing_saved(work):
    for path in (work / "sb-staged").glob("checkpoint*"):
        path.unlink()


@pytest.mark.parametrize("change", [None, nothing_saved], ids=["saved", "not yet"])
def test_a_stage_that_is_killed_and_repeated_gives_the_same_model(
    killed, tmp_path, change
):
    """To the bit, and what was saved is not trained again.

    That the kill came before the second stage had saved anything is pretended.
    """
    _, left, whole = killed
    iterator = saved(left)["extra_state"]["train_iterator"]
    assert iterator["iterations_in_epoch"]  # saved in the middle of an epoch
    assert not (left / "sb-staged" / "done").exists()
    work = tmp_path / "work"
    model, expected = again(killed, work, change)
    assert_equal_models(model, expected)
    assert updates(work) == updates(whole) > updates(left) + 2
    first, second = (
        (work / "logs" / f"train-sb-staged{end}.log").read_text()
        for end in ("-stage-1", "")
    )
    assert (first.count(costs.LAUNCH), second.count(costs.LAUNCH)) == (1, 2)
    loads = f"Loaded checkpoint {work}/sb-staged/checkpoint_last.pt"
    assert second.count(loads) == (change is None)


def test_the_comparison_of_models_can_fail(killed, tmp_path):
    """As if the optimiser began anew."""

    def change(work):
        state = saved(work)
        for moments in state["last_optimizer_state"]["state"].values():
            moments["exp_avg"].zero_()
        torch.save(state, work / "sb-staged" / "checkpoint_last.pt")

    model, expected = again(killed, tmp_path / "work", change)
    with pytest.raises(AssertionError):
        assert_equal_models(model, expected)


def test_a_seed_of_a_row_wins_over_the_recipes(tmp_path):
    """Two seeds would else be one training twice."""
    recipe = load_recipe(write(tmp_path / "toy"), False)
    recipe["train"] = {**recipe["train"], "--seed": 5}
    seeds = [training_options(recipe, Row("sb", seed=n))["--seed"] for n in (1, 2, 5)]
    assert seeds == [5, 2, 5]
