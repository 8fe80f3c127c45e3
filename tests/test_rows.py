"""Rows of the comparison: their names, options, data and models."""

import re

import pytest
from commands import ROOT
from steps import call

from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.recipes import stages as recipes
from sbnmt_plugin.tools.recipes import systems
from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.row_steps import RowSteps
from sbnmt_plugin.tools.recipes.rows import Row, asked_rows
from sbnmt_plugin.tools.recipes.shell_script import WORK


def test_a_row_is_trained_as_it_says():
    recipe = load_recipe(ROOT / "examples" / "toy", small=False)
    options = recipes.training_options(recipe, Row("sb", 3))
    assert options["--seed"] == 3
    assert (options["--arch"], options["--sb-lambda"]) == ("sb_transformer_tiny", 1.0)
    assert Row("sb", 3).title(options) == ("SB-NMT, tanh, λ = 1.0, two triples, seed 3")
    teacher = recipes.training_options(recipe, Row("teacher-r2l"))
    assert teacher["--sb-direction"] == "r2l"
    assert "--sb-lambda" not in teacher
    assert recipes.training_options(recipe, Row("sb-lambda0"))["--sb-lambda"] == 0
    assert recipes.training_options(recipe, Row("rnmt"))["--arch"] == "lstm"
    others = load_recipe(ROOT / "examples" / "multi30k", small=False)
    rnmt = recipes.training_options(others, Row("rnmt"))
    assert rnmt["--arch"] == "lstm_luong_wmt_en_de"
    rows = asked_rows(["histories"])
    for row, arch in zip(rows, ("rnnsearch", "sa", "ta", "ba"), strict=True):
        histories = recipes.training_options(recipe, row)
        assert histories["--arch"].removesuffix("_nmt") == arch
        assert histories["--label-smoothing"] == 0
        assert histories["--sb-direction"] == "l2r"
        assert histories["--decoder-hidden-size"] == 64
    gate = recipes.training_options(recipe, Row("sb-gate"))
    assert (gate["--sb-fusion"], "--sb-lambda" in gate) == ("gate", False)
    for name, data in ("abd", "one"), ("abd-two", "two"):
        abd = recipes.training_options(recipe, Row(name))
        assert abd["--arch"] == "abd_transformer_tiny"
        assert not [flag for flag in abd if flag.startswith("--sb-")]
        assert abd["--max-tokens"] == recipe["sb_train"]["--max-tokens"]
        (stage,) = recipes.training_stages(recipe, Row(name))
        assert stage.data == data


def test_a_title_without_a_recipe_has_the_options_of_its_row():
    titles = {Row(name).title({}) for name in systems.GROUPS["sweep"]}
    assert len(titles) == len(systems.GROUPS["sweep"])
    assert "SB-NMT, relu, λ = 0.5, two triples" in titles


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
            options = recipes.training_options(recipe, Row(name))
            found = {flag for flag in options if flag.startswith("--sb-")}
            assert found <= {"--sb-autocast"}  # the task's, for any model


def test_pseudo_targets_are_made_of_the_teachers_that_a_row_needs():
    recipe = load_recipe(ROOT / "examples" / "toy", small=False)

    def needed_by(*names):
        targets = RowSteps(Run(recipe, WORK)).targets(list(map(Row, names)))
        pseudo = [step.name for step in targets if step.name.startswith("pseudo/")]
        return [name.removeprefix("pseudo/") for name in pseudo]

    assert needed_by("teacher-l2r", "rerank", "teacher-both") == []
    assert needed_by("abd") == ["r2l"]
    assert needed_by("transformer-pl") == ["l2r"]
    assert needed_by("transformer-pr") == ["r2l"]
    for name in "abd-two", "sb", "transformer-pl", "transformer-pl-pr":
        assert needed_by("abd", name) == ["l2r", "r2l"]


def test_the_sweep_is_the_papers_table_2():
    recipe = load_recipe(ROOT / "examples" / "toy", small=False)
    cells = {
        (options["--sb-fusion"], options.get("--sb-lambda"))
        for row in asked_rows(["sweep"])
        if "--sb-learn-lambda" not in (options := recipes.training_options(recipe, row))
    }
    fusions, weights = ("linear", "tanh", "relu"), (0.1, 0.5, 1.0)
    assert cells == {(f, w) for f in fusions for w in weights} | {("gate", None)}


