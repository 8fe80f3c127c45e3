"""The paper's comparison: rows, driver, reranking, costs and the table."""

import contextlib
import errno
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import commands
import in_process
import pytest
import torch
import yaml
from commands import ROOT, run_generate, run_train
from comparing import p_of
from recipe_drivers import recipe_in
from sacrebleu.metrics import BLEU
from steps import call, put

from sbnmt_plugin.tools import in_use, launch, probes, reranking
from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import probe_reading, rerank
from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.commands import triples as make_triples
from sbnmt_plugin.tools.evaluation import References, score_row
from sbnmt_plugin.tools.recipes import (
    ancestry,
    chains,
    cluster,
    costs,
    driver,
    results,
    row_names,
    runner,
    systems,
    table,
    work_folder,
)
from sbnmt_plugin.tools.recipes import settings as recipes
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.step import Step
from sbnmt_plugin.tools.report.cost import frontier
from sbnmt_plugin.training.criterion import SBLabelSmoothedCrossEntropy

# ---------------------------------------------------------------- rows and recipes


def test_a_row_is_trained_as_it_says():
    recipe = load_recipe(ROOT / "examples" / "toy", small=False)
    options = recipes.training_options(recipe, "sb@3")
    assert options["--seed"] == 3
    assert (options["--arch"], options["--sb-lambda"]) == ("sb_transformer_tiny", 1.0)
    assert row_names.describe("sb@3", options) == (
        "SB-NMT, tanh, λ = 1.0, two triples, seed 3"
    )
    teacher = recipes.training_options(recipe, "teacher-r2l")
    assert teacher["--sb-direction"] == "r2l"
    assert "--sb-lambda" not in teacher
    assert recipes.training_options(recipe, "sb-lambda0")["--sb-lambda"] == 0
    assert recipes.training_options(recipe, "rnmt")["--arch"] == "lstm"
    others = load_recipe(ROOT / "examples" / "multi30k", small=False)
    rnmt = recipes.training_options(others, "rnmt")
    assert rnmt["--arch"] == "lstm_luong_wmt_en_de"
    for name, arch in zip(
        row_names.rows(["histories"]), ("rnnsearch", "sa", "ta", "ba")
    ):
        histories = recipes.training_options(recipe, name)
        assert histories["--arch"].removesuffix("_nmt") == arch
        assert histories["--label-smoothing"] == 0
        assert histories["--sb-direction"] == "l2r"
        assert histories["--decoder-hidden-size"] == 64
    gate = recipes.training_options(recipe, "sb-gate")
    assert (gate["--sb-fusion"], "--sb-lambda" in gate) == ("gate", False)
    for name, data in ("abd", "one"), ("abd-two", "two"):
        abd = recipes.training_options(recipe, name)
        assert abd["--arch"] == "abd_transformer_tiny"
        assert not [flag for flag in abd if flag.startswith("--sb-")]
        assert abd["--max-tokens"] == recipe["sb_train"]["--max-tokens"]
        (stage,) = recipes.training_stages(recipe, name)
        assert stage.data == data


@pytest.mark.parametrize(
    "folder", sorted(ROOT.glob("examples/*/")), ids=lambda p: p.name
)
def test_no_recipe_gives_abd_what_it_refuses(folder):
    for small in False, True:
        try:
            recipe = load_recipe(folder, small)
        except (FileNotFoundError, ValueError):  # no recipe; none of this size
            continue
        for name in "abd", "abd-two":
            options = recipes.training_options(recipe, name)
            found = {flag for flag in options if flag.startswith("--sb-")}
            assert found <= {"--sb-autocast"}  # the task's, for any model


def test_pseudo_targets_are_made_of_the_teachers_that_a_row_needs():
    recipe = load_recipe(ROOT / "examples" / "toy", small=False)
    assert recipes.needs_pseudo(recipe, ["teacher-l2r", "rerank"]) == []
    assert recipes.needs_pseudo(recipe, ["abd"]) == ["r2l"]
    assert recipes.needs_pseudo(recipe, ["transformer-pl"]) == ["l2r"]
    assert recipes.needs_pseudo(recipe, ["transformer-pr"]) == ["r2l"]
    for name in "abd-two", "sb", "transformer-pl", "transformer-pl-pr":
        assert recipes.needs_pseudo(recipe, ["abd", name]) == ["l2r", "r2l"]
    needed = ["train-teacher-r2l", "pseudo-r2l"]
    assert results.needs(recipe, "abd") == needed
    assert results.needs(recipe, "abd-two") == [
        *("train-teacher-l2r", "train-teacher-r2l", "pseudo-l2r", "pseudo-r2l")
    ]


def test_the_sweep_is_the_papers_table_2():
    recipe = load_recipe(ROOT / "examples" / "toy", small=False)
    cells = {
        (options["--sb-fusion"], options.get("--sb-lambda"))
        for name in row_names.rows(["sweep"])
        if "--sb-learn-lambda"
        not in (options := recipes.training_options(recipe, name))
    }
    fusions, weights = ("linear", "tanh", "relu"), (0.1, 0.5, 1.0)
    assert cells == {(f, w) for f in fusions for w in weights} | {("gate", None)}


@pytest.mark.parametrize("name", ["toy", "g2p_cmudict", "multi30k"])
def test_the_papers_own_setting_is_a_row_of_every_recipe(name):
    recipe = load_recipe(ROOT / "examples" / name, small=False)
    found = recipes.training_options(recipe, "sb-paper")
    ours = {flag for flag in found if flag.startswith("--sb-")}
    assert (found["--sb-fusion"], found["--sb-lambda"]) == ("tanh", 0.1)
    assert ours <= {"--sb-fusion", "--sb-lambda", "--sb-probe"}
    is_sb = recipes.same_training(recipe, "sb-paper") == "sb"
    assert is_sb == (name == "multi30k")


@pytest.mark.parametrize(
    ("name", "small", "alike"),
    [
        ("multi30k", False, True),
        ("multi30k", True, True),
        ("techdocs_zh_en", False, True),
        ("techdocs_zh_en", True, True),
        ("g2p_cmudict", False, True),
        ("toy", False, False),  # as many passes
    ],
)
def test_rows_that_decide_have_as_many_updates(name, small, alike):
    recipe = load_recipe(ROOT / "examples" / name, small=small)

    def updates(name):
        stages = recipes.training_stages(recipe, name)
        limits = [stage.options.get("--max-update") for stage in stages]
        return None if None in limits else sum(limits)

    names = ["teacher-l2r", "teacher-r2l", "transformer-pl", "teacher-both"]
    names += ["sb-lambda0", "sb", "sb-noise-lambda0", "sb-noise-shift-dropped"]
    names += ["sb-staged"] * ("sb-staged" in recipe["stages"])
    found = {updates(name) for name in names}
    assert (len(found) == 1 and None not in found) == alike


def test_a_model_that_two_rows_share_is_trained_once():
    toy = load_recipe(ROOT / "examples" / "toy", small=False)
    assert recipes.same_training(toy, "sb-tanh-1.0") == "sb"
    assert recipes.same_training(toy, "sb-tanh-1.0@2") == "sb@2"
    assert recipes.same_training(toy, "sb-tanh-0.1") == "sb-tanh-0.1"
    multi30k = load_recipe(ROOT / "examples" / "multi30k", small=True)
    assert recipes.same_training(multi30k, "sb-tanh-0.1") == "sb"


