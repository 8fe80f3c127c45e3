"""Records of a work folder: how its models were trained, and the cost of a row."""

import json
import shutil
from dataclasses import replace
from unittest import mock

import in_process
import pytest
import yaml
from commands import ROOT
from recipe_drivers import noted, steps_in
from steps import call, put

from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.machine import machine
from sbnmt_plugin.tools.recipes import costs, row_steps, work_folder
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.row_steps import RowSteps
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.runner import Runner
from sbnmt_plugin.tools.recipes.stages import (
    Stage,
    records,
    row_records,
    training_stages,
)
from sbnmt_plugin.tools.recipes.work_folder import DONE, ModelRecord, TeacherRecord
from sbnmt_plugin.tools.results import work_folder_rows as results

SETTINGS = load_recipe(ROOT / "examples" / "multi30k", small=True)


def begin(folder, options):
    folder.mkdir(parents=True, exist_ok=True)
    ModelRecord(folder, options).begin()


def begin_row(work, settings, name):
    """Begin the folders of a row's stages."""
    row = Row.parse(name)
    stages = training_stages(settings, row)
    for stage, options in zip(stages, row_records(settings, row)):
        begin(work / stage.name, options)


def check_row(work, settings, name):
    row_steps.check_row(work, settings, Row.parse(name))


PLAIN, SHIFT = {"--lr": 0.2, "--cpu": None}, {"--sb-future-shift": None}
GPU, CPU = {"--lr": 0.2, "--fp16": None}, {"--lr": 0.2, "--cpu": None}
READER, BOTH = {"--sb-reader": None}, {"--sb-reader": None, "--sb-freeze-writer": None}
OLD = "stages before"


@pytest.mark.parametrize(
    ("begun", "now", "done", "changed"),
    [
        (PLAIN, PLAIN, False, ""),
        # an option more or less, also a flag that has no value
        (PLAIN, PLAIN | SHIFT, False, "--sb-future-shift"),
        (PLAIN | SHIFT, PLAIN, False, "--sb-future-shift"),
        (PLAIN, PLAIN | {"--lr": 0.1}, False, "--lr"),
        # how batches are made may change: the model is the same to the bit
        (PLAIN, PLAIN | {"--num-workers": 0}, False, ""),
        (PLAIN | {"--num-workers": 0}, PLAIN | {"--num-workers": 4}, False, ""),
        (PLAIN, PLAIN | {"--lr": 0.3, "--num-workers": 4}, False, "--lr"),
        # a finished model may be searched elsewhere; others go on as they were begun
        (GPU, CPU, False, "--fp16, --cpu"),
        (GPU, CPU, True, ""),
        (GPU, CPU | {"--lr": 0.3}, True, "--lr"),
        # so may those of the stages before, and of the row that it starts from
        ({"stages before": [GPU]}, {"stages before": [CPU]}, False, ""),
        ({"stages before": [GPU]}, {"stages before": [PLAIN, CPU]}, False, OLD),
        ({"stages before": [GPU]}, {"stages before": [CPU | {"--lr": 1}]}, False, OLD),
        (
            {"starts from": GPU},
            {"starts from": CPU | {"--lr": 1}},
            False,
            "starts from",
        ),
        # a reader of 0.2.0 had a second option, which is now a part of the first
        (BOTH, READER, False, ""),
        (BOTH, {}, False, "--sb-reader"),
        ({"starts from": {"--sb-freeze-writer": None}}, {"starts from": {}}, False, ""),
    ],
    ids=str,
)
def test_a_model_goes_on_with_the_options_that_it_was_begun_with(
    tmp_path, begun, now, done, changed
):
    begin(tmp_path, begun)
    if done:
        (tmp_path / DONE).touch()
    if not changed:
        begin(tmp_path, now)
        return
    with pytest.raises(ValueError, match=rf"begun with other options \({changed}\)"):
        begin(tmp_path, now)


