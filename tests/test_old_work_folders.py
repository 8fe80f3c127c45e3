"""A work folder that 0.1.0 has begun goes on, and one that it has finished is done.

data/work-0.1.0 is what `scripts/run_recipe.py examples/toy --work work/toy` left at
commit 9e98947: the names of all files (files.txt), the small ones whole.
"""

import json
import shutil

import in_process
import pytest
from commands import ROOT
from steps import call

from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.recipes import runner

OLD = ROOT / "tests" / "data" / "work-0.1.0"
# of the real log, the lines from which costs are read
LOG = """\
== launch 2026-11-21 16:42:30 | commit 9e98947 | Python 3.11.7 | python -m fairseq_cli
2026-11-21 16:44:00 | INFO | train | epoch 015 | loss 7 | wpb 2600 | num_updates 1466 |
== end 2026-11-21 16:44:10 | peak 0.52 GiB
"""


@pytest.fixture
def work(tmp_path):
    folder = in_process.unpacked(OLD, tmp_path / "work")
    (folder / "logs" / "train-sb.log").write_text(LOG)
    return folder


@pytest.fixture
def begun(monkeypatch):
    """The steps that the driver takes; none is run."""
    found = []

    def note(self, step):
        found.append(step.name)

    monkeypatch.setattr(runner.Runner, "run", note)
    return found


def files(work):
    """Which files there are, and when each was written (reading changes st_atime)."""
    return {
        path: (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_size)
        for path in work.rglob("*")
        if path.is_file()
    }


def test_what_0_1_0_has_finished_is_done_and_only_printed(work, begun, capsys):
    before = files(work)
    call(run_recipe, OLD, "--work", work)
    assert begun == []
    table = json.loads((work / "table.json").read_text())
    rows = {row["name"]: row for row in table["rows"]}
    scores = {name: row["tokenised BLEU"] for name, row in rows.items()}
    assert scores == {"teacher-l2r": 70.87, "teacher-r2l": 88.25, "sb": 93.07}
    assert (rows["sb"]["updates"], rows["sb"]["commits"]) == (1466, ["9e98947"])
    assert rows["sb"]["reading"]["as trained"] == 0.209
    assert "93.07" in capsys.readouterr().out
    written = {path.name for path, _ in files(work).items() - before.items()}
    assert written <= {"recipe.json", "table.json", ".lock"}
    call(show_table, "--recipe", OLD, "--work", work)
    assert "93.07" in capsys.readouterr().out


def test_what_0_1_0_has_begun_goes_on_where_it_was(work, begun):
    """Killed while sb was in training: its results, and `done`, were not there yet."""
    (work / "sb" / "done").unlink()
    for path in work.glob("results/**/sb.json"):
        path.unlink()
    call(run_recipe, OLD, "--work", work, "--jobs", 1)  # in this order
    assert begun == [
        *("train/sb", "average/sb", "generate/sb", "evaluate/sb"),
        *("interaction/sb", "reading/sb"),
    ]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("text/test.tgt", "text"),
        ("bpe/codes.tgt", "bpe/codes.tgt"),
        ("bpe/valid.src", "bpe/valid.src"),
        ("results/sb.json", "generate/sb"),
        ("results/reading/sb.json", "reading/sb"),
    ],
)
def test_a_file_that_is_missing_would_have_been_seen(work, begun, name, step):
    (work / name).unlink()
    if name.startswith(("text", "bpe")):
        shutil.rmtree(work / "data")  # which needs them
    call(run_recipe, OLD, "--work", work)
    assert step in begun


def test_a_model_that_0_1_0_trained_with_other_options_is_refused(work, begun):
    path = work / "sb" / "options.json"
    path.write_text(path.read_text().replace('"--lr": 0.004', '"--lr": 0.005'))
    with pytest.raises(ValueError, match=r"begun with other options \(--lr\)"):
        call(run_recipe, OLD, "--work", work, "--rows", "sb", "sb-tanh-1.0")
