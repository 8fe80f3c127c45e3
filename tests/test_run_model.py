"""The model of a run: which row it is, and why; a whole run of the recipe bitext."""

import json
import re
import shutil
from types import SimpleNamespace

import in_process
import pytest
from commands import ROOT
from corpora import raw_sentences as raw
from corpora import sentences
from steps import call, put

from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.model_steps import ModelSteps
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.results import run_model
from sbnmt_plugin.tools.results.bootstrap import Outcome

DEFAULT = "sb-lambda0+rescored"
FOLDER = ROOT / "examples" / "bitext"


def outcomes(**rows):
    """Pretended outcomes, (score, p) of each row; the default has 30 BLEU."""
    found = {DEFAULT: Outcome(30.0, 30.0, 1.0, 0.0, 0.0, 1.0)}
    return found | {k: Outcome(s, s, 1.0, 0.0, 0.0, p) for k, (s, p) in rows.items()}


CASES = [
    ({}, DEFAULT),
    ({"sb": (31.0, 0.06)}, DEFAULT),  # better by chance
    ({"sb": (29.0, 0.001)}, DEFAULT),  # significantly worse
    ({"sb": (30.05, 0.001)}, DEFAULT),  # surely better, by nothing
    ({"sb": (31.0, 0.04)}, "sb"),
    ({"sb": (31.0, 0.01), "pl": (31.5, 0.02)}, "pl"),
    ({"sb": (31.0, 0.02), "pl": (32.0, 0.3)}, "sb"),
    ({"sb": (31.0, 0.03), "pl": (32.0, 0.3)}, DEFAULT),  # the better of two, by chance
]


def assert_chosen_by_significance(choose):
    for rows, expected in CASES:
        found = choose(outcomes(**rows), DEFAULT)
        assert found == expected, f"{found} instead of {expected} of {rows}"


def test_another_row_is_taken_if_it_is_significantly_better():
    assert_chosen_by_significance(run_model.better_row)


def test_a_choice_by_score_alone_fails():
    def best(found, _):
        return max(found, key=lambda name: found[name].score)

    with pytest.raises(AssertionError, match="sb instead of sb-lambda0"):
        assert_chosen_by_significance(best)


def test_the_reason_is_said():
    found = outcomes(sb=(31.04, 0.04))
    said = run_model.reason("sb", DEFAULT, found, asked=False)
    assert said.startswith("It scores 31.0 BLEU on the validation set, significantly ")
    assert "30.0 (paired bootstrap, p = 0.040)" in said
    said = run_model.reason(DEFAULT, DEFAULT, found, asked=False)
    assert "No other row is significantly better there" in said
    assert "p < 0.05)" in said
    assert run_model.reason("sb", DEFAULT, found, asked=True).startswith("--model asks")
    six = {**found, **{f"{n}": found["sb"] for n in range(5)}}
    assert "p < 0.0083)" in run_model.reason(DEFAULT, DEFAULT, six, asked=False)


def test_what_a_row_has_given_is_removed_with_its_results(tmp_path):
    """Else a model that is trained anew would be taken for the one before."""
    steps = ModelSteps(Run(load_recipe(FOLDER, False), tmp_path))
    row = Row.parse("sb-lambda0+rescored@2")
    for step in steps.result(row), steps.swept(row), steps.tested(row):
        for path in step.complete, step.makes:
            assert path.is_relative_to(tmp_path / "results")


def test_sweeps_of_a_model_of_other_options_are_refused(tmp_path):
    row, settings = Row.parse(DEFAULT), load_recipe(FOLDER, False)
    steps = ModelSteps(Run(settings, tmp_path))
    for step in steps.swept(row), steps.tested(row):
        step.record.begin()
        put(step.makes, "{}")
        step.complete.touch()
    steps.check_sweeps([row])
    train = {**settings["train"], "--dropout": 0.5}
    steps = ModelSteps(Run({**settings, "train": train}, tmp_path))
    for split in "valid", "test":
        named = rf"{split}/{re.escape(row.name)} is of a model of other options .*drop"
        with pytest.raises(ValueError, match=named):
            steps.check_sweeps([row])
        shutil.rmtree(steps.sweep_of(split, row))  # as the message says
    steps.check_sweeps([row])
    assert not any(x.complete.exists() for x in (steps.swept(row), steps.tested(row)))


