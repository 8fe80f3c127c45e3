"""sbnmt table: the tables in the repository, and the pages that show them."""

import json

import pytest
from commands import ROOT
from pages import committed, section_of
from steps import call, put

from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.systems import PAPER
from sbnmt_plugin.tools.results import work_folder_rows as results

# BLEU in the paper, tables 3 to 5; Zh-En is the mean of MT03 to MT06
PAPER_BLEU = {
    "Zh-En": {
        **{"rnmt": 42.47, "teacher-l2r": 47.19, "teacher-r2l": 46.11, "rerank": 48.10},
        **{"abd": 48.19, "transformer-pl": 49.48, "transformer-pl-pr": 49.99},
        **{"sb": 51.11, "sb-six": 52.14},
    },
    "En-De": {
        **{"teacher-l2r": 27.72, "teacher-r2l": 27.13, "rerank": 27.81},
        **{"abd": 28.22, "sb": 29.21},
    },
    "Ru-En": {"teacher-l2r": 31.02, "teacher-r2l": 30.57, "sb": 32.06},
}


@pytest.mark.parametrize(
    ("name", "teachers", "title"),
    [
        ("teacher-r2l", "one", "SB-NMT, λ = 0, gold, R2L answers"),
        ("teacher-both", "two", "SB-NMT, λ = 0, gold"),
        ("teacher-both+rescored@2", "two", "SB-NMT, λ = 0, gold, rescored, seed 2"),
    ],
)
def test_a_model_of_both_directions_is_named(tmp_path, name, teachers, title):
    settings = load_recipe(ROOT / "examples" / "toy", small=False)
    put(tmp_path / "results" / f"{name}.json", "{}")
    row = results.build_row(
        tmp_path, {**settings, "teachers": teachers}, Row.parse(name)
    )
    assert row["title"] == title


def tables():
    """All tables in the repository: of runs, of seeds and of beams."""
    found = []
    for path in sorted((ROOT / "examples").glob("*/*.json")):
        held = json.loads(path.read_text(encoding="utf-8"))
        if "runs" in held or ("rows" in held and "signatures" in held):
            found.append(path)
    return found


def test_toy_and_small_tables_are_committed():
    names = {f"{path.parent.name}/{path.name}" for path, _ in committed()}
    assert names >= {"toy/results.json", "multi30k/results-small.json"}
    assert {path for path, _ in committed()} < set(tables())
    assert ROOT / "examples" / "toy" / "beams.json" in tables()


@pytest.mark.parametrize("path", tables(), ids=lambda p: f"{p.parent.name}/{p.name}")
def test_pages_show_the_committed_numbers(path, capsys):
    call(show_table, path)
    pages = [page.read_text(encoding="utf-8") for page in path.parent.glob("*.md")]
    lines = capsys.readouterr().out.splitlines()
    lacking = [[line for line in lines if line not in page] for page in pages]
    least = min(lacking, key=len)  # of the page that shows it
    assert not least, f"{path.parent} lacks {least[0]!r}: scripts/table.py {path}"


def test_the_readme_shows_the_committed_numbers():
    """And the paper's beside them, of each of its systems that either has."""
    columns = {f"paper, {name}": PAPER_BLEU[name] for name in PAPER_BLEU}
    for name in "toy_clauses", "toy":
        path = ROOT / "examples" / name / "results.json"
        rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        columns[name] = {row["name"]: row["tokenised BLEU"] for row in rows}
    lines = section_of("Results").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| tok. BLEU"))
    head, _, *shown = ([c.strip() for c in x[1:-1].split("|")] for x in lines[start:])
    assert head == ["tok. BLEU", *columns]
    wanted = []
    for name, system in PAPER.items():
        values = [column.get(name) for column in columns.values()]
        if any(values):
            title = system.title.format(**{"fusion": "tanh", "lambda": "as stated"})
            wanted.append([title, *(f"{x:.2f}" if x else "" for x in values)])
    assert shown[: len(wanted)] == wanted


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing does not exist"):
        call(show_table, tmp_path / "nothing")


def test_rows_that_no_recipe_has_any_more_are_shown(tmp_path, capsys):
    """As they stand in committed tables; seeds and rescoring, too."""
    cost = {"tokenised BLEU": 30.0, "total seconds": 60, "updates": 5}
    names = ["sb-retired", "sb-retired@2", "sb-retired+rescored"]
    rows = [{"name": name, "title": f"<{name}>", "p": 0.5, **cost} for name in names]
    seeds = {"name": names[0], "title": "<all>", "seeds": [1, 2], "mean": 30.0}
    seeds |= {"score": "tokenised BLEU", "deviation": 0.5, "p": {}}
    held = {"command": "sbnmt table", "machine": "m", "rows": rows, "seeds": [seeds]}
    path = tmp_path / "table.json"
    put(path, json.dumps({**held, "signatures": {"tokenised BLEU": "s"}}))
    call(show_table, path)
    shown = capsys.readouterr().out
    assert all(f"| <{name}>" in shown for name in names)
    assert "30.00 ± 0.50" in shown
