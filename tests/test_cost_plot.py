"""sbnmt table --plot: scores against costs."""

import json
import re

import pytest
from commands import ROOT
from pages import committed
from steps import call, put

from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.report.cost import frontier
from sbnmt_plugin.tools.results import cost_plot as chains


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
