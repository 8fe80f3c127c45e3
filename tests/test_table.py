"""The results table: titles of its rows, and those that are long gone."""

from commands import ROOT
from steps import put

from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.results import table
from sbnmt_plugin.tools.results import work_folder_rows as results


def test_a_model_of_both_directions_is_named(tmp_path):
    settings = load_recipe(ROOT / "examples" / "toy", small=False)
    put(tmp_path / "results" / "teacher-both+rescored@2.json", "{}")
    row = results.build_row(tmp_path, settings, Row("teacher-both", 2, True))
    assert row["title"] == "SB-NMT, λ = 0, gold, rescored, seed 2"


def test_rows_that_no_recipe_has_any_more_are_shown():
    """As they stand in committed tables, with seeds and rescoring."""
    cost = {"tokenised BLEU": 30.0, "seconds": 60, "updates": 5}
    names = ["sb-retired", "sb-retired@2", "sb-retired+rescored"]
    rows = [{"name": name, "title": f"<{name}>", "p": 0.5, **cost} for name in names]
    held = {"command": "sbnmt table", "machine": "m", "rows": rows}
    shown = table.render({**held, "signatures": {"tokenised BLEU": "s"}})
    assert all(f"| <{name}>" in shown for name in names)
