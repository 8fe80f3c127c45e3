"""The toy's language, and the check of its results."""

import json

import in_process
import pytest
from commands import ROOT
from steps import put


def test_the_toy_language_is_what_it_says():
    toy = in_process.load(ROOT / "examples" / "toy" / "prepare.py")
    classes = [1, 2, 0, 1, 2]
    assert toy.endings(classes, "left") == [1, 0, 0, 1, 0]
    assert toy.endings(classes, "right") == toy.endings(classes[::-1], "left")[::-1]
    assert toy.endings(classes, "both") == [1, 0, 0, 0, 2]


GOOD = {"rescored": 90.0, "bleu": 90.0, "wins": 50.0, "alone": 89.0, "shuffled": 80.0}


def verdict(work, capsys, rescored, bleu, wins, alone, shuffled):
    """Exit status and lines of the toy's check.py, of a run with these results."""
    best = {"tokenised BLEU": {"score": rescored}}
    put(work / "results" / "sb-shift+rescored.json", json.dumps(best))
    sb = {"tokenised BLEU": {"score": bleu}, "L2R wins": {"score": wins}}
    scores = {"λ = 0": alone, "partners shuffled": shuffled}
    interaction = {name: {"score": score} for name, score in scores.items()}
    put(work / "results" / "sb-shift.json", json.dumps(sb))
    put(work / "results" / "interaction" / "sb-shift.json", json.dumps(interaction))
    check = ROOT / "examples" / "toy" / "check.py"
    status, output = in_process.verdict(check, capsys, "--work", work)
    return status, output.split("\n")[1:-1]


def test_the_toy_passes_its_check(tmp_path, capsys):
    status, lines = verdict(tmp_path, capsys, **GOOD)
    assert (status, [line[:4] for line in lines]) == (0, ["ok  "] * 4)


@pytest.mark.parametrize(
    ("name", "value"),
    [("rescored", 89.9), ("wins", 0.0), ("wins", 100.0), ("alone", 89.5),
     ("shuffled", 89.5)],
)  # fmt: skip
def test_a_toy_that_misses_a_mark_fails(name, value, tmp_path, capsys):
    status, lines = verdict(tmp_path, capsys, **GOOD | {name: value})
    assert status == 1
    assert any(line.startswith("FAIL") and f"{value:.1f}" in line for line in lines)
