"""The measurement of what steps cost on large texts: its texts, and what it notes."""

import random
import sys

import pytest

from campaign import scale
from sbnmt_plugin.tools.text import read_parallel
from sbnmt_plugin.tools.translations import each_translation

LINES = 30


def test_a_step_is_measured_on_texts_of_the_size(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "SHARD", 7)
    scale.write_corpus(tmp_path, random.Random(1), LINES)
    source, target = read_parallel(tmp_path / "train.en", tmp_path / "train.de")
    assert len(source) == LINES and target == [line.upper() for line in source]
    assert len(list(each_translation(tmp_path / "l2r.tsv", LINES))) == LINES
    assert len(list((tmp_path / "shards").iterdir())) == 5
    words, _ = scale.commands(tmp_path, LINES)["triples"]
    found = scale.measured(words, tmp_path / "log")
    assert found["peak MiB"] > 1 and found["CPU seconds"] >= 0
    assert len(read_parallel(tmp_path / "triples.en")[0]) == 2 * LINES


def test_a_step_that_fails_is_no_measurement(tmp_path):
    words = [sys.executable, "-c", "raise SystemExit('no such thing')"]
    with pytest.raises(ValueError, match="no such thing"):
        scale.measured(words, tmp_path / "log")


def test_the_memory_of_a_step_is_its_own(tmp_path):
    """A child begins with its parent's peak, which this one makes large."""
    held = bytearray(200 * 2**20)
    found = scale.measured([sys.executable, "-c", "pass"], tmp_path / "log")
    assert found["peak MiB"] < len(held) / 2**20
