"""Curves of what rows read and of their BLEU, over updates."""

import re

import pytest
from commands import ROOT
from steps import put

from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.report.learning import (
    BITS,
    BLEU,
    curves_of,
    learning,
    row_curves,
)

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
    recipe = load_recipe(ROOT / "examples" / "toy", small=False)
    return {**recipe, "stages": stages}


def test_curves_are_those_of_the_logs(tmp_path):
    lines = [inner(100, 0.2, 0.1), inner(200, "None", "None"), valid(250, 20.5)]
    lines += [inner(300, 0.4, 0.2), valid(500, 30.0)]
    put(tmp_path / "train-sb.log", *lines)
    found = row_curves(tmp_path, toy(), Row("sb"))
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
    found = row_curves(tmp_path, toy(**{"sb-staged": stages}), Row("sb-staged"))
    assert found[BITS] == ([60, 120], [0.2, 0.3])
    assert found[BLEU] == ([80, 130], [10.0, 11.0])


def test_stages_follow_each_other_without_bleu_and_more_than_two(tmp_path):
    stages = [{}, {}, {"continue": True}]
    recipe = toy(**{"sb-staged": stages})
    for name, last in ("-stage-1", 100), ("-stage-2", 150), ("", 200):
        put(tmp_path / f"train-sb-staged{name}.log", inner(last, 0.2, 0.2))
    assert row_curves(tmp_path, recipe, Row("sb-staged"))[BITS][0] == [100, 250, 300]


def test_a_row_trained_as_its_twin_has_its_curve(tmp_path):
    put(tmp_path / "train-sb.log", valid(50, 11.0))
    assert row_curves(tmp_path, toy(), Row("sb-tanh-1.0")) == {BLEU: ([50], [11.0])}


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


def lines_of(figure):
    """Labels, colours and points, of SVG."""
    line = (
        r'<path d="([^"]*)" clip-path="[^"]*" '
        r'style="fill: none; stroke: ([^;]*); stroke-width: 1.1'
    )
    points = [
        (colour, [float(number) for number in re.findall(r"[\d.]+", path)])
        for path, colour in re.findall(line, figure)
    ]
    return re.findall("<!-- (.*) -->", figure), points


def test_the_figure_has_a_line_of_every_curve_in_its_rows_colour(tmp_path):
    bits, bleu = ([40, 80, 120], [0.1, 0.3, 0.2]), ([50, 90], [11.5, 30.25])
    held = {
        "SB": {"1": {BITS: bits, BLEU: bleu}, "2": {BLEU: bleu}},
        "L2R": {"1": {BLEU: ([60], [20.0])}, "3": {BITS: bits}},
    }
    learning(held).write(str(tmp_path / "curves"))
    labels, lines = lines_of((tmp_path / "curves.svg").read_text("utf-8"))
    assert set(held) <= set(labels)
    wanted = [
        (title, len(curves[quantity][0]))
        for quantity in (BITS, BLEU)
        for title, seeds in held.items()
        for curves in seeds.values()
        if quantity in curves
    ]
    assert [len(points) // 2 for _, points in lines] == [size for _, size in wanted]
    colours = {title: colour for (title, _), (colour, _) in zip(wanted, lines)}
    assert [colours[title] for title, _ in wanted] == [colour for colour, _ in lines]