def test_rows_with_the_model_of_another_come_last(capsys):
    """Else one of two jobs would wait for the other's training."""
    order = ["sb", "sb+rescored", "two-way", "two-way-back", "nart", "nart-9", "sb@2"]
    call(run_recipe, "toy", "--rows", *order, "--print")
    found = re.findall("# Translate the test set with (.+)", capsys.readouterr().out)
    assert found == [
        *("sb", "two-way", "nart", "sb@2"),
        *("sb+rescored", "two-way-back", "nart-9"),
    ]


def test_a_row_has_one_name():
    assert row_names.rows(["sb", "sb@1", "sb@02", "sb@2"]) == ["sb", "sb@2"]
    with pytest.raises(ValueError, match="lookup trains nothing, so it has no seed"):
        row_names.rows(["lookup@2"])


@pytest.mark.parametrize(("row", "end"), [("rerank", ""), ("rerank@2", "@2")])
def test_reranking_joins_the_teachers_of_its_seed(row, end, capsys):
    call(run_recipe, "toy", "--rows", row, "--print")
    script = capsys.readouterr().out
    l2r, r2l = (f'"$work/teacher-{d}{end}' for d in ("l2r", "r2l"))
    assert re.findall('--save-dir ("[^"]+)"', script) == [l2r, r2l]
    assert f'--l2r {l2r}/model.pt" --r2l {r2l}/model.pt"' in script
    assert f'--output "$work/results/{row}.json"' in script


def test_rows_without_interaction_are_not_searched_again_without_it():
    both = [
        name for name, row in systems.SYSTEMS.items() if row.direction == systems.BOTH
    ]
    alone = {name for name in both if not row_names.interacts(name)}
    named = {name for name in both if "lambda0" in name}
    assert alone == named | {"teacher-both"}
    assert {"sb-same-lambda0", "sb-noise-lambda0"} <= named


@pytest.mark.parametrize("name", ["sbb", "sb@x", "", "sb@", "sb@²"])
def test_unknown_rows_are_refused(name):
    with pytest.raises(ValueError, match=f"--rows must name .* but has '{name}'"):
        row_names.rows(["teacher-l2r", name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"typo": 1}, "unknown keys typo: known are source"),
        (
            {"bpe": {"kind": "word"}},
            "bpe.kind must be joint, separate or none, but is 'word'",
        ),
        ({"teachers": "three"}, "teachers must be two or one"),
        ({"systems": {"sbb": {}}}, "systems has unknown keys sbb"),
        ({"score": {"case": 1}}, "score has unknown keys case"),
        ({"average": "ten"}, "average must be"),
        ({"rows": ["sbb"]}, "--rows must name"),
    ],
)
def test_recipes_are_checked(tmp_path, changes, message):
    folder = in_process.write_recipe(tmp_path / "recipe", **changes)
    with pytest.raises(ValueError, match=message):
        call(run_recipe, folder, "--work", tmp_path / "work")


def test_a_recipe_must_be_whole(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"is no recipe: give a folder with recipe.yaml .* toy"
    ):
        call(run_recipe, tmp_path, "--work", tmp_path / "work")
    put(tmp_path / "recipe.yaml", "source: de")
    with pytest.raises(ValueError, match="must have the key target, but has not"):
        call(run_recipe, tmp_path, "--work", tmp_path / "work")
    put(tmp_path / "recipe.yaml", "")
    with pytest.raises(ValueError, match="must hold keys and values"):
        call(run_recipe, tmp_path, "--work", tmp_path / "work")
    folder = in_process.write_recipe(tmp_path / "toy")
    with pytest.raises(ValueError, match="has no small setting"):
        call(run_recipe, folder, "--work", tmp_path / "work", "--small")


# ---------------------------------------------------------------- the driver


def test_the_driver_makes_every_row_of_the_comparison(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runner.Runner, "run", in_process.run)
    folder, work = in_process.write_recipe(tmp_path / "recipe"), tmp_path / "work"
    wanted = [*systems.PAPER, "sb-gate", "sb-learned", "sb-tanh-1.0", "sb@2"]
    call(run_recipe, folder, "--work", work, "--rows", "paper", *wanted[-4:])
    output = capsys.readouterr().out
    made = json.loads((work / "table.json").read_text())
    rows = {row["name"]: row for row in made["rows"]}
    assert set(rows) == set(wanted)
    assert "== train/sb-tanh-1.0" not in output  # it is the recipe's own sb
    assert rows["sb-tanh-1.0"]["tokenised BLEU"] == rows["sb"]["tokenised BLEU"]
    assert rows["sb"]["total seconds"] >= rows["sb"]["seconds"]
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
    call(run_recipe, folder, "--work", work)
    assert "==" not in capsys.readouterr().out
    call(
        *(run_recipe, folder, "--work", tmp_path / "other", "--rows", "sb"),
        *("--pseudo", work / "pseudo"),
    )
    output = capsys.readouterr().out
    assert "== train/sb" in output
    assert "== train/teacher" not in output
    ours, theirs = (f / "results" / "sb.txt" for f in (tmp_path / "other", work))
    assert ours.read_text() == theirs.read_text()
    # but not if they are others than it has, nor of another text
    changed = texts.read_lines(work / "pseudo" / "l2r.tsv")
    texts.write_lines(work / "pseudo" / "l2r.tsv", [*changed[:-1], changed[-1] + " x"])
    with pytest.raises(ValueError, match=r"must not differ from what .* has already"):
        call(
            *(run_recipe, folder, "--work", tmp_path / "other"),
            *("--pseudo", work / "pseudo"),
        )
    texts.write_lines(work / "pseudo" / "train.src", ["another"])
    with pytest.raises(
        ValueError, match="must translate this recipe's training source"
    ):
        call(
            *(run_recipe, folder, "--work", tmp_path / "other"),
            *("--pseudo", work / "pseudo"),
        )


