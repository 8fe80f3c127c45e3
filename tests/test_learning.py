"""Curves of what rows read and of their BLEU, over updates."""

import json

import pytest
from commands import ROOT
from test_scripts import call, put

from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.recipes import settings as recipes
from sbnmt_plugin.tools.report.learning import BITS, BLEU, curves_of, row_curves

STAMP = "2026-11-23 01:00:00 | INFO"


def inner(updates, left, right):
    return (
        f"{STAMP} | train_inner | epoch 001:    {updates} / 900 read_bits_l2r={left}, "
        f"read_bits_r2l={right}, loss=4.2, num_updates={updates}, lr=0.1"
    )


def valid(updates, bleu):
    return (
        f"{STAMP} | valid | epoch 001 | valid on 'valid' subset | loss 4.5 "
        f"| bleu {bleu} | num_updates {updates}"
    )


def toy(**stages):
    recipe = recipes.load_recipe(ROOT / "examples" / "toy", small=False)
    return {**recipe, "stages": stages}


def test_curves_are_those_of_the_logs(tmp_path):
    lines = [inner(100, 0.2, 0.1), inner(200, "None", "None"), valid(250, 20.5)]
    lines += [inner(300, 0.4, 0.2), valid(500, 30.0)]
    put(tmp_path / "train-sb.log", *lines)
    found = row_curves(tmp_path, toy(), "sb")
    assert found[BITS][0] == [100, 300]
    assert found[BITS][1] == pytest.approx([0.15, 0.3])
    assert found[BLEU] == ([250, 500], [20.5, 30.0])


@pytest.mark.parametrize("continues", [False, True])
def test_stages_follow_each_other(tmp_path, continues):
    stages = [{"data": "gold"}, {"data": "two", "continue": continues}]
    put(tmp_path / "train-sb-staged-stage-1.log", inner(60, 0.2, 0.2), valid(80, 10.0))
    after = 80 if continues else 0  # a training begun anew counts from nothing
    put(
        tmp_path / "train-sb-staged.log",
        *(inner(after + 40, 0.3, 0.3), valid(after + 50, 11.0)),
    )
    found = row_curves(tmp_path, toy(**{"sb-staged": stages}), "sb-staged")
    assert found[BITS] == ([60, 120], [0.2, 0.3])
    assert found[BLEU] == ([80, 130], [10.0, 11.0])


def test_stages_follow_each_other_without_bleu_and_more_than_two(tmp_path):
    stages = [{}, {}, {"continue": True}]
    recipe = toy(**{"sb-staged": stages})
    for name, last in ("-stage-1", 100), ("-stage-2", 150), ("", 200):
        put(tmp_path / f"train-sb-staged{name}.log", inner(last, 0.2, 0.2))
    assert row_curves(tmp_path, recipe, "sb-staged")[BITS][0] == [100, 250, 300]


def test_a_row_trained_as_its_twin_has_its_curve(tmp_path):
    put(tmp_path / "train-sb.log", valid(50, 11.0))
    assert row_curves(tmp_path, toy(), "sb-tanh-1.0") == {BLEU: ([50], [11.0])}


def test_rows_without_a_log_have_no_curve(tmp_path):
    put(tmp_path / "logs" / "train-sb.log", valid(50, 11.0))
    put(tmp_path / "logs" / "train-sb@2.log", valid(50, 12.0))
    rows = [
        {"name": name, "title": title, "updates": 50}
        for name, title in (
            *(("sb", "SB"), ("sb@2", "SB, seed 2"), ("sb+rescored", "SB, rescored")),
            *(("sb-lambda0", "λ = 0"), ("teacher-l2r", "L2R")),
        )
    ]
    found = curves_of(tmp_path, toy(), rows)
    assert {title: [*seeds] for title, seeds in found.items()} == {"SB": ["1", "2"]}
    assert found["SB"]["2"] == {BLEU: ([50], [12.0])}


def test_the_committed_curves_are_of_the_committed_rows():
    held = json.loads(
        (ROOT / "examples" / "multi30k" / "curves-small.json").read_text()
    )
    path = ROOT / "examples" / "multi30k" / "seeds-small.json"
    rows = json.loads(path.read_text())["rows"]
    by_title = {(row["title"].split(", seed ")[0], row["seed"]): row for row in rows}
    for title, seeds in held.items():
        for seed, curves in seeds.items():
            updates, _ = curves[BLEU]
            assert updates[-1] == by_title[title, int(seed)]["updates"]


def test_curves_want_a_run(tmp_path):
    path = ROOT / "examples" / "toy" / "results.json"
    with pytest.raises(ValueError, match="--curves reads a run's logs: give --recipe"):
        call(show_table, path, "--curves", tmp_path / "curves")
    assert not list(tmp_path.iterdir())