def test_pseudo_targets_may_be_written_elsewhere(tmp_path):
    texts = tmp_path / "l2r.tsv"
    TeacherRecord(texts, GPU).begin()
    TeacherRecord(texts, CPU).check()
    with pytest.raises(ValueError, match=r"teacher of other options \(--lr\)"):
        TeacherRecord(texts, CPU | {"--lr": 0.3}).check()


def stage(name, data, continues=False):
    return Stage(name, data, {"--max-epoch": 3}, continues)


STAGES = [stage("row/stage-1", "gold"), stage("row", "two")]
OTHERS = {
    "the first one's data": [stage("row/stage-1", "pl"), STAGES[1]],
    "the last one's data": [STAGES[0], stage("row", "six")],
    "going on": [STAGES[0], stage("row", "two", continues=True)],
    "one between": [STAGES[0], stage("row/stage-2", "six"), STAGES[1]],
    "one alone": STAGES[1:],
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_other_stages_are_another_training(tmp_path, other):
    for kept in records(STAGES), records(STAGES):
        for each, options in zip(STAGES, kept):
            begin(tmp_path / each.name, options)
    with pytest.raises(ValueError, match="begun with other options"):
        for each, options in zip(other, records(other)):
            begin(tmp_path / each.name, options)


def test_a_row_with_results_is_not_relabelled(tmp_path):
    """Of a row that recipe.yaml describes otherwise by now no table is made."""
    (tmp_path / "results").mkdir()
    score = {"score": 30.0, "signature": "s"}
    result = dict.fromkeys(("tokenised BLEU", "BLEU", "chrF"), score)
    (tmp_path / "results" / "sb.json").write_text(json.dumps(result))
    options = put(tmp_path / "sb" / "options.json", json.dumps({"--lr": 7}))
    other = pytest.raises(
        ValueError, match=r"sb was begun with other .*: remove it, its"
    )
    with other:
        results.build_table(tmp_path, SETTINGS, "")
    with other:
        check_row(tmp_path, SETTINGS, "sb+rescored")
    options.unlink()  # a run by hand keeps none
    assert results.build_row(tmp_path, SETTINGS, Row("sb"))["BLEU"] == 30.0


def test_a_table_names_the_machine_that_trained(tmp_path, monkeypatch):
    score = {"score": 30.0, "signature": "s"}
    result = dict.fromkeys(("tokenised BLEU", "BLEU", "chrF"), score)
    put(tmp_path / "results" / "sb.json", json.dumps(result))
    monkeypatch.setattr(costs, "machine", lambda: "8 cores, Other CPU")
    put(tmp_path / "logs" / "train-sb.log", costs.launch_line("fairseq-train"))
    made = results.build_table(tmp_path, SETTINGS, "")
    assert made["machine"] == "8 cores, Other CPU"
    (tmp_path / "logs" / "train-sb.log").unlink()
    assert results.build_table(tmp_path, SETTINGS, "")["machine"] == machine()


def scored(signature="nrefs:4|version:2.5.1, mean of 2 sets", sets=("a", "b"), **more):
    """Write what evaluate does."""
    bleu = {"score": 30.0, "signature": signature}
    return json.dumps({"BLEU": bleu, "sets": dict.fromkeys(sets, 1), **more})


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (scored("nrefs:1|version:2.5.1"), "BLEU differ"),
        (scored(sets="ac"), "sets differ"),
        (scored(sets=(), chrF={"score": 1, "signature": "s"}), "sets, chrF differ"),
    ],
    ids=["references", "a set", "a score"],
)
def test_rows_of_one_table_are_scored_alike(tmp_path, other, told):
    """But in the version, and where they are not translated into the target."""
    folder = tmp_path / "results"
    newer = "nrefs:4|version:2.6.0, mean of 2 sets"
    put(folder / "sb.json", scored())
    put(folder / "sb@2.json", scored(newer))
    put(folder / "teacher-back.json", scored("nrefs:1"))
    shown = results.build_table(tmp_path, SETTINGS, "")["signatures"]["BLEU"]
    assert shown == f"nrefs:4|version:2.5.1, mean of 2 sets; {newer}; nrefs:1"
    put(folder / "sb@3.json", other)
    message = rf"sb@3.json must be scored as .*/sb.json is, but is not \({told}\): "
    with pytest.raises(ValueError, match=message):
        results.build_table(tmp_path, SETTINGS, "")