def test_one_model_can_teach_both_directions(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(runner.Runner, "run", in_process.run)
    folder = in_process.write_recipe(tmp_path / "recipe", teachers="one")
    call(run_recipe, folder, "--work", tmp_path / "work")
    output = capsys.readouterr().out
    assert (
        output.count("== train/teacher") == output.count("== train/teacher-both") == 1
    )
    rows = json.loads((tmp_path / "work" / "table.json").read_text())["rows"]
    assert [row["name"] for row in rows] == ["teacher-l2r", "teacher-r2l", "sb"]
    with pytest.raises(ValueError, match="row rerank@2 needs `teachers: two`"):
        call(run_recipe, folder, "--work", tmp_path / "work", "--rows", "rerank@2")


def test_the_one_teacher_of_the_command_line_is_the_recipes(tmp_path, monkeypatch):
    """What it teaches can go on from it; both are the chain's cost, and it once."""
    trainings = {}

    def run(self, step):
        if step.name.startswith("train/"):
            trainings[step.name] = " ".join(map(str, step.words))
        return in_process.run(self, step)

    monkeypatch.setattr(runner.Runner, "run", run)
    folder = in_process.write_recipe(tmp_path / "recipe")
    work, one = tmp_path / "work", ("--teachers", "one")
    asked = ("--rows", "teacher-both", "sb-lambda0-finetuned")
    call(run_recipe, folder, "--work", work, *one, *asked)
    assert [*trainings] == ["train/teacher-both", "train/sb-lambda0-finetuned"]
    begins = f"--finetune-from-model {work}/teacher-both/model.pt"
    assert begins in trainings["train/sb-lambda0-finetuned"]
    table = json.loads((work / "table.json").read_text())
    assert table["command"].endswith(f"{folder} --teachers one")
    shown = [show_table, "--recipe", folder, "--work", work, *one]
    call(*shown)
    assert json.loads((work / "table.json").read_text())["rows"] == table["rows"]
    drawn = tmp_path / "curves"  # the toy's rows are not validated by BLEU, nor probed
    with pytest.raises(ValueError, match=r"--curves needs logs of .*/logs has none"):
        call(*shown, "--curves", drawn)
    log = work / "logs" / "train-sb-lambda0-finetuned.log"
    probed = "read_bits_l2r=0.2, read_bits_r2l=0.1, num_updates=9"
    with log.open("a", encoding="utf-8") as file:
        file.write(f"x | train_inner | epoch 001:      9 / 9 {probed}\n")
    kept = (work / "table.json").read_text()
    with pytest.raises(ValueError, match="must not be read and written by one"):
        call(*shown, "--curves", work / "table")
    assert (work / "table.json").read_text() == kept
    with pytest.raises(ValueError, match="--plot and --curves must differ"):
        call(*shown, "--curves", drawn, "--plot", f"{tmp_path}/./curves")
    call(*shown, "--curves", drawn)
    title = "SB-NMT, λ = 0, from the teacher, two triples"
    (curves,) = json.loads(drawn.with_suffix(".json").read_text()).items()
    assert curves == (
        title,
        {"1": {"bits read a token": [[9.0], [pytest.approx(0.15)]]}},
    )
    assert f"<!-- {title} -->" in drawn.with_suffix(".svg").read_text("utf-8")
    assert drawn.with_suffix(".png").exists()
    for tool in (run_recipe, show_table):
        words = ["--recipe", folder] if tool is show_table else [folder]
        with pytest.raises(ValueError, match=r"--teachers otherwise \(teachers differ"):
            call(tool, *words, "--work", work)
    settings = load_recipe(folder, small=False, teachers="one")
    needed = results.needs(settings, "sb-lambda0-finetuned")
    assert needed == ["train-teacher-both", "pseudo-l2r", "pseudo-r2l"]
    assert load_recipe(folder, small=False)["teachers"] == "two"


def test_rows_that_share_a_model_wait_for_it(tmp_path):
    """As sb and its place in the grid, side by side."""
    recipe = recipe_in(tmp_path / "recipe", tmp_path / "work")
    recipe.training_data = lambda kind: tmp_path
    begun = []

    def slowly(step):
        begun.append(step.name)
        time.sleep(0.2)

    recipe.bench.run = slowly
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(recipe.model, ["sb", "sb-tanh-1.0"]))
    assert begun == ["train/sb", "average/sb"]


def test_a_row_starts_from_the_model_of_its_own_seed(tmp_path):
    """A teacher is of the first; what the model before has cost, the row has too."""
    recipe = recipe_in(tmp_path / "recipe", tmp_path / "work")
    recipe.training_data = lambda kind: tmp_path
    steps = []
    recipe.bench.run = steps.append
    for name in ("sb-late@2", "sb-late-lambda0@2", "sb-finetuned@2", "sb-reader-own@2"):
        recipe.model(name)
    starts = {
        step.name: str(step.words[step.words.index("--finetune-from-model") + 1])
        for step in steps
        if "--finetune-from-model" in step.words
    }
    own, teacher, both = (
        tmp_path / "work" / x
        for x in ("sb-noise-lambda0@2", "teacher-l2r", "teacher-both@2")
    )
    assert starts == {
        "train/sb-late@2": str(own / "model.pt"),
        "train/sb-late-lambda0@2": str(own / "model.pt"),
        "train/sb-finetuned@2": str(teacher / "model.pt"),
        "train/sb-reader-own@2": str(both / "model.pt"),
    }
    settings = load_recipe(tmp_path / "recipe", small=False)
    teachers = ["train-teacher-l2r", "train-teacher-r2l", "pseudo-l2r", "pseudo-r2l"]
    found = results.needs(settings, "sb-late+rescored@2")
    assert found == [*teachers, "train-sb-noise-lambda0@2"]
    assert results.needs(settings, "sb-finetuned@2") == teachers
    assert results.needs(settings, "sb-reader-two@2") == [
        *teachers,
        "train-sb-lambda0@2",
    ]
    one = settings | {"teachers": "one"}  # whose model is of the first seed
    for found in settings, one:
        assert results.needs(found, "sb-reader-own@2") == ["train-teacher-both@2"]


def test_a_reader_stands_beside_a_row_that_writes_alone():
    rows = systems.SYSTEMS
    frozen = [x for x in rows.values() if "--sb-freeze-writer" in x.options]
    frozen = [x for x in frozen if x.options["--sb-freeze-writer"] is None]
    assert len(frozen) == 3
    for system in frozen:
        writer = rows[system.starts_from]
        assert writer.options["--sb-lambda"] == 0 != system.options["--sb-lambda"]
        assert system.options["--sb-reader"] is None and system.data == writer.data


def test_triples_without_their_last_file_are_not_whole(tmp_path):
    recipe = recipe_in(tmp_path / "recipe", tmp_path / "work")
    recipe.bpe, recipe.pseudo = lambda: tmp_path, lambda direction: tmp_path
    for suffix in ("src", "tgt"):
        put(tmp_path / "work" / "examples" / "two" / f"train.{suffix}", "a")
    recipe.examples("two")
    assert [step for step, _ in recipe.bench.begun] == ["examples/two"]
    put(tmp_path / "work" / "examples" / "two" / "train.r2l", "a")
    recipe.examples("two")
    assert len(recipe.bench.begun) == 1


def test_workers_take_the_gpus_that_the_user_chose(tmp_path, monkeypatch):
    recipe = recipe_in(tmp_path / "recipe", tmp_path / "work")
    recipe.processes, recipe.settings["train"]["--cpu"] = 2, False
    steps = [recipe.share("l2r", worker, []) for worker in (0, 1)]
    assert [(s.name, s.gpus, s.place) for s in steps] == [
        ("pseudo/l2r/0", 1, 0),
        ("pseudo/l2r/1", 1, 1),
    ]
    bench = runner.Runner(tmp_path / "work", {})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    asked = [bench.prepared(step).variables for step in steps]
    assert asked == [{"CUDA_VISIBLE_DEVICES": name} for name in "45"]
    bench.cluster = cluster.Cluster("local")  # which has GPUs of its own to give
    assert not bench.prepared(steps[0]).variables
    bench.cluster = None
    recipe.settings["train"]["--cpu"] = None
    assert not bench.prepared(recipe.share("l2r", 1, [])).variables
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4")
    with pytest.raises(ValueError, match="--processes must be ≤ 1"):
        bench.prepared(steps[1])


def test_a_work_folder_keeps_to_its_recipe(tmp_path):
    recipe = recipe_in(tmp_path / "recipe", tmp_path / "work")
    (tmp_path / "work").mkdir()
    work_folder.same_recipe(tmp_path / "work", recipe.settings)
    work_folder.same_recipe(tmp_path / "work", {**recipe.settings, "jobs": 3})
    changed = {**recipe.settings, "average": 7, "decode": []}
    with pytest.raises(ValueError, match=r"another recipe.*\(decode, average"):
        work_folder.same_recipe(tmp_path / "work", changed)
    recipe.training_data = lambda kind: tmp_path
    recipe.model("teacher-l2r")
    recipe.settings["train"]["--lr"] = 1
    with pytest.raises(ValueError, match=r"begun with other options \(--lr\): rem"):
        recipe.model("teacher-l2r")


TEACHERS = {"two": ("teacher-l2r", "sb"), "one": ("teacher-both", "sb-lambda0")}


