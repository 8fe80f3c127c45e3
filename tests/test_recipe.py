"""sbnmt recipe --prepare: texts here, trainings later or elsewhere."""

from unittest import mock

import corpora
import in_process
import pytest
import yaml
from commands import ROOT
from steps import call, put

from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.recipes import runner

FOLDER = ROOT / "examples" / "techdocs_zh_en"


class Stopped(Exception):
    """At the first step that runs a model."""


def noting(steps):
    """In place of Runner.run: steps by their names, until one runs a model."""

    def run(self, step):
        steps.append(step.name)
        if step.gpus is not None:
            raise Stopped
        in_process.run(self, step)

    return mock.patch.object(runner.Runner, "run", run)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The recipe with few merges, the folder that was prepared, its steps and text."""
    folder = tmp_path_factory.mktemp("prepared")
    settings = yaml.safe_load((FOLDER / "recipe.yaml").read_text())
    settings["bpe"]["merges"] = 40
    put(folder / "recipe" / "recipe.yaml", yaml.safe_dump(settings))
    put(folder / "recipe" / "prepare.py", (FOLDER / "prepare.py").read_text())
    raw, steps = corpora.lay_out_techdocs(folder / "raw"), []
    words = [folder / "recipe", "--work", folder / "work", "--data", raw]
    with noting(steps):
        call(run_recipe, *words, "--prepare")
    return folder / "recipe", folder / "work", steps


def test_it_stops_before_the_first_training(prepared):
    _, work, steps = prepared
    assert steps[0] == "text" and steps[-1] == "data"
    assert {step.partition("/")[0] for step in steps} == {"text", "bpe", "data"}
    found = {path.name for path in work.iterdir()}
    assert found == {".lock", "recipe.json", "text", "bpe", "data", "logs"}


def test_another_machine_goes_on_without_the_raw_files(prepared, tmp_path):
    recipe, work, _ = prepared
    copy = tmp_path / "elsewhere"
    work.rename(copy)
    steps = []
    with noting(steps), pytest.raises(Stopped):
        call(run_recipe, recipe, "--work", copy, "--rows", "teacher-l2r")
    copy.rename(work)
    assert steps == ["train/teacher-l2r"]


def test_raw_files_that_are_not_read_are_named(prepared, tmp_path, capsys):
    recipe, work, _ = prepared
    raw = work.parent / "raw"
    for folder, told in (tmp_path / "new", False), (work, True):
        words = [recipe, "--work", folder, "--data", raw, "--rows", "teacher-l2r"]
        with noting([]), pytest.raises(Stopped):
            call(run_recipe, *words)
        said = f"--data {raw} is not read; for other raw files choose"
        assert (said in capsys.readouterr().out) == told


RUN, ROWS = "is for a run: leave it out", "is for rows: leave it out with --prepare"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--work must name the folder to write to"),
        (["--print", "--jobs", 2], f"--jobs {RUN}"),
        (["--print", "--processes", 2], f"--processes {RUN}"),
        (["--print", "--executor", "local"], f"--executor {RUN}"),
        (["--print", "--prepare"], f"--prepare {RUN}"),
        (["--prepare", "--work", "new", "--rows", "sb"], f"--rows {ROWS}"),
        (["--prepare", "--work", "new", "--model", "sb"], f"--model {ROWS}"),
        (["--prepare", "--work", "new", "--jobs", 2], f"--jobs {ROWS}"),
        (["--prepare", "--work", "new", "--processes", 1], f"--processes {ROWS}"),
        (["--work", "new", "--jobs", 0], "--jobs must be ≥ 1, but is 0"),
    ],
    ids=str,
)
def test_options_without_effect_are_refused(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        call(run_recipe, ROOT / "examples" / "toy", *words)
    assert not (tmp_path / "new").exists()
