"""The campaign: a short round of it, and the losses that it would find."""

import sys
import time
from unittest import mock

import pytest
from steps import call

from campaign import __main__ as campaign
from campaign import faults, processes, subjects
from campaign.accidents import Accidents
from sbnmt_plugin.__main__ import main

SLEEPS = [sys.executable, "-c", "import time; time.sleep(60)"]


def run_here(self, commands):
    """Undisturbed commands need no process of their own: fairseq is imported once."""
    for words in commands:
        with mock.patch.object(sys, "argv", ["sbnmt", *words[3:]]):
            main()


@pytest.fixture(scope="module")
def accidents(data, teacher, tmp_path_factory):
    attack = faults.Faults(tmp_path_factory.mktemp("campaign"), 5)
    attack.stage.data, attack.stage.teacher = data, teacher.parent
    attack.stage.direction = "r2l"
    return Accidents(attack)


@pytest.mark.parametrize("name, limit", [("binarise", 300), ("pseudo", 100)])
def test_a_full_disk_and_then_a_kill_lose_nothing(accidents, name, limit, monkeypatch):
    """A short round of the campaign: one error, a kill while files are written, and
    then the files of a run that nobody disturbed."""
    monkeypatch.setattr(type(accidents.faults), "whole", run_here)
    subject = accidents.subjects[name]
    trial, place = accidents.failed(
        f"full disk {name}", name, processes.small_files(limit)
    )
    accidents.faults.disturb(subject, place, 0.05, trial, aimed=True)
    assert sum(trial.kills.values()) >= 1
    accidents.completed(subject, place, trial)
    assert trial.files and not trial.faults


def test_losses_would_be_found(tmp_path):
    (tmp_path / ".a.7.tmp").touch()
    assert faults.unfinished(tmp_path)
    told = faults.differences({"a": "1", "b": "1"}, {"b": "2", "c": "1"})
    assert told == ["differs: b", "missing: a", "too many: c"]
    running = processes.start(SLEEPS, tmp_path / "log", "here")
    for _ in range(100):
        if processes.alive("here"):
            break
        time.sleep(0.02)
    assert processes.alive("here") and not processes.alive("there")
    running.process.kill()
    running.wait()
    times = {"score": 1, "seconds": [2], "rows": [{"tokens/s": 3, "steps": 4}]}
    assert subjects.without_times(times) == {"score": 1, "rows": [{"steps": 4}]}


@pytest.mark.parametrize(
    "words, named",
    [
        (("fuzz", "--kills", 3), "--kills is an option of campaign faults"),
        (("fuzz", "--subjects", "recipe"), "--subjects is an option of campaign"),
        (("faults", "--minutes", 1), "--minutes is an option of campaign fuzz"),
        (("faults", "--kills", 0), "--kills must be > 0"),
    ],
)
def test_options_that_a_campaign_does_not_have_are_refused(tmp_path, words, named):
    with pytest.raises(ValueError, match=named):
        call(campaign, *words, "--output", tmp_path / "new")
    assert not (tmp_path / "new").exists()