@pytest.mark.parametrize("teachers", TEACHERS)
def test_pseudo_targets_know_their_teacher(tmp_path, teachers):
    """Whose folder was removed, and whose options have changed; and not a student's."""
    recipe = recipe_in(tmp_path / "recipe", tmp_path / "work", teachers=teachers)
    recipe.bench.keep = lambda *_: None
    teacher, student = TEACHERS[teachers]
    own = recipe.settings["systems"].setdefault
    texts = recipe.pseudo("l2r")
    names = [name for name, _ in recipe.bench.begun]
    assert f"train/{teacher}" in names
    assert names[-1] == "pseudo/l2r"
    put(texts, "0\t0\tA")
    own(student, {})["--lr"] = 7
    recipe.check(["transformer-pl"])
    own(teacher, {})["--lr"] = 7
    shutil.rmtree(tmp_path / "work" / teacher)
    refused = pytest.raises(ValueError, match=r"by a teacher of other options \(--lr\)")
    with refused:
        recipe.check(["transformer-pl"])
    recipe.check(["teacher-r2l", "transformer-pr"])  # of R2L ones nothing is noted
    put(tmp_path / "work" / "results" / "transformer-pl.json", "{}")
    with refused:
        results.build_table(tmp_path / "work", recipe.settings, "")
    with refused:  # also what only the table shows
        recipe.check(["teacher-r2l"])
    texts.unlink()
    with refused:  # shards of the other teacher may be there
        recipe.pseudo("l2r")
    for name in "l2r.tsv", "r2l.tsv", "train.src":
        put(tmp_path / "other" / name, "0\t0\tB")
    put(recipe.bpe() / "train.src", "0\t0\tB")
    recipe.start_from(tmp_path / "other")  # where another may have written them
    recipe.check(["transformer-pl"])


def test_a_run_that_is_refused_leaves_the_recipe_as_it_was(tmp_path, monkeypatch):
    """By which `compare` and others read the folder."""
    monkeypatch.setattr(runner.Runner, "run", mock.Mock(side_effect=AssertionError))
    folder, work = in_process.write_recipe(tmp_path / "recipe"), tmp_path / "work"
    settings = load_recipe(folder, small=False)
    (work / "sb").mkdir(parents=True)
    work_folder.same_recipe(work, settings)
    work_folder.same_options(work / "sb", *ancestry.own_books(settings, "sb"))
    before = (work / "recipe.json").read_text()
    changed = yaml.safe_load((folder / "recipe.yaml").read_text())
    changed["sb_train"]["--lr"] = 7
    (folder / "recipe.yaml").write_text(yaml.safe_dump(changed))
    with pytest.raises(ValueError, match=r"sb was begun with other options \(--lr\)"):
        call(run_recipe, folder, "--work", work, "--rows", "sb")
    assert (work / "recipe.json").read_text() == before


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


def rows_that(tmp_path, does):
    """A driver whose rows do what they are told, and what each has done."""
    recipe = recipe_in(tmp_path / "recipe", tmp_path / "work")
    recipe.gold_data = recipe.probe = recipe.reading = lambda *_: None
    recipe.pseudo = lambda direction: None
    done = []

    def result(name):
        does[name]()
        done.append(name)

    recipe.result = result
    return recipe, done


def fails():
    raise ValueError("no disk left")


def test_after_a_failure_nothing_begins_and_what_runs_ends(tmp_path, capsys):
    told = threading.Event()
    rows = ["teacher-l2r", "teacher-r2l", "sb", "sb-lambda0"]
    does = {row: lambda: None for row in rows}
    does |= {"teacher-l2r": lambda: told.wait(30), "teacher-r2l": fails}
    recipe, done = rows_that(tmp_path, does)

    def listen():
        for _ in range(1000):
            if "no disk left" in capsys.readouterr().out:
                told.set()  # it is said while the other row still runs
                return
            time.sleep(0.02)

    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(listen)
        with pytest.raises(ValueError, match="no disk left"):
            recipe.run(rows, jobs=2)
        heard.result()
    assert told.is_set()
    assert done == ["teacher-l2r"]


def test_an_interrupt_after_a_failure_ends_what_runs(tmp_path):
    ended = threading.Event()
    does = {"teacher-l2r": lambda: ended.wait(20), "teacher-r2l": fails}
    recipe, _ = rows_that(tmp_path, does)
    recipe.bench.stop = ended.set
    waiting = mock.Mock(side_effect=KeyboardInterrupt)
    interrupted = mock.patch.object(driver, "as_completed", waiting)
    with interrupted, pytest.raises(KeyboardInterrupt):
        recipe.run(["teacher-l2r", "teacher-r2l"], jobs=2)
    assert ended.is_set()


def test_what_one_teacher_cannot_give_is_refused_at_once(tmp_path):
    recipe = recipe_in(tmp_path / "recipe", tmp_path / "work", teachers="one")
    for row in "rerank", "teacher-r2l@2":
        with pytest.raises(ValueError, match=f"row {row} needs `teachers: two`"):
            recipe.check(["teacher-l2r", row])
    recipe.check(["teacher-l2r", "teacher-r2l", "sb@2"])


def kill_when(process, condition, seconds=180):
    """Kill a driver and all that it has started as soon as something is there."""
    for _ in range(seconds * 20):
        if condition() or process.poll() is not None:
            break
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(work):
    """A killed step may take a moment to let the folder go."""
    for _ in range(200):
        with contextlib.suppress(ValueError), in_use.hold(work):
            return
        time.sleep(0.05)


def test_a_killed_driver_goes_on_where_it_was(tmp_path, monkeypatch):
    """Killed within the teacher's training, with processes of its own."""
    changes = {"rows": ["teacher-l2r"]}
    folder = in_process.write_recipe(tmp_path / "recipe", **changes)
    settings = yaml.safe_load((folder / "recipe.yaml").read_text())
    settings["train"] |= {"--max-epoch": 12}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(settings))
    work = tmp_path / "work"
    with monkeypatch.context() as patch:  # what comes before, at once
        patch.setattr(driver.Recipe, "model", mock.Mock(side_effect=KeyboardInterrupt))
        patch.setattr(runner.Runner, "run", in_process.run)
        with pytest.raises(KeyboardInterrupt):
            call(run_recipe, folder, "--work", work)
    script = ROOT / "scripts" / "run_recipe.py"
    command = [sys.executable, script, folder, "--work", work]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL
    )
    saved = work / "teacher-l2r" / "checkpoint2.pt"
    kill_when(process, saved.exists)
    wait_for(work)
    assert not (work / "teacher-l2r" / "done").exists(), "killed too late"
    dictionary = (work / "data" / "dict.src.txt").stat().st_mtime_ns
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "== data" not in output
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
    recipe = recipe_in(tmp_path / "recipe", tmp_path / "work")
    recipe.training_data = lambda kind: tmp_path
    folder = tmp_path / "work" / "teacher-l2r"
    folder.mkdir(parents=True)
    last = folder / "checkpoint_last.pt"
    for age, name in enumerate([*others, last.name]):
        torch.save({"number": age}, folder / name)
        os.utime(folder / name, (age, age))
    whole = last.read_bytes()
    last.write_bytes(whole[:-9])  # the end of a zip file's list
    recipe.model("teacher-l2r")
    if others:
        assert torch.load(last) == {"number": 1}
    else:
        assert not last.exists()
    assert recipe.bench.begun[0][0] == "train/teacher-l2r"
    # one that is whole is left alone
    last.write_bytes(whole)
    (folder / "done").unlink()
    recipe.model("teacher-l2r")
    assert last.read_bytes() == whole


