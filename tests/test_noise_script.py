"""examples/multi30k/noise.py: how much of gold text noise and teachers leave."""

import re
import subprocess
import sys

import pytest
from commands import ROOT

SCRIPT = ROOT / "examples" / "multi30k" / "noise.py"
TEXT = "a b c d e f\ng h i j\nk l m n o p q r\n" * 40


def measured(tmp_path, pseudo, *rates):
    (tmp_path / "gold").write_text(TEXT, encoding="utf-8")
    (tmp_path / "pseudo").write_text(pseudo, encoding="utf-8")
    words = ["--text", tmp_path / "gold", "--pseudo", tmp_path / "pseudo", "--rate"]
    ran = subprocess.run(
        [sys.executable, SCRIPT, *words, *rates],
        capture_output=True,
        text=True,
        check=True,
    )
    return [float(found) for found in re.findall(r"([\d.]+) \|$", ran.stdout, re.M)]


@pytest.mark.parametrize(
    ("line", "percent"),
    [
        ("1\t-1.5\tg h i j", 100.0),
        ("1\t-1.5\tj i h g", 100.0),  # anywhere
        ("1\t-1.5\tg h x y", 50.0),
        ("1\t-1.5\tg g g g", 25.0),  # a word as often as gold text has it
        ("0\t-1.5\tg h i j", 0.0),  # of its own sentence
    ],
)
def test_precision_is_of_words_that_gold_text_has(tmp_path, line, percent):
    clean, noised, teacher = measured(tmp_path, f"{line}\n", "0", "0.5")
    assert clean == 100.0
    assert teacher == percent
    # a quarter is edited on average; a swapped word stays, an inserted one moves others
    assert 70 < noised < 95


def test_more_noise_leaves_less(tmp_path):
    *found, _ = measured(tmp_path, "0\t-1.5\ta\n", "0.25", "0.5", "1")
    assert found == sorted(found, reverse=True) and len(set(found)) == 3