def with_option(row, **options):
    """The recipe, a row's options changed."""
    flags = {f"--{name}": value for name, value in options.items()}
    own = {**SETTINGS["systems"].get(row, {}), **flags}
    return {**SETTINGS, "systems": {**SETTINGS["systems"], row: own}}


def test_a_row_knows_from_whose_weights_it_starts(tmp_path):
    """Of a writer that was trained anew the reader beside the old one is none."""
    (kept,) = row_records(SETTINGS, Row("sb-reader-two"))
    begin(tmp_path / "sb-reader-two", kept)
    check_row(tmp_path, SETTINGS, "sb-reader-two+rescored")
    check_row(tmp_path, with_option("sb-noise-lambda0", lr=7), "sb-reader-two")
    changed = with_option("sb-lambda0", lr=7)
    with pytest.raises(ValueError, match=r"sb-reader-two was begun .*\(starts from\)"):
        check_row(tmp_path, changed, "sb-reader-two")
    (tmp_path / "sb-reader-two" / "options.json").unlink()  # a run by hand keeps none
    begin_row(tmp_path, SETTINGS, "sb-lambda0")
    with pytest.raises(ValueError, match=r"sb-lambda0 was begun .*\(--lr\)"):
        check_row(tmp_path, changed, "sb-reader-two")


def test_what_is_no_rows_result_is_named(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "notes.json").write_text("{}")
    with pytest.raises(ValueError, match=r"results/notes.json must be a row's results"):
        results.build_table(tmp_path, SETTINGS, "")


def test_a_work_folder_keeps_to_its_recipe(tmp_path):
    steps = steps_in(tmp_path / "recipe", tmp_path / "work")
    put(tmp_path / "work" / "recipe.json", json.dumps(steps.settings))
    work_folder.check_recipe(tmp_path / "work", {**steps.settings, "jobs": 3})
    folder = in_process.write_recipe(tmp_path / "other", average=7, decode=[])
    for tool, *words in (run_recipe, folder), (show_table, "--recipe", folder):
        with pytest.raises(ValueError, match=r"another recipe.*\(decode, average"):
            call(tool, *words, "--work", tmp_path / "work")


def test_a_folder_that_is_older_than_a_key_has_its_default(tmp_path):
    """As one begun before lines could be phonemes, or have a phrase table."""
    known = {key: x for key, x in SETTINGS.items() if key != "phrase_table"}
    score = {key: x for key, x in SETTINGS["score"].items() if key != "phonemes"}
    put(tmp_path / "recipe.json", json.dumps({**known, "score": score}))
    work_folder.check_recipe(tmp_path, SETTINGS)
    for key, value in {"phrase_table": ["--least-count", 6], "score": {}}.items():
        with pytest.raises(ValueError, match=rf"another recipe.*\({key} differ\)"):
            work_folder.check_recipe(tmp_path, {**SETTINGS, key: value})


def test_pseudo_targets_know_their_teacher(tmp_path):
    """Whose folder was removed, and whose options have changed; and not a student's."""
    steps = steps_in(tmp_path / "recipe", tmp_path / "work")
    teacher, student = "teacher-l2r", "sb"

    def changed(*rows):
        systems = {**steps.settings["systems"], **{row: {"--lr": 7} for row in rows}}
        settings = {**steps.settings, "systems": systems}
        return RowSteps(replace(steps.run, settings=settings))

    put(tmp_path / "work" / "bpe" / "train.src", "a")
    pseudo = steps.pseudo("l2r")
    ran = noted(steps, pseudo, made=[*steps.bpe(), steps.gold()])
    assert ran.names == [f"train/{teacher}", f"average/{teacher}", "pseudo/l2r"]
    put(pseudo.makes, "0\t0\tA")
    check_row(steps.work, changed(student).settings, "transformer-pl")
    shutil.rmtree(tmp_path / "work" / teacher)
    refused = pytest.raises(ValueError, match=r"by a teacher of other options \(--lr\)")
    other = changed(student, teacher)
    with refused:
        check_row(steps.work, other.settings, "transformer-pl")
    check_row(steps.work, other.settings, "teacher-r2l")  # of R2L ones nothing is noted
    check_row(steps.work, other.settings, "transformer-pr")
    put(tmp_path / "work" / "results" / "transformer-pl.json", "{}")
    with refused:
        results.build_table(tmp_path / "work", other.settings, "")
    pseudo.makes.unlink()
    with refused:  # shards of the other teacher may be there
        noted(other, other.pseudo("l2r"), made=other.bpe())


