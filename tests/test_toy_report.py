"""examples/toy/report.sh: its steps in order, and a trace that fails, with stubs."""

import os
import shutil

from commands import ROOT
from steps import put, ran

STUB = """#!/bin/sh
echo "${0##*/} $1" >>notes
case ${0##*/} in
  fairseq-interactive)
    seq 8 | sed 's/^/line /'
    echo trace >work/toy/trace.new
    exit STATUS ;;
esac"""


def test_the_report_is_made_of_a_sweep_and_a_trace(tmp_path):
    """In a clone with a finished run, where the trace fails at first."""
    script, work = (
        tmp_path / "examples" / "toy" / "report.sh",
        tmp_path / "work" / "toy",
    )
    put(script)
    shutil.copy(ROOT / "examples" / "toy" / "report.sh", script)
    put(work / "bpe" / "test.src", "a b")
    put(work / "logs" / "x")
    put(work / "results" / "x")
    steps = ["sbnmt sweep-beam", "fairseq-interactive work/toy/data"]
    pages = ["sbnmt trace-page", "sbnmt report"]
    trace, taken = work / "results" / "trace.jsonl", []
    for status in 3, 0, 1:
        for name in ("sbnmt", "fairseq-interactive"):
            stub = put(tmp_path / "bin" / name, STUB.replace("STATUS", str(status)))
            stub.chmod(0o755)
        notes = put(tmp_path / "notes")
        done = ran([script], env={**os.environ, "VENV": str(tmp_path)})
        taken.append((done.returncode, notes.read_text().splitlines(), trace.exists()))
        assert ("line 8" in done.stderr) == (status == 3)
    assert taken == [
        (1, steps, False),
        (0, [*steps, *pages], True),
        (0, [steps[0], *pages], True),
    ]
