"""Costs of steps, read from the driver's logs."""

from sbnmt_plugin.tools import machine
from sbnmt_plugin.tools.recipes import costs

LOG = """\
== launch 2026-01-01 10:00:00 | commit abc1 | Python 3 | scripts/train.py
2026-01-01 10:00:10 | INFO | train | epoch 001 | loss 7 | wpb 100 | num_updates 10 | x
2026-01-01 10:00:50 | INFO | train_inner | epoch 002: 3 / 10 loss=1, wpb=1
== launch 2026-01-02 10:00:00 | commit abc2 | Python 3 | scripts/train.py
2026-01-02 10:00:05 | INFO | x | rank 0: total memory = 80.0 GB ; name = H200
2026-01-02 10:00:06 | INFO | train_inner | epoch 002: 4 / 5 loss=1, num_updates=14, \
gb_free=60.5, wall=0
2026-01-02 10:00:09 | INFO | train | epoch 002 | loss 6 | wpb 200 | num_updates 15 | \
gb_free 70.5 | wall 0
2026-01-02 10:00:10 | INFO | valid | epoch 003 | valid on 'valid' subset | loss 6 | \
wpb 7 | num_updates 20
2026-01-02 10:00:10 | INFO | train | epoch 003 | read_bits_l2r 0.4 | \
read_bits_r2l 0.3 | loss 6 | wpb 200 | num_updates 20 | gb_free 71.5 | wall 0
== end 2026-01-02 10:00:20 | peak 1.25 GiB
"""


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
        "peak GPU memory (GiB)": 19.5,
    }


def test_the_drivers_own_lines_are_read_back(tmp_path):
    path = tmp_path / "log"
    path.write_text(costs.launch_line("train.py") + costs.end_line(2.5))
    cost = costs.step_cost(path)
    assert cost["commits"] == [machine.commit()]
    assert cost["machines"] == [machine.machine()]
    assert cost["peak memory (GiB)"] == 2.5


def test_a_clock_that_is_set_back_takes_nothing_from_the_cost():
    times = ["10:00:00", "10:00:20", "09:00:00", "09:00:30"]
    lines = [f"2026-11-21 {time} | INFO | x" for time in times]
    lines.insert(0, f"{costs.LAUNCH}2026-11-21 10:00:00 | commit x |")
    assert costs.seconds(lines) == 50