def test_a_failing_step_shows_its_log(tmp_path):
    folder = in_process.write_recipe(tmp_path / "recipe")
    put(folder / "prepare.py", "raise SystemExit('no such corpus')")
    with pytest.raises(
        ValueError, match=r"(?s)step text failed, its log .*no such corp"
    ):
        call(run_recipe, folder, "--work", tmp_path / "work")


# ---------------------------------------------------------------- pairs


def test_pairs_are_gold_and_pseudo_targets(tmp_path):
    put(tmp_path / "s.en", "a", "b", "c")
    put(tmp_path / "s.de", "A", "B", "C")
    put(tmp_path / "l2r", "0\t-1.0\tAl", "2\t-1.0\tCl")
    put(tmp_path / "r2l", "0\t-1.0\tAr", "1\t-1.0\tBr", "2\t-1.0\tCr")
    words = ["--source", tmp_path / "s.en", "--target", tmp_path / "s.de"]
    words += ["--output", tmp_path / "out", "--pseudo-l2r", tmp_path / "l2r"]
    right = ["--pseudo-r2l", tmp_path / "r2l", "--pairs"]
    call(make_triples, *words, *right, "pl-pr")
    assert texts.read_lines(tmp_path / "out.en") == list("aaaccc")
    assert texts.read_lines(tmp_path / "out.de") == ["A", "Al", "Ar", "C", "Cl", "Cr"]
    assert not (tmp_path / "out.r2l").exists()
    call(make_triples, *words, "--pairs", "pl")
    assert texts.read_lines(tmp_path / "out.de") == ["A", "Al", "C", "Cl"]
    with pytest.raises(ValueError, match="--drop-identical is for --triples"):
        call(make_triples, *words, "--pairs", "pl", "--drop-identical")
    call(make_triples, *words[:-2], *right, "pr")  # wants no L2R teacher
    assert texts.read_lines(tmp_path / "out.de") == ["A", "Ar", "B", "Br", "C", "Cr"]
    with pytest.raises(ValueError, match="--pseudo-r2l must be given, but for --pairs"):
        call(make_triples, *words, "--pairs", "pr")
    call(make_triples, *words, *right, "pr")  # the sentences that triples have
    assert texts.read_lines(tmp_path / "out.de") == ["A", "Ar", "C", "Cr"]
    put(tmp_path / "r2l", "0\t-1.0\tAr")
    call(make_triples, *words, *right, "pl")
    assert texts.read_lines(tmp_path / "out.de") == ["A", "Al"]


# ---------------------------------------------------------------- several processes


def test_the_batch_stays_the_same_among_processes():
    environment = {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1"}
    words = launch.distributed(["data", "--update-freq", "8"], environment)
    assert words[:3] == ["data", "--update-freq", "2"]
    assert words[-2:] == ["--device-id", "1"]
    assert words[words.index("--distributed-rank") + 1] == "3"
    joined = launch.distributed(["data", "--update-freq=8"], environment)
    assert joined[:3] == ["data", "--update-freq", "2"]
    # alone means alone, however many GPUs there are
    alone = ["data", "--distributed-world-size", "1"]
    assert launch.distributed(["data"], {}) == alone
    assert launch.distributed(alone, {}) == alone
    with pytest.raises(ValueError, match=r"must be one number.*but is 8,4"):
        launch.distributed(["data", "--update-freq", "8,4"], environment)
    with pytest.raises(ValueError, match="a multiple of the 4 processes"):
        launch.distributed(["data", "--update-freq", "6"], environment)
    with pytest.raises(ValueError, match=r"but is 1: raise it"):
        launch.distributed(["data"], environment)


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner.Runner, "run", in_process.run)
        call(run_recipe, folder, "--work", one, "--processes", 1)
    shutil.copytree(one, two, ignore=lambda *_: {"teacher-l2r", "results", "logs"})
    command = [sys.executable, ROOT / "scripts" / "run_recipe.py", folder]
    words = [*command, "--work", two, "--processes", 2]
    subprocess.run([*map(str, words)], check=True, stdout=subprocess.DEVNULL)
    return one, two


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


def test_two_workers_translate_what_one_does(two_runs, tmp_path):
    folder = two_runs[0].parent / "recipe"
    settings = load_recipe(folder, small=False)
    settings["pseudo"] = ["--shard-size", 7]
    found = []
    for processes in (1, 2):
        work = tmp_path / str(processes)
        shutil.copytree(two_runs[0], work)
        recipe = driver.Recipe(
            *(runner.Runner(work, {}), folder, settings),
            processes=processes,
        )
        found.append(recipe.pseudo("l2r").read_text())
    assert found[0] == found[1]
    assert found[0].count("\n") == 60
    logs = sorted(path.name for path in (work / "logs").glob("pseudo*"))
    assert logs == ["pseudo-l2r-0.log", "pseudo-l2r-1.log"]


# ---------------------------------------------------------------- reranking


@pytest.fixture(scope="module")
def teachers(data, teacher, tmp_path_factory):
    """Checkpoints of an L2R and an R2L teacher, neither of them perfect."""
    save = tmp_path_factory.mktemp("l2r")
    words = ["--arch", "transformer_tiny", "--sb-direction", "l2r", "--max-epoch", 4]
    l2r = run_train(data, save, *words, "--no-epoch-checkpoints")
    save = tmp_path_factory.mktemp("r2l")
    words = ["--arch", "transformer_tiny", "--sb-direction", "r2l", "--max-epoch", 5]
    return l2r, run_train(data, save, *words, "--no-epoch-checkpoints")


def slow_log_probability(translator, source, text, backwards):
    """Of a text, word by word: one forward pass for each prefix."""
    task, (model,) = translator.task, translator.models
    encode = task.target_dictionary.encode_line
    tokens = encode(text, add_if_not_exist=False, append_eos=False).tolist()
    tokens = tokens[::-1] if backwards else tokens
    eos = task.target_dictionary.eos()
    line = task.source_dictionary.encode_line(source, add_if_not_exist=False)
    encoded = model.encoder(line[None].long(), torch.tensor([line.numel()]))
    total, prefix = 0.0, [eos]
    for token in [*tokens, eos]:
        logits = model.decoder(torch.tensor([prefix]), encoder_out=encoded)[0]
        total += logits[0, -1].log_softmax(-1)[token].item()
        prefix.append(token)
    return total


def n_best(data, path, direction, k, *words):
    """Texts of fairseq-generate's n-best lists."""
    output = run_generate(
        *(data, path, "--sb-direction", direction),
        *("--beam", k, "--nbest", k, "--max-len-b", 12, *words),
    )
    return {
        index: [text for _, text in found]
        for index, found in commands.lines(output, "H").items()
    }


def reranked(data, teachers, tmp_path, *words):
    sources = put_sources(data, tmp_path)
    output = tmp_path / "out.tsv"
    call(
        *(rerank, data, "--l2r", teachers[0], "--r2l", teachers[1], "--cpu"),
        *("--beam", 3, "--max-len-b", 12, "--input", sources, "--output", output),
        *words,
    )
    rows = [line.split("\t") for line in texts.read_lines(output)]
    return {int(i): (float(score), text) for i, score, text in rows}


def put_sources(data, tmp_path):
    """The test set's sources in order."""
    source = data.parent / "texts" / "test.en"
    return put(tmp_path / "test.en", *texts.read_lines(source))


