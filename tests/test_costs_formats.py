"""fairseq-train's logs: both formats have the same numbers for whoever reads them."""

import logging

import pytest
from fairseq.logging import progress_bar
from steps import put

from sbnmt_plugin.tools.recipes import costs, runner

STATS = {"loss": 7.25, "nll_loss_l2r": 6.5, "bleu": 12.5, "gnorm": float("inf")}
STATS |= {"read_bits_l2r": None, "wps": 1000, "ups": 5, "wpb": 200, "gb_free": 70.5}


def written(path, form, monkeypatch):
    """Write the log of a training of three epochs as fairseq does."""
    lines = [f"{costs.LAUNCH}2026-01-01 10:00:00 | commit abc | train"]
    lines += ["2026-01-01 10:00:01 | INFO | x | total memory = 80.0 GB ; name = H"]
    noted = logging.Handler()
    shape = "2026-01-01 10:00:09 | INFO | %(name)s | %(message)s"
    noted.setFormatter(logging.Formatter(shape))
    noted.emit = lambda record: lines.append(noted.format(record))
    monkeypatch.setattr(progress_bar.logger, "handlers", [noted])
    monkeypatch.setattr(progress_bar.logger, "level", logging.INFO)
    for epoch in (1, 2, 3):
        bar = progress_bar.progress_bar(range(9), form, 1, epoch=epoch)
        for update in bar:
            stats = {**STATS, "loss": 7 - epoch - update / 9}
            step = (epoch - 1) * 9 + update + 1
            bar.log({**stats, "num_updates": step}, tag="train_inner", step=step)
        stats = {**STATS, "num_updates": 9 * epoch}
        bar.print(stats, tag="train", step=9 * epoch)
        bar.print(stats, tag="valid", step=9 * epoch)
    return put(path, *lines)


def read(path):
    """Return all that our steps read of a log."""
    lines = path.read_text().splitlines()
    log = costs.read_train_log(lines)
    told = [runner.shorten(costs.simple(line)) for line in lines if "| valid |" in line]
    curves = {key: log[key] for key in log if key[1] in STATS}
    return curves, costs.step_cost(path), told


def assert_alike(path, form, monkeypatch):
    one, two = (
        read(written(path / name, name, monkeypatch)) for name in ("simple", form)
    )
    assert one == two
    curves, cost, told = one
    assert curves["train", "ups"] == {9: 5, 18: 5, 27: 5}
    assert cost["updates"] == 27 and cost["tokens"] == 27 * 200
    assert cost["peak GPU memory (GiB)"] == 9.5
    assert len(told) == 3 and "bleu 12.5" in told[0]


def test_json_is_read_as_the_simple_format(tmp_path, monkeypatch):
    assert_alike(tmp_path, "json", monkeypatch)


def test_the_check_of_formats_can_fail(tmp_path, monkeypatch):
    with pytest.raises(AssertionError):
        assert_alike(tmp_path, "none", monkeypatch)
    monkeypatch.setattr(costs, "simple", lambda line: line)
    with pytest.raises(AssertionError):
        assert_alike(tmp_path, "json", monkeypatch)


@pytest.mark.parametrize(
    "line",
    ['| valid | {"loss": 1', "| train | {1}", "| x | {}", "", "| valid | epoch 1 | x"],
)
def test_other_lines_stay_as_they_are(line):
    assert costs.simple(line) == line