def test_results_know_the_options_of_their_model(tmp_path):
    """Whose folder was removed, to train it anew with others."""
    steps = steps_in(tmp_path / "recipe", tmp_path / "work")
    result = steps.result(Row("teacher-l2r"))
    result.record.begin()
    put(result.makes, "{}")
    settings = {**steps.settings, "systems": {"teacher-l2r": {"--lr": 7}}}
    check_row(steps.work, steps.settings, "teacher-l2r")
    refused = r"results/teacher-l2r.json is of a model of other options \(--lr\)"
    with pytest.raises(ValueError, match=refused):
        check_row(steps.work, settings, "teacher-l2r")
    assert [row.name for row in work_folder.decoded_rows(steps.work)] == ["teacher-l2r"]
    result.makes.unlink()  # as the message says
    check_row(steps.work, settings, "teacher-l2r")


def test_a_teacher_that_has_not_translated_yet_keeps_its_options(tmp_path):
    """Its pseudo targets would be noted as those of other options."""
    steps = steps_in(tmp_path / "recipe", tmp_path / "work")
    put(tmp_path / "work" / "bpe" / "train.src", "a")
    noted(steps, steps.model(Row("teacher-l2r")), made=[*steps.bpe(), steps.gold()])
    settings = {**steps.settings, "systems": {"teacher-l2r": {"--lr": 7}}}
    check_row(steps.work, steps.settings, "transformer-pl")
    check_row(steps.work, settings, "transformer-pr")
    with pytest.raises(ValueError, match=r"was begun with other options \(--lr\)"):
        check_row(steps.work, settings, "transformer-pl")


@pytest.mark.parametrize("rows", [["sb"], ["teacher-r2l"]])
def test_a_run_that_is_refused_leaves_the_recipe_as_it_was(tmp_path, monkeypatch, rows):
    """By which `compare` and others read the folder.

    Also refused is another row, where the table would show the changed one.
    """
    monkeypatch.setattr(Runner, "run", mock.Mock(side_effect=AssertionError))
    folder, work = in_process.write_recipe(tmp_path / "recipe"), tmp_path / "work"
    settings = load_recipe(folder, small=False)
    begin_row(work, settings, "sb")
    put(work / "results" / "sb.json", "{}")
    put(work / "recipe.json", before := json.dumps(settings))
    changed = yaml.safe_load((folder / "recipe.yaml").read_text())
    changed["sb_train"]["--lr"] = 7
    (folder / "recipe.yaml").write_text(yaml.safe_dump(changed))
    with pytest.raises(ValueError, match=r"sb was begun with other options \(--lr\)"):
        call(run_recipe, folder, "--work", work, "--rows", *rows)
    assert (work / "recipe.json").read_text() == f"{before}\n"


def test_a_step_that_would_be_refused_is_so_before_any_other_runs(tmp_path):
    """A teacher that no row asked for shows, on whose answers it is to be trained."""
    steps = steps_in(tmp_path / "recipe", tmp_path / "work")
    begin_row(tmp_path / "work", steps.settings, "teacher-l2r")
    path = tmp_path / "work" / "teacher-l2r" / "options.json"
    Runner(steps.work, {}).check(steps.targets([Row("sb")]))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"--lr": 7}))
    with pytest.raises(ValueError, match=r"teacher-l2r was begun .* \(--lr\)"):
        Runner(steps.work, {}).check(steps.targets([Row("sb")]))
