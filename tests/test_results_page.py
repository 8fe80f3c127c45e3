"""The committed results pages, and every kind of file on one."""

import json
import re

import pytest
import results_page
from commands import ROOT
from steps import put

FOLDERS = sorted({path.parent for path in ROOT.glob("examples/*/*.json")})
ORIGIN = {"command": "do it", "commit": "1a2b3c4", "machine": "m"}
CAMPAIGN = {
    **ORIGIN,
    "date": "2026-01-02",
    "seed": 1,
    "rows": [
        {"subject": "recipe", "SIGKILL": 1234, "faults": []},
        {"subject": "training", "SIGKILL": 2, "faults": ["lost"], "GiB": 0.5},
    ],
}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda p: p.name)
def test_a_committed_page_is_that_of_the_committed_files(folder):
    """Written anew by ``python tests/results_page.py``."""
    lines = results_page.page(folder)
    shown = (folder / results_page.PAGE).read_bytes()
    assert shown == "".join(f"{line}\n" for line in lines).encode()


def test_every_results_page_has_files():
    pages = {path.parent for path in ROOT.glob(f"examples/*/{results_page.PAGE}")}
    assert pages == set(FOLDERS)


def test_runs_come_first_and_sweeps_last():
    """By name within a kind; by name alone they would be mixed."""
    lines = results_page.page(ROOT / "examples" / "multi30k")
    names = [line[3:] for line in lines if line.startswith("## ")]
    order = "again-small", "sets-small", "compared-full", "beams-reader-small"
    assert [name for name in names if name in order] == [*order]
    assert sorted(order) != [*order]


def test_another_number_makes_another_page(tmp_path):
    """Of every file: any of its scores."""
    for path in ROOT.glob("examples/*/*.json"):
        text = path.read_text(encoding="utf-8")
        held = re.search(r'"(?:BLEU|tokenised BLEU|tok\. BLEU|difference)": ', text)
        if held is None:
            continue
        name = re.escape(held[0])
        other = put(
            tmp_path / path.name, re.sub(f"{name}-?[0-9.]+", f"{held[0]}1.25", text)
        )
        assert results_page.section(other) != results_page.section(path), path


def test_rows_of_any_columns_are_shown(tmp_path):
    """As the tests of reliability write them; of a list its length."""
    put(tmp_path / "faults.json", json.dumps(CAMPAIGN))
    results_page.write_page(tmp_path)
    path = tmp_path / results_page.PAGE
    assert path.read_text(encoding="utf-8").splitlines() == [
        f"# Results: {tmp_path.name}",
        "",
        "## faults",
        "",
        "| subject  | SIGKILL | faults | GiB |",
        "| -------- | ------: | -----: | --: |",
        "| recipe   |   1,234 |      0 |     |",
        "| training |       2 |      1 | 0.5 |",
        "",
        "`do it`, commit 1a2b3c4, 2026-01-02, m",
    ]


def test_a_title_and_a_plot_are_shown(tmp_path):
    sweep = {"title": "Beams", "runs": [{"system": "sb", "beam": 4, "BLEU": 30.5}]}
    sweep["runs"][0]["signature"] = "s"
    put(tmp_path / "b.json", json.dumps(sweep | ORIGIN))
    put(tmp_path / "b.svg", "<svg/>")
    lines = results_page.page(tmp_path)
    assert lines[2:8] == ["## b", "", "Beams", "", "![Beams](b.svg)", ""]
    assert "| sb                 | 30.50 |" in lines
    assert lines[-1] == "`do it`, commit 1a2b3c4, m"


@pytest.mark.parametrize("held", ["{", "[1]", '{"rows": 1}', '{"runs": []}'])
def test_a_file_of_something_else_is_refused(held, tmp_path):
    path = put(tmp_path / "x.json", held)
    with pytest.raises(ValueError, match=f"{path} must be as it was written"):
        results_page.write_page(tmp_path)
    assert [*tmp_path.iterdir()] == [path]


def test_a_work_folder_is_no_folder_of_results(tmp_path):
    """Nor is its recipe.json damaged: who removes it cannot go on with the run."""
    put(tmp_path / "recipe.json", '{"title": "x", "source": "en"}')
    message = "recipe.json must hold results, but has none of the keys signatures, "
    with pytest.raises(ValueError, match=message) as caught:
        results_page.write_page(tmp_path)
    assert "remove" not in str(caught.value)


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=f"{tmp_path} must be a folder with"):
        results_page.write_page(tmp_path)
