"""Costs of steps and rows, read from the driver's logs."""

from commands import ROOT
from steps import put

from sbnmt_plugin.tools import machine
from sbnmt_plugin.tools.recipes import costs
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.results import work_folder_rows as results

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


def test_a_rows_whole_cost_includes_all_workers_and_launches(tmp_path):
    settings = load_recipe(ROOT / "examples" / "toy", small=False)
    for name in ("train-teacher-l2r", "train-teacher-r2l", "train-sb", "train-sb-six"):
        put(tmp_path / f"{name}.log", *LOG.splitlines())  # 70 s
    put(tmp_path / "pseudo-l2r.log", *KILLED.splitlines())  # 300 s
    put(tmp_path / "pseudo-l2r-0.log", *LOG.splitlines())
    put(tmp_path / "pseudo-l2r-1.log", *KILLED.splitlines())

    def total(name):
        return results.total_costs(tmp_path, settings, Row.parse(name))

    assert total("sb") == {}
    put(tmp_path / "pseudo-r2l.log", *KILLED.splitlines())
    seen = results.step_cost(tmp_path / "train-sb.log")["tokens"]
    assert seen > 0
    assert total("sb") == {"total seconds": 3 * 70 + 300 * 3, "total tokens": 3 * seen}
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
    found = results.total_costs(tmp_path, settings, Row("sb"))
    assert found["total processor seconds"] == 6 * 45
    put(tmp_path / "pseudo-r2l.log", *spent.splitlines())  # one launch was killed
    assert "processor seconds" not in costs.step_cost(tmp_path / "pseudo-r2l.log")
    assert "total processor seconds" not in results.total_costs(
        tmp_path, settings, Row("sb")
    )
    assert "total processor seconds" in results.total_costs(
        tmp_path, settings, Row("rerank")
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
    assert cost["commits"] == [machine.commit()]
    assert cost["peak memory (GiB)"] == 2.5
    assert cost["processor seconds"] == 60


def test_a_clock_that_is_set_back_takes_nothing_from_the_cost():
    times = ["10:00:00", "10:00:20", "09:00:00", "09:00:30"]
    lines = [f"2026-11-21 {time} | INFO | x" for time in times]
    lines.insert(0, f"{costs.LAUNCH}2026-11-21 10:00:00 | commit x |")
    assert costs.seconds(lines) == 50
