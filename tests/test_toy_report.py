"""examples/toy/report.sh: its steps in order, and a trace that fails, with stubs."""

import os
import shutil
import subprocess

import pytest
from commands import ROOT

STUB = """#!/bin/sh
echo "${0##*/} $1" >>notes
case ${0##*/} in
  fairseq-interactive)
    seq 8 | sed 's/^/line /'
    echo trace >work/toy/trace.new
    exit STATUS ;;
esac
"""


@pytest.fixture
def report(tmp_path):
    """The script in a clone with a finished run; its result, and what it started."""
    script = tmp_path / "examples" / "toy" / "report.sh"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "examples" / "toy" / "report.sh", script)
    for name in ("bpe", "logs", "results"):
        (tmp_path / "work" / "toy" / name).mkdir(parents=True)
    (tmp_path / "work" / "toy" / "bpe" / "test.src").write_text("a b\n")
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)

    def run(status):
        for name in ("sbnmt", "fairseq-interactive"):
            (programs / name).write_text(STUB.replace("STATUS", str(status)))
            (programs / name).chmod(0o755)
        (tmp_path / "notes").write_text("")
        done = subprocess.run(
            [script],
            env={**os.environ, "VENV": str(tmp_path / "venv")},
            capture_output=True,
            text=True,
        )
        return done, (tmp_path / "notes").read_text().splitlines()

    return run


def test_the_report_is_made_of_a_sweep_and_a_trace(report, tmp_path):
    done, started = report(0)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    steps = ["sbnmt sweep-beam", "fairseq-interactive work/toy/data", "sbnmt report"]
    assert started == steps
    assert (tmp_path / "work/toy/results/trace.jsonl").read_text() == "trace\n"
    assert report(1)[1] == [steps[0], steps[2]]  # the trace is there


def test_a_trace_that_fails_says_why_and_is_none(report, tmp_path):
    done, started = report(3)
    assert done.returncode == 1
    assert "line 8" in done.stderr and "line 3\n" not in done.stderr
    assert "work/toy/logs/trace.log has its whole output" in done.stderr
    assert started[-1] == "fairseq-interactive work/toy/data"
    assert not (tmp_path / "work/toy/results/trace.jsonl").exists()