def test_reranking_equals_the_slow_reference(data, teachers, tmp_path):
    found = reranked(data, teachers, tmp_path)
    lists = [n_best(data, p, d, 3) for p, d in zip(teachers, ("l2r", "r2l"))]
    translators = [
        reranking.Translator(
            [str(data), "--path", str(p), "--sb-direction", d, "--cpu"]
        )
        for p, d in zip(teachers, ("l2r", "r2l"))
    ]
    changed = 0
    for index, source in enumerate(texts.read_lines(tmp_path / "test.en")):
        union = list(dict.fromkeys(lists[0][index] + lists[1][index]))
        scores = [
            sum(
                slow_log_probability(t, source, text, backwards)
                for t, backwards in zip(translators, (False, True))
            )
            for text in union
        ]
        best = max(range(len(union)), key=scores.__getitem__)
        score, text = found[index]
        assert text == union[best]
        assert score == pytest.approx(scores[best], abs=1e-4)
        changed += text != lists[0][index][0]
    assert changed, "reranking must matter for this test to say something"


@pytest.mark.parametrize("direction", ["l2r", "r2l"])
def test_each_teacher_proposes_all_of_its_beam(data, teachers, tmp_path, direction):
    """And not the best one, with what had finished by the time it was sure."""
    paths = [str(path) for path in teachers]
    words = [str(data), "--cpu", "--max-len-b", "12", "--lenpen", "0", "--beam", "8"]
    joined = reranking.Reranker(words, *paths)
    place = ("l2r", "r2l").index(direction)
    teacher = (joined, joined.r2l)[place]
    own = ["--path", paths[place], "--sb-direction", direction]
    hasty = reranking.Translator([*words, *own])
    expected = n_best(data, paths[place], direction, 8, "--lenpen", 0)
    sources = texts.read_lines(put_sources(data, tmp_path))
    tokens, lengths = teacher.task.get_interactive_tokens_and_lengths(
        sources, lambda line: line
    )
    rows = teacher.task.build_dataset_for_inference(tokens, lengths)
    batch = rows.collater([rows[i] for i in range(len(sources))])

    def proposed(translator):
        lists = zip(batch["id"].tolist(), translator.search(batch))
        return {i: [translator.text(h) for h in found] for i, found in lists}

    assert proposed(teacher) == expected
    assert proposed(hasty) != expected, "a search for the best must not do as well"


def test_reranking_does_not_depend_on_batches(data, teachers, tmp_path):
    whole = reranked(data, teachers, tmp_path / "a")
    pieces = reranked(
        *(data, teachers, tmp_path / "b"), *("--max-tokens", 20, "--shard-size", 5)
    )
    assert {i: text for i, (_, text) in whole.items()} == {
        i: text for i, (_, text) in pieces.items()
    }


def test_a_killed_reranking_goes_on(data, teachers, tmp_path, monkeypatch):
    best = reranking.Reranker.best

    def fails_later(self, batch):
        fails_later.calls += 1
        if fails_later.calls > 2:
            raise KeyboardInterrupt
        return best(self, batch)

    fails_later.calls = 0
    monkeypatch.setattr(reranking.Reranker, "best", fails_later)
    with pytest.raises(KeyboardInterrupt):
        reranked(data, teachers, tmp_path, "--shard-size", 4)
    shards = tmp_path / "out.tsv.shards"
    assert (shards / "00000.jsonl").exists()
    begun = (shards / "00000.jsonl").stat().st_mtime_ns
    monkeypatch.setattr(reranking.Reranker, "best", best)
    assert len(reranked(data, teachers, tmp_path, "--shard-size", 4)) == 21
    assert (shards / "00000.jsonl").stat().st_mtime_ns == begun


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--path", "x.pt"], "--path is not for reranking: give --l2r and --r2l"),
        (["--sb-direction=l2r"], "--sb-direction is not for reranking"),
        (["--l2r", "a.pt:b.pt"], "--l2r must be one checkpoint, but is a.pt:b.pt"),
    ],
)
def test_reranking_refuses(data, teachers, tmp_path, words, message):
    with pytest.raises(ValueError, match=message):
        reranked(data, teachers, tmp_path, *words)


# ---------------------------------------------------------------- reading across