@pytest.mark.parametrize("name", ["toy", "g2p_cmudict", "multi30k"])
def test_the_papers_own_setting_is_a_row_of_every_recipe(name):
    recipe = load_recipe(ROOT / "examples" / name, small=False)
    found = recipes.training_options(recipe, Row("sb-paper"))
    ours = {flag for flag in found if flag.startswith("--sb-")}
    assert (found["--sb-fusion"], found["--sb-lambda"]) == ("tanh", 0.1)
    assert ours <= {"--sb-fusion", "--sb-lambda", "--sb-probe"}
    is_sb = recipes.same_training(recipe, Row("sb-paper")) == Row("sb")
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
        stages = recipes.training_stages(recipe, Row(name))
        limits = [stage.options.get("--max-update") for stage in stages]
        return None if None in limits else sum(limits)

    names = ["teacher-l2r", "teacher-r2l", "transformer-pl", "teacher-both"]
    names += ["sb-lambda0", "sb", "sb-noise-lambda0"]
    names += ["sb-staged"] * ("sb-staged" in recipe["stages"])
    found = {updates(name) for name in names}
    assert (len(found) == 1 and None not in found) == alike


@pytest.mark.parametrize(
    ("recipe", "row", "trained"),
    [
        ("toy", "sb-tanh-1.0", ["sb"]),
        ("toy", "sb-tanh-1.0@2", ["sb@2"]),
        ("toy", "sb-tanh-0.1", ["sb-tanh-0.1"]),
        ("multi30k", "sb-tanh-0.1", ["sb"]),
        ("multi30k", "rerank@2", ["teacher-l2r@2", "teacher-r2l@2"]),
        ("multi30k", "sb-lambda0+rescored", ["sb-lambda0"]),
        ("multi30k", "enat-phrase-9", ["enat-phrase", "teacher-l2r"]),
        ("multi30k", "lookup", []),
    ],
)
def test_a_model_that_two_rows_share_is_trained_once(recipe, row, trained):
    settings = load_recipe(ROOT / "examples" / recipe, small=recipe == "multi30k")
    (decoded,) = RowSteps(Run(settings, WORK)).result(Row.parse(row)).inputs
    models = [x.makes for x in decoded.inputs if x.name.startswith("average/")]
    assert [path.parent.name for path in models] == trained


def test_rows_with_the_model_of_another_come_last(capsys):
    """Else one of two jobs would wait for the other's training."""
    order = ["sb", "sb+rescored", "two-way", "two-way-back", "nart", "nart-9", "sb@2"]
    call(run_recipe, "toy_styles", "--rows", *order, "--print")
    found = re.findall("# Translate the test set with (.+)", capsys.readouterr().out)
    assert found == [
        *("sb", "two-way", "nart", "sb@2"),
        *("sb+rescored", "two-way-back", "nart-9"),
    ]


def test_a_row_whose_model_could_not_be_built_is_refused_at_the_start(tmp_path):
    for words in ["--print"], ["--work", tmp_path / "work"]:
        message = "row nart needs --share-all-embeddings in recipe.yaml"
        with pytest.raises(ValueError, match=message):
            call(run_recipe, "toy", "--rows", "nart", *words)
    assert not (tmp_path / "work" / "text").exists()


def test_a_row_has_one_name():
    found = asked_rows(
        ["sb", "sb@1", "sb@02", "sb@2", "sb+rescored@2", "sb@2+rescored"]
    )
    assert [row.name for row in found] == ["sb", "sb@2", "sb+rescored@2"]
    assert [Row.parse(row.name) for row in found] == found
    for name, rule in (
        ("lookup@2", "trains nothing, so it has no seed"),
        ("teacher-l2r+rescored", "has one direction, or one after the other"),
        ("abd+rescored", "has one direction, or one after the other"),
    ):
        with pytest.raises(ValueError, match=rule):
            asked_rows([name])


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
        name
        for name in systems.trained_systems()
        if systems.SYSTEMS[name].direction == systems.BOTH
    ]
    alone = {name for name in both if not Row(name).interacts}
    named = {name for name in both if "lambda0" in name}
    assert alone == named | {"teacher-both"}
    assert "sb-noise-lambda0" in named


@pytest.mark.parametrize("name", ["sbb", "sb@x", "", "sb@", "sb@²", "sb@5000000000"])
def test_unknown_rows_are_refused(name):
    with pytest.raises(ValueError, match=f"--rows must name .* but has '{name}'"):
        asked_rows(["teacher-l2r", name])


def test_a_reader_stands_beside_a_row_that_writes_alone():
    rows = systems.SYSTEMS
    readers = [x for x in rows.values() if x.options.get("--sb-reader", 0) is None]
    assert len(readers) == 2
    for system in readers:
        writer = rows[system.starts_from]
        assert writer.options["--sb-lambda"] == 0 != system.options["--sb-lambda"]
        assert system.data == writer.data
