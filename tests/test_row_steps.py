"""The steps of a recipe's rows, from the text to the table."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest import mock

import in_process
import pytest
from recipe_drivers import Noted, noted, steps_in
from steps import put

from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.recipes import runner, systems
from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.parsed import check_options
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.row_steps import RowSteps
from sbnmt_plugin.tools.recipes.rows import Row, asked_rows
from sbnmt_plugin.tools.recipes.step import Step, in_order
from sbnmt_plugin.tools.recipes.systems.system import DIRECTIONS
from sbnmt_plugin.tools.results import table


def test_the_driver_makes_every_row_of_the_comparison(tmp_path, capsys):
    folder, work = in_process.write_recipe(tmp_path / "recipe"), tmp_path / "work"
    wanted = [*systems.PAPER, "sb-tanh-1.0", "sb@2"]
    in_process.make(folder, "--work", work, "--rows", "paper", *wanted[-2:])
    output = capsys.readouterr().out
    made = json.loads((work / "table.json").read_text())
    rows = {row["name"]: row for row in made["rows"]}
    assert set(rows) == set(wanted)
    assert made["command"] == f"sbnmt recipe {folder}"
    assert "== train/sb-tanh-1.0" not in output  # it is the recipe's own sb
    assert rows["sb-tanh-1.0"]["tokenised BLEU"] == rows["sb"]["tokenised BLEU"]
    assert rows["sb"]["updates"] > 0
    assert rows["sb"]["tokens"] > 0
    assert rows["sb@2"]["seed"] == 2
    assert made["opponent"] in systems.OPPONENTS
    assert "p" not in rows[made["opponent"]]
    assert all("p" in row for name, row in rows.items() if name != made["opponent"])
    assert set(rows["sb-six"]["interaction"]) == set(table.PROBES)
    assert set(rows["sb-six"]["reading"]) == set(table.PROBES)
    for name in "abd", "abd-two":
        assert set(rows[name]["interaction"]) == set(table.PROBES)
        assert not {"reading", "L2R wins"} & set(rows[name])
    assert "interaction" not in rows["sb-lambda0"]
    lines = {
        kind: len(texts.read_lines(work / "examples" / kind / "train.src"))
        for kind in ("pl", "pl-pr", "one", "two", "six")
    }
    assert lines == {"pl": 120, "pl-pr": 180, "one": 60, "two": 120, "six": 360}
    for row in rows.values():
        assert row["title"] in output
    # all is done: nothing runs any more, and another run starts from these targets
    in_process.make(folder, "--work", work)
    assert "==" not in capsys.readouterr().out
    other = tmp_path / "other"
    for direction in DIRECTIONS:
        name = f"pseudo/{direction}.tsv"
        put(other / name, *texts.read_lines(work / name))
    in_process.make(folder, "--work", other, "--rows", "sb")
    output = capsys.readouterr().out
    assert "== train/sb" in output
    assert "== train/teacher" not in output
    ours, theirs = (f / "results" / "sb.txt" for f in (other, work))
    assert ours.read_text() == theirs.read_text()


def test_rows_that_share_a_model_wait_for_it(tmp_path):
    """As sb and its place in the grid, side by side."""
    steps = steps_in(tmp_path / "recipe", tmp_path / "work")
    runner = Noted(tmp_path / "work")
    runner.made.add(steps.data("two"))

    def slowly(step):
        runner.begun.append(step)
        time.sleep(0.2)

    runner.run = slowly
    rows = [Row("sb"), Row("sb-tanh-1.0")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(runner.make, map(steps.model, rows)))
    assert runner.names == ["train/sb", "average/sb"]


def test_a_row_starts_from_the_model_of_its_own_seed(tmp_path):
    """A teacher is of the first; what the model before has cost, the row has too."""
    steps = steps_in(tmp_path / "recipe", tmp_path / "work")
    rows = [Row(name, 2) for name in ("sb-reader", "sb-reader-two", "sb-finetuned")]
    starts = {
        step.name: str(step.words[step.words.index("--finetune-from-model") + 1])
        for step in in_order(map(steps.model, rows))
        if "--finetune-from-model" in step.words
    }
    expected = {
        "train/sb-reader@2": "sb-noise-lambda0@2",
        "train/sb-reader-two@2": "sb-lambda0@2",
        "train/sb-finetuned@2": "teacher-l2r",
    }
    assert starts == {
        step: str(tmp_path / "work" / row / "model.pt")
        for step, row in expected.items()
    }


def test_triples_without_their_last_file_are_not_whole(tmp_path):
    steps = steps_in(tmp_path / "recipe", tmp_path / "work")
    examples = steps.examples("two")
    for suffix in ("src", "tgt"):
        put(tmp_path / "work" / "examples" / "two" / f"train.{suffix}", "a")
    assert noted(steps, examples, made=examples.inputs).names == ["examples/two"]
    put(tmp_path / "work" / "examples" / "two" / "train.r2l", "a")
    assert noted(steps, examples, made=examples.inputs).names == []


def test_building_the_steps_reads_and_writes_nothing(tmp_path):
    folder = in_process.write_recipe(tmp_path / "recipe")
    settings = load_recipe(folder, small=False)
    settings["train"] = {**settings["train"], "--share-all-embeddings": None}
    rows = asked_rows(["paper", "histories", "both-ways", "parallel", "reading"])
    refused = mock.Mock(side_effect=AssertionError)
    with mock.patch("builtins.open", refused), mock.patch("os.stat", refused):
        steps = RowSteps(Run(settings, tmp_path / "work", folder))
        found = in_order(steps.printed(rows, []))
    names = [step.name for step in found]
    assert len(set(names)) == len(names) > 100
    places = {step: place for place, step in enumerate(found)}
    for step in found:
        assert all(places[needed] < places[step] for needed in step.inputs)


def test_another_engine_makes_pseudo_targets_on_request(tmp_path):
    words = {}
    for engine in ("fairseq", "ctranslate2"):
        steps = steps_in(tmp_path / engine, tmp_path / "work", pseudo_engine=engine)
        words[engine] = [str(word) for word in steps.pseudo("l2r").words]
        check_options([steps.pseudo("l2r")])
    usual, other = words.values()
    place = other.index("--engine")
    assert other[place + 1] == "ctranslate2"
    assert other[:place] + other[place + 2 :] == usual  # which old work folders have


def test_the_work_of_a_step_is_shared_by_workers(tmp_path):
    steps = steps_in(tmp_path / "recipe", tmp_path / "work", train={})

    def workers(**changes):
        run = replace(steps.run, processes=2, **changes)
        return runner.workers_of(RowSteps(run).pseudo("l2r"))

    parts = workers()
    assert [(s.name, s.gpus, s.workers) for s in parts] == [
        ("pseudo/l2r/0", 1, 2),
        ("pseudo/l2r/1", 1, 2),
    ]
    assert [part.words[-4:] for part in parts] == [
        ["--of", "2", "--worker", str(worker)] for worker in (0, 1)
    ]
    on_cpu = workers(settings={**steps.settings, "train": {"--cpu": None}})
    assert not any(part.gpus for part in on_cpu)


@pytest.mark.parametrize(
    ("chosen", "count", "gpus", "expected"),
    [
        ("4,5", 2, 1, ["4", "5"]),
        ("4,5", 3, 1, ["4", "4", "5"]),  # more workers than GPUs share them
        ("4", 2, 1, [None, None]),  # see the only one anyway
        ("", 2, 1, [None, None]),  # the user has hidden them
        ("4,5", 2, 0, [None, None]),  # on the CPU
    ],
)
def test_workers_take_the_gpus_that_the_user_chose(
    tmp_path, monkeypatch, chosen, count, gpus, expected
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    seen = []

    def note(self, step, command):
        seen.append(command.variables.get("CUDA_VISIBLE_DEVICES"))

    monkeypatch.setattr(runner.Runner, "run_here", note)
    bench = runner.Runner(tmp_path / "work", {})
    step = Step("pseudo/l2r", "", ["ls"], tmp_path / "x", gpus=gpus, workers=count)
    for _ in range(2):  # what was lent is given back
        bench.run(step)
        assert sorted(seen, key=str) == expected
        seen.clear()