def test_halves_leave_padding_out():
    label = torch.tensor([[5, 6, 7, 2, 1], [5, 2, 1, 1, 1]])
    first, second = probes.halves(label, pad=1)
    assert first.int().tolist() == [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    assert second.int().tolist() == [[0, 0, 1, 1, 0], [0, 1, 0, 0, 0]]


def test_the_probe_measures_what_the_criterion_does(data, trained, tmp_path, capsys):
    out = tmp_path / "reading.json"
    call(probe_reading, data, "--path", trained, "--cpu", "--json", out)
    found = json.loads(out.read_text())
    assert "bits a token, partners shuffled" in capsys.readouterr().out
    translator = reranking.Translator([str(data), "--path", str(trained), "--cpu"])
    loss, words = 0.0, [0, 0]
    criterion = SBLabelSmoothedCrossEntropy(translator.task, False, 0.1, 0, False)
    for batch in probes.gold_batches(translator, "valid"):
        batch["target"] = batch["stream_target"]  # as in training
        _, _, logged = criterion.forward(translator.models[0], batch)
        loss += float(logged["nll_loss"])
        for half, mask in enumerate(probes.halves(batch["stream_target"], 1)):
            words[half] += int(mask.sum())
    bits = found["as trained"].values()
    mean = sum(b * n for b, n in zip(bits, words)) / sum(words)
    assert mean == pytest.approx(loss / sum(words) / math.log(2), abs=2e-3)
    assert found["partners shuffled"] != found["as trained"]


def test_a_teacher_reads_nothing_across(data, teacher):
    with pytest.raises(ValueError, match="--path must be one sb_transformer"):
        call(probe_reading, data, "--path", teacher, "--sb-direction", "r2l", "--cpu")


# ---------------------------------------------------------------- costs and table

LOG = """\
== launch 2026-01-01 10:00:00 | commit abc1 | Python 3 | scripts/train.py
2026-01-01 10:00:10 | INFO | train | epoch 001 | loss 7 | wpb 100 | num_updates 10 | x
2026-01-01 10:00:50 | INFO | train_inner | epoch 002: 3 / 10 loss=1, wpb=1
== launch 2026-01-02 10:00:00 | commit abc2 | Python 3 | scripts/train.py
2026-01-02 10:00:05 | INFO | x | rank 0: total memory = 80.0 GB ; name = H200
2026-01-02 10:00:09 | INFO | train | epoch 002 | loss 6 | wpb 200 | num_updates 15 | \
gb_free 70.5 | wall 0
2026-01-02 10:00:10 | INFO | valid | epoch 003 | valid on 'valid' subset | loss 6 | \
wpb 7 | num_updates 20
2026-01-02 10:00:10 | INFO | train | epoch 003 | read_bits_l2r 0.4 | \
read_bits_r2l 0.3 | loss 6 | wpb 200 | num_updates 20 | gb_free 71.5 | wall 0
== end 2026-01-02 10:00:20 | peak 1.25 GiB
"""
KILLED = """\
== launch 2026-01-01 10:00:00 | commit abc1 | Python 3 | scripts/translate.py
shards: 50 %
== at 2026-01-01 10:05:00 |
"""


@pytest.mark.parametrize(
    ("name", "teachers", "title"),
    [
        ("teacher-r2l", "one", "SB-NMT, λ = 0, gold, R2L answers"),
        ("teacher-both", "two", "SB-NMT, λ = 0, gold"),
        ("teacher-both+rescored@2", "two", "SB-NMT, λ = 0, gold, rescored, seed 2"),
    ],
)
def test_a_model_of_both_directions_is_named(tmp_path, name, teachers, title):
    settings = load_recipe(ROOT / "examples" / "toy", small=False)
    put(tmp_path / "results" / f"{name}.json", "{}")
    row = results.build_row(tmp_path, {**settings, "teachers": teachers}, name)
    assert row["title"] == title


def test_a_rows_whole_cost_includes_all_workers_and_launches(tmp_path):
    settings = load_recipe(ROOT / "examples" / "toy", small=False)
    for name in ("train-teacher-l2r", "train-teacher-r2l", "train-sb", "train-sb-six"):
        put(tmp_path / f"{name}.log", *LOG.splitlines())  # 70 s
    put(tmp_path / "pseudo-l2r.log", *KILLED.splitlines())  # 300 s
    put(tmp_path / "pseudo-l2r-0.log", *LOG.splitlines())
    put(tmp_path / "pseudo-l2r-1.log", *KILLED.splitlines())

    def total(name):
        return results.total_costs(tmp_path, settings, name)

    assert total("sb") == {}
    put(tmp_path / "pseudo-r2l.log", *KILLED.splitlines())
    seen = results.step_cost(tmp_path / "train-sb.log")["tokens"]
    assert seen > 0
    assert total("sb") == {
        "total seconds": 3 * 70 + 300 * 3,
        "total tokens": 3 * seen,
    }
    assert total("teacher-l2r") == {"total seconds": 70, "total tokens": seen}
    put(tmp_path / "train-transformer-pl.log", *LOG.splitlines())
    (tmp_path / "pseudo-r2l.log").unlink()
    pairs = {"total seconds": 2 * 70 + 300 * 2, "total tokens": 2 * seen}
    assert total("transformer-pl") == pairs  # without an R2L teacher
    assert total("rerank") == {"total seconds": 140, "total tokens": 2 * seen}
    assert total("rerank@2") == {}
    put(tmp_path / "train-teacher-l2r@2.log", *LOG.splitlines())
    put(tmp_path / "train-teacher-r2l@2.log", *(2 * LOG.splitlines()))
    assert total("rerank@2") == {"total seconds": 210, "total tokens": 2 * seen}
    assert total("sb-gate") == {}


def test_processor_time_is_told_only_if_every_launch_tells_it(tmp_path):
    """All launches of all steps; of workers the sum, not the longest."""
    settings = load_recipe(ROOT / "examples" / "toy", small=False)
    spent = LOG.replace("GiB\n", "GiB | processor 40 s\n")
    first = "== launch 2026-01-01 10:00:00 | commit abc1 | Python 3 | scripts/train.py"
    told = spent.replace(
        "== launch 2026-01-02", f"== end x | processor 5 s\n{first}", 1
    )
    for name in ("train-teacher-l2r", "train-teacher-r2l", "train-sb"):
        put(tmp_path / f"{name}.log", *told.splitlines())
    for name in ("pseudo-l2r-0", "pseudo-l2r-1", "pseudo-r2l"):
        put(tmp_path / f"{name}.log", *told.splitlines())
    assert costs.step_cost(tmp_path / "train-sb.log")["processor seconds"] == 45
    found = results.total_costs(tmp_path, settings, "sb")
    assert found["total processor seconds"] == 6 * 45
    put(tmp_path / "pseudo-r2l.log", *spent.splitlines())  # one launch was killed
    assert "processor seconds" not in costs.step_cost(tmp_path / "pseudo-r2l.log")
    assert "total processor seconds" not in results.total_costs(
        tmp_path, settings, "sb"
    )
    assert "total processor seconds" in results.total_costs(
        tmp_path, settings, "rerank"
    )


def test_costs_are_read_from_logs(tmp_path):
    path = tmp_path / "log"
    path.write_text(LOG)
    assert costs.step_cost(path) == {
        "seconds": 50 + 20,  # not the day between the launches
        "updates": 20,
        "tokens": 10 * 100 + 10 * 200,
        "peak memory (GiB)": 1.25,
        "commits": ["abc1", "abc2"],
        "gpu": "H200",
        "peak GPU memory (GiB)": 9.5,
    }


def test_the_drivers_own_lines_are_read_back(tmp_path):
    path = tmp_path / "log"
    path.write_text(costs.launch_line("train.py") + costs.end_line(2.5, 60))
    cost = costs.step_cost(path)
    assert cost["commits"] == [costs.commit()]
    assert cost["peak memory (GiB)"] == 2.5
    assert cost["processor seconds"] == 60


def test_the_bootstrap_tells_equal_from_different_systems():
    reference = [f"this is sentence number {i} of the test" for i in range(40)]
    bad = [line if i % 2 else "no such words" for i, line in enumerate(reference)]
    assert p_of(BLEU(), bad, bad, reference) == 1.0
    assert p_of(BLEU(), bad, list(reference), reference) < 0.01
    twin = [line if i % 2 == 0 else "no such words" for i, line in enumerate(reference)]
    assert p_of(BLEU(), bad, twin, reference) > 0.05


def test_systems_that_always_score_alike_do_not_differ():
    """In case alone, which the metric ignores: sacreBLEU has p at its least."""
    reference = [f"this is sentence number {i} of the test" for i in range(40)]
    loud = [line.upper() for line in reference]
    assert p_of(BLEU(lowercase=True), reference, loud, reference) == 1.0


def test_sets_are_scored_apart_and_averaged(tmp_path):
    good, bad = "a b c d e f", "x y z u v w"
    put(tmp_path / "test.en", good, good, good)
    put(tmp_path / "test.en.2", good, good, good)
    references = References(tmp_path, "en", count=2, lowercase=True)
    tokens = [good.upper(), bad, bad]
    scored, _ = score_row(tokens, references)
    assert "nrefs:2|case:lc" in scored["tokenised BLEU"]["signature"]
    whole = scored["tokenised BLEU"]["score"]
    put(tmp_path / "test.sets", "mt03\t1", "mt04\t2")
    scored, _ = score_row(tokens, references)
    assert scored["sets"]["mt03"] == 100
    assert scored["sets"]["mt04"] < 1
    mean = (scored["sets"]["mt03"] + scored["sets"]["mt04"]) / 2
    assert scored["tokenised BLEU"]["score"] == pytest.approx(mean, abs=0.01)
    assert scored["tokenised BLEU"]["score"] != whole
    put(tmp_path / "test.sets", "mt03\t1", "mt04\t1")
    with pytest.raises(ValueError, match="must add up to 3 lines"):
        score_row(tokens, references)
    with pytest.raises(ValueError, match=r"be 3 hypotheses.*there are 2"):
        score_row(tokens[:2], references)


def committed():
    """Tables of results in the repository, and the pages that show them."""
    return [
        (path, path.parent / "README.md")
        for path in sorted((ROOT / "examples").glob("*/results*.json"))
    ]


def tables():
    """All tables in the repository: of runs, of seeds and of beams."""
    found = []
    for path in sorted((ROOT / "examples").glob("*/*.json")):
        held = json.loads(path.read_text(encoding="utf-8"))
        if "runs" in held or ("rows" in held and "signatures" in held):
            found.append(path)
    return found


def test_toy_and_small_tables_are_committed():
    names = {f"{path.parent.name}/{path.name}" for path, _ in committed()}
    assert names >= {"toy/results.json", "multi30k/results-small.json"}
    assert {path for path, _ in committed()} < set(tables())
    assert ROOT / "examples" / "toy" / "beams.json" in tables()


@pytest.mark.parametrize("path", tables(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_pages_show_the_committed_numbers(path, capsys):
    call(show_table, path)
    pages = [page.read_text(encoding="utf-8") for page in path.parent.glob("*.md")]
    lines = capsys.readouterr().out.splitlines()
    lacking = [[line for line in lines if line not in page] for page in pages]
    least = min(lacking, key=len)  # of the page that shows it
    assert not least, f"{path.parent} lacks {least[0]!r}: scripts/table.py {path}"


def test_the_readme_shows_the_committed_numbers(capsys):
    toys = [path for path, _ in committed()[::-1] if "toy" in path.parent.name]
    assert len(toys) >= 2
    call(show_table, "--paper", *toys)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in capsys.readouterr().out.splitlines():
        assert line in text, f"README.md lacks {line!r}: scripts/table.py --paper"


def test_what_is_best_for_its_price():
    points = {"a": (5, 30), "b": (9, 29), "c": (9, 33), "d": (20, 33), "e": (30, 40)}
    assert frontier(points, False) == [(5, 30), (9, 33), (30, 40)]
    assert frontier(points, True) == [(5, 30), (9, 29)]


def test_scores_are_drawn_against_what_they_cost(tmp_path, capsys):
    path, _ = committed()[0]
    call(show_table, path, "--plot", tmp_path / "new" / "cost")
    drawn = (tmp_path / "new" / "cost.svg").read_text(encoding="utf-8")
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert sum("total seconds" in row for row in rows) > 3
    # a marker a system, on the axis and in the legend; fewer were lost
    assert drawn.count("<use") >= 2 * sum("total seconds" in row for row in rows)
    assert (tmp_path / "new" / "cost.png").stat().st_size > 1000


def test_costs_that_nobody_measured_are_not_drawn(tmp_path):
    path, _ = committed()[0]
    table = json.loads(path.read_text(encoding="utf-8"))
    for row in table["rows"]:
        row.pop("total seconds", None)
    (tmp_path / "table.json").write_text(json.dumps(table), encoding="utf-8")
    with pytest.raises(ValueError, match="--plot needs what the rows cost"):
        call(show_table, tmp_path / "table.json", "--plot", tmp_path / "cost")
    assert not (tmp_path / "cost.svg").exists()


def test_tables_are_drawn_together(tmp_path):
    path, _ = committed()[0]
    table = json.loads(path.read_text(encoding="utf-8"))
    with pytest.raises(
        ValueError, match=r"draws each row once: .*teacher-l2r.* --only"
    ):
        call(show_table, path, path, "--plot", tmp_path / "cost")
    more = tmp_path / "more.json"
    titled = [
        {**row, "name": f"x{row['name']}", "title": f"Another {row['title']}"}
        for row in table["rows"]
    ]
    put(more, json.dumps({**table, "rows": titled}))
    call(show_table, path, more, "--plot", tmp_path / "cost")
    drawn = (tmp_path / "cost.svg").read_text(encoding="utf-8")
    assert drawn.count("<!-- Another Transformer, L2R -->") == 1
    put(more, json.dumps({**table, "rows": titled, "signatures": {}}))
    with pytest.raises(ValueError, match="one score: their signatures differ"):
        call(show_table, path, more, "--plot", tmp_path / "cost")
    with pytest.raises(ValueError, match="--plot draws what rows cost"):
        call(show_table, path, "--paper", "--plot", tmp_path / "cost")


def test_points_are_means_of_seeds_and_rows_keep_apart():
    rows = [
        {"name": name, "title": title, "seed": seed, "BLEU": score}
        for name, title, seed, score in (
            *(("sb", "SB", 1, 20.0), ("sb@2", "SB, seed 2", 2, 30.0)),
            *(("sb-tanh-1.0", "SB", 1, 40.0), ("teacher-l2r", "L2R", 1, 10.0)),
        )
    ]
    first, second, third, fourth = rows
    systems = {("", "sb"): [first, second], ("", "sb-tanh-1.0"): [third]}
    systems |= {("late", "sb"): [third], ("late", "teacher-l2r"): [fourth]}
    assert chains.points_of(systems, [1, 3, 5, 6, 7], "BLEU") == {
        "SB (sb)": (2, 25.0),
        "SB (sb-tanh-1.0)": (5, 40.0),
        "SB, late": (6, 40.0),
        "L2R, late": (7, 10.0),
    }
    priced = [{"total tokens": 3e6, "total seconds": 120}]
    assert chains.prices(priced, "tokens") == ("million labels", [3])
    assert chains.prices(priced, "minutes") == ("minutes", [2])


def test_labels_tell_the_same_rows_of_several_tables_apart(tmp_path):
    path, _ = committed()[0]
    words = ["--plot", tmp_path / "cost", "--only", "teacher-l2r", "teacher-r2l"]
    call(show_table, path, f"better teachers={path}", *words)
    drawn = (tmp_path / "cost.svg").read_text(encoding="utf-8")
    for end in "", ", better teachers":
        assert drawn.count(f"<!-- Transformer, L2R{end} -->") == 1
    with pytest.raises(ValueError, match=r"draws each row once: .* LABEL=TABLE"):
        call(show_table, f"x={path}", f"x={path}", *words)
    with pytest.raises(ValueError, match="LABEL=TABLE is for --plot"):
        call(show_table, f"x={path}")
    for wrong in "=x.json", "x=", f"{tmp_path}/lr=1/no.json":
        with pytest.raises(FileNotFoundError, match=f"{re.escape(wrong)} does not"):
            call(show_table, wrong)
    call(show_table, f"$\\frac$={path}", *words)
    odd = tmp_path / "a=b.json"
    put(odd, path.read_text(encoding="utf-8"))
    call(show_table, odd)  # a file's name


def test_labels_are_drawn_where_tables_tell_them(tmp_path):
    path = ROOT / "examples" / "toy" / "results.json"
    words = ["--plot", tmp_path / "cost", "--against", "tokens"]
    with pytest.raises(ValueError, match="--plot needs what the rows cost in tokens"):
        call(show_table, path, *words)
    with pytest.raises(ValueError, match="--against is for --plot"):
        call(show_table, path, *words[2:])
    table = json.loads(path.read_text(encoding="utf-8"))
    table["rows"] = [{**row, "total tokens": 3e6} for row in table["rows"]]
    put(tmp_path / "told.json", json.dumps(table))
    call(show_table, tmp_path / "told.json", *words)
    drawn = (tmp_path / "cost.svg").read_text(encoding="utf-8")
    assert "<!-- million labels of the whole chain -->" in drawn


def test_seeds_are_drawn_as_one_system(tmp_path):
    path = ROOT / "examples" / "multi30k" / "seeds-small.json"
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    call(show_table, path, "--plot", tmp_path / "cost")
    drawn = (tmp_path / "cost.svg").read_text(encoding="utf-8")
    assert drawn.count("<!-- SB-NMT, λ = 0, two triples -->") == 1
    assert ", seed 2" not in drawn
    only = ["--only", "teacher-l2r", "sb-lambda0+rescored"]
    call(show_table, path, "--plot", tmp_path / "few", *only)
    few = (tmp_path / "few.svg").read_text(encoding="utf-8")
    assert "<!-- SB-NMT, λ = 0, two triples, rescored -->" in few
    assert "<!-- SB-NMT, λ = 0, two triples -->" not in few
    with pytest.raises(ValueError, match="--only is for --plot"):
        call(show_table, path, *only)
    with pytest.raises(ValueError, match=r"--only must name rows .*, but has sb@2"):
        call(show_table, path, "--plot", tmp_path / "none", "--only", "sb@2")
    assert not (tmp_path / "none.svg").exists()
    assert any(row["title"].endswith(", seed 2") for row in rows)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing does not exist"):
        call(show_table, tmp_path / "nothing")
