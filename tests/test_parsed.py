"""Options of a recipe's commands, asked before the first one runs."""

import in_process
import pytest
from commands import ROOT
from steps import call

from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.parsed import check_options
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.row_steps import RowSteps
from sbnmt_plugin.tools.recipes.rows import asked_rows
from sbnmt_plugin.tools.recipes.step import in_order


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"decode": ["--beem", "4"]},
            "step .*: unrecognized arguments: --beem 4",
        ),
        (
            {"decode": ["--beam", "x"]},
            "step .*: argument --beam: invalid int value",
        ),
        (
            {"sb_train": {"lr": 1, "--fp16": True}},
            "step train/sb .* arguments: True lr 1",
        ),
        ({"decode": ["--sampling"]}, "step .*: --sampling is not supported by"),
        ({"generate": ["--max-token", "9"]}, "step generate/sb .*--max-token 9"),
        ({"sb_train": {"--sb-lamda": 1}}, "step train/sb an .*: --sb-lamda 1"),
        ({"pseudo": ["--nbest", "2"]}, "step .* --nbest is not supported by a step"),
        (
            {"systems": {"sb": {"--encoder-layerz": 2}}},
            "step train/sb an option that its command .*: --encoder-layerz 2",
        ),
    ],
    ids=str,
)
def test_a_wrong_option_is_told_before_anything_runs(tmp_path, changes, message):
    recipe = in_process.write_recipe(tmp_path / "recipe", **changes)
    with pytest.raises(ValueError, match=f"recipe.yaml, or .*, gives {message}"):
        call(run_recipe, recipe, "--work", tmp_path / "work", "--rows", "sb")
    assert not (tmp_path / "work" / "logs").exists()


@pytest.mark.parametrize(
    "name",
    ["toy", "multi30k", "techdocs_zh_en", "wmt14_en_de", "wmt18_ru_en", "nist_zh_en"],
)
def test_the_examples_give_options_that_all_parsers_take(tmp_path, name):
    for small in {False, name != "toy"}:
        settings = load_recipe(ROOT / "examples" / name, small)
        steps = RowSteps(Run(settings, tmp_path, tmp_path, tmp_path))
        names = [*settings["rows"], "ba", "sb-finetuned"]
        if "--share-all-embeddings" in settings["train"]:
            names.append("parallel")
        rows = asked_rows(names, where="")
        check_options(in_order(steps.targets(rows)))
