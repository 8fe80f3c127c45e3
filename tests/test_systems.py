"""Systems: those that are retired, and those of a family outside the package."""

import json
from unittest import mock

import in_process
import pytest
from commands import ROOT, captured
from steps import call, put

from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.recipes import costs, systems
from sbnmt_plugin.tools.recipes.systems.retired import RETIRED_ROWS
from sbnmt_plugin.tools.results import work_folder_rows

TOY = ROOT / "examples" / "toy"


def test_each_retired_row_names_one_that_can_be_trained():
    trained = systems.trained_systems()
    assert len(RETIRED_ROWS) == 14
    assert not set(RETIRED_ROWS) & set(trained)
    assert {system.remedy for system in RETIRED_ROWS.values()} <= set(trained)
    assert {row for rows in systems.GROUPS.values() for row in rows} <= set(trained)


@pytest.mark.parametrize("end", ["", "@2", "+rescored", "+rescored@3"])
@pytest.mark.parametrize("name", RETIRED_ROWS)
def test_training_a_retired_row_is_refused(name, end, tmp_path):
    words = ["toy", "--work", tmp_path / "work", "--rows", "sb", name + end]
    remedy = RETIRED_ROWS[name].remedy
    with pytest.raises(ValueError, match=rf"{name} is no longer .*: use {remedy}$"):
        call(run_recipe, *words)
    assert not (tmp_path / "work").exists()


def test_results_of_a_retired_row_are_still_shown(tmp_path):
    """Also what its own recipe.yaml, of 0.2.0, said of its stages."""
    stages = {"sb-staged-continued": [{"data": "gold"}, {"data": "two"}]}
    changes = {"stages": stages, "systems": {"sb-noise": {"--max-epoch": 3}}}
    folder = in_process.write_recipe(tmp_path / "recipe", **changes)
    work = tmp_path / "work"
    score = {"score": 30.0, "signature": "s"}
    scores = dict.fromkeys(("tokenised BLEU", "BLEU", "chrF"), score)
    for name in RETIRED_ROWS:
        for row in name, f"{name}+rescored", f"{name}@2":
            put(work / "results" / f"{row}.json", json.dumps(scores))
            put(work / name / "options.json", '{"--sb-partner": "own"}')
    log = "| train | epoch 001 | wpb 10 | num_updates 7"
    for step in "sb-noise", "sb-staged-continued-stage-1", "sb-staged-continued":
        put(work / "logs" / f"train-{step}.log", costs.launch_line("x") + log)
    with (
        mock.patch.object(work_folder_rows, "compare", return_value=None),
        captured() as output,
    ):
        call(show_table, "--recipe", folder, "--work", work)
    table = json.loads((work / "table.json").read_text())
    rows = {row["name"]: row for row in table["rows"]}
    assert all(row["title"] in output.text for row in table["rows"])
    assert len(rows) == 3 * len(RETIRED_ROWS)
    assert rows["sb-noise@2"]["title"] == "SB-NMT, λ = 1, three triples, noise, seed 2"
    assert rows["sb-noise+rescored"]["updates"] == rows["sb-noise"]["updates"] == 7
    assert rows["sb-staged-continued"]["updates"] == 2 * 7


@pytest.mark.parametrize("name", ["sb", "paper"])
def test_another_package_registers_rows_of_new_names_alone(name):
    """Those that it registers are trained: see the toy family."""
    mine = systems.System("Mine", "gold", family="my_")
    before = dict(systems.SYSTEMS)
    for group, row in (name, "my-row"), ("mine", name):
        with pytest.raises(ValueError, match=f"{name} must be a new name"):
            systems.register_rows(group, {row: mine})
    assert before == systems.SYSTEMS