def test_a_row_of_another_seed_can_be_the_model(tmp_path):
    row = Row.parse("sb-lambda0+rescored@2")
    steps = ModelSteps(Run(load_recipe(FOLDER, False), tmp_path))
    put(tmp_path / "text" / "valid.ref.de", "x")
    run = {"system": row.name, "beam": 4, "lenpen": 1.5, "BLEU": 9, "signature": ""}
    path = steps.sweep_of("valid", row) / "sweep.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"runs": [{**run, "lenpen": 0.6, "BLEU": 8}, run]}))
    decoded, runs = run_model.Decoded(steps, "valid"), path.parent / "sweep.json.runs"
    assert decoded.best(row).lenpen == 1.5
    found = runs / "valid" / f"{row.name}-beam-4-lenpen-1.5"
    found.mkdir(parents=True)
    assert decoded.run(row) == found
    put(tmp_path / "text" / "valid.de", "x", "y")
    put(found / "generate-valid.txt", "H-1\t0\ty")
    with pytest.raises(ValueError, match="lacks that of sentence 0"):
        decoded.texts(row)


def test_a_model_folder_of_another_choice_is_removed(tmp_path):
    first, other = {"row": "sb", "models": [1]}, {"row": "sb", "models": [2]}
    run_model.keep(tmp_path, first)
    (tmp_path / "model").mkdir()
    run_model.keep(tmp_path, first)
    assert (tmp_path / "model").exists()
    run_model.keep(tmp_path, other)
    assert not (tmp_path / "model").exists()
    assert json.loads((tmp_path / "model.json").read_text()) == other


TINY = [
    *("--encoder-layers", 1, "--decoder-layers", 1, "--encoder-embed-dim", 16),
    *("--decoder-embed-dim", 16, "--encoder-ffn-embed-dim", 16),
    *("--decoder-ffn-embed-dim", 16, "--eval-bleu-args", '{"beam": 2, "max_len_b": 9}'),
]


def test_raw_lines_become_a_model_that_translates_raw_lines(tmp_path, capsys):
    """With pieces; with BPE the README's command is run."""
    data, work = raw(tmp_path / "raw", *sentences(60)), tmp_path / "work"
    words = ["--source", "en", "--target", "de", "--data", data, "--work", work]
    words += ["--updates", 4, "--rows", "teacher-l2r", "sb-lambda0+rescored", *TINY]
    words += ["--subwords", "sentencepiece"]
    in_process.make(FOLDER, *words)
    said = capsys.readouterr().out
    assert f"sbnmt translate {work / 'model'} < in.en > out.de" in said
    assert "Nothing good can come of" in said
    kept = json.loads((work / "model-scores.json").read_text())
    assert set(kept) == {"valid", "test"}
    assert "tok:13a" in kept["test"]["signature"]

    from sbnmt_plugin.tools.models.folder import load

    model = load(work / "model")
    assert model.description.search["rescore"] == 1
    assert model.description.source.tokeniser == "none"
    assert model.description.scores == kept
    assert len(model.translate(["a little dog .", "", "Hill"])) == 3
    # the same command again has nothing to do, nor has one that asks for fewer rows
    fewer = [word for word in words if word != DEFAULT]
    for command in words, fewer:
        in_process.make(FOLDER, *command)
        again = capsys.readouterr().out
        assert "\n== " not in again
        assert again.endswith(said[said.index("\nThe model in") :])


def test_a_script_shows_the_commands_of_a_run(capsys):
    call(run_recipe, FOLDER, "--source", "fr", "--target", "en", "--print")
    script = capsys.readouterr().out
    assert "sbnmt prepare examples/bitext" in script
    assert "--source fr --target en" in script
    assert script.index("sbnmt bundle") > script.index("fairseq-train")
    assert "sweep-beam" not in script  # its length penalty is the recipe's


def test_rows_without_a_model_end_without_a_folder():
    steps = SimpleNamespace(settings={})
    assert "no model folder" in run_model.made_model(steps, None, [], None)
