"""sbnmt compare: rows against each other."""

import json
import statistics

import in_process
import pytest
from comparing import LINES, RIGHT, answers, bleu, p_of_seeds
from steps import call, put

from sbnmt_plugin.tools.commands import compare
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.stages import row_records
from sbnmt_plugin.tools.recipes.work_folder import ModelRecord
from sbnmt_plugin.tools.results import comparison
from sbnmt_plugin.tools.text import write_lines

ROWS = {
    "transformer-pl": 0.3,
    "transformer-pl@2": 0.31,
    "sb-lambda0": 0.22,
    "sb-lambda0@3": 0.25,
    "sb": 0.2,
    "sb@2": 0.21,
    "sb@3": 0.19,
    "teacher-l2r": 0.4,
}


def p_against(row, rival, *seeds):
    """Return p of the rows of :data:`ROWS` by seeds that both have."""
    names = list(ROWS)

    def run(name, seed):
        whole = name if seed == 1 else f"{name}@{seed}"
        return answers(names.index(whole), ROWS[whole])

    return p_of_seeds(*([run(name, seed) for seed in seeds] for name in (row, rival)))


def evaluated(tmp_path, rates=ROWS):
    """Make a work folder as the driver leaves it; return the score of each row."""
    settings = load_recipe(in_process.write_recipe(tmp_path / "recipe"), False)
    put(tmp_path / "text" / "test.tgt", *RIGHT)
    put(tmp_path / "recipe.json", json.dumps(settings))
    scores = {}
    for place, (name, rate) in enumerate(rates.items()):
        result, lines = tmp_path / "results" / f"{name}.json", answers(place, rate)
        put(result.with_suffix(".tok"), *lines)
        scores[name] = round(bleu().corpus_score(lines, [RIGHT]).score, 2)
        put(result, json.dumps({"tokenised BLEU": {"score": scores[name]}}))
    return scores


@pytest.fixture
def compared(capsys):
    """Run sbnmt compare; return the cells of its table, the first row its head."""

    def run(folder, *names):
        call(compare, "--work", folder, *names)
        lines = capsys.readouterr().out.splitlines()
        cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
        return [cells[0], *cells[2:]]

    return run


def test_rows_are_compared_by_the_seeds_that_both_have(tmp_path, compared):
    scores = evaluated(tmp_path)
    names = ["transformer-pl", "sb-lambda0", "teacher-l2r"]
    head, *cells = compared(tmp_path, "sb", *names)
    assert "sb against" in head and "tok. BLEU" in head
    assert [row[0] for row in cells] == names
    assert [row[1] for row in cells] == ["1, 2", "1, 3", "1"]
    first = cells[0]
    ours = [scores["sb"], scores["sb@2"]]
    theirs = [scores["transformer-pl"], scores["transformer-pl@2"]]
    each = [a - b for a, b in zip(ours, theirs)]
    assert float(first[2]) == pytest.approx(statistics.mean(ours), abs=0.006)
    assert float(first[3]) == pytest.approx(statistics.mean(theirs), abs=0.006)
    assert first[4] == compare.signed(statistics.mean(each))
    assert first[5] == ", ".join(map(compare.signed, each))
    low, high = (float(x.replace("+", "")) for x in first[6].split(" to "))
    assert 0 < low < statistics.mean(each) < high
    p = p_against("sb", "sb-lambda0", 1, 3)
    assert cells[1][7] == f"{p:.3f}"


def test_a_difference_has_a_sign_unless_it_rounds_to_nothing():
    signs = [compare.signed(value) for value in (1.234, -0.006, 0.004, -0.004, 0)]
    assert signs == ["+ 1.23", "− 0.01", "0.00", "0.00", "0.00"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("sb@2", "sb"), "a row without a seed.*leave out @2"),
        (("sb", "sb-six"), "sb-six.json must hold the results of a row"),
        (("sb", "none"), "^ROW must name .* but has 'none'"),
        (("sb", "paper"), "^ROW must name ((?! paper,).)* but has 'paper'"),
        (("sb", "teacher-back"), "must translate into the target"),
        (("sb-lambda0", "sb-shift"), r"must share a seed.*\[1, 3\] and \[2\]"),
    ],
)
def test_what_cannot_be_compared_is_refused(names, message, tmp_path, compared):
    evaluated(tmp_path, {**ROWS, "sb-shift@2": 0.2})
    with pytest.raises((ValueError, OSError), match=message):
        compared(tmp_path, *names)


def test_seeds_of_different_trainings_are_not_pooled(tmp_path, compared):
    evaluated(tmp_path)
    settings = json.loads((tmp_path / "recipe.json").read_text())
    for seed in 1, 2:
        row = Row("sb", seed)
        (options,) = row_records(settings, row)
        ModelRecord(tmp_path / row.name, options).begin()
    compared(tmp_path, "sb", "transformer-pl")
    path = tmp_path / "sb@2" / "options.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"--lr": 7}))
    with pytest.raises(ValueError, match=r"sb@2 was begun .* \(--lr\)"):
        compared(tmp_path, "sb", "transformer-pl")


def test_answers_of_another_length_are_refused(tmp_path, compared):
    evaluated(tmp_path)
    path = tmp_path / "results" / "sb-lambda0.tok"
    write_lines(path, path.read_text("utf-8").splitlines()[:-1])
    message = f"lambda0.tok must have {LINES} lines.* but has {LINES - 1}: decode"
    with pytest.raises(ValueError, match=message):
        compared(tmp_path, "sb", "sb-lambda0")


def test_a_folder_of_no_recipe_is_refused(tmp_path, compared):
    with pytest.raises(FileNotFoundError, match="json: give the --work of"):
        compared(tmp_path, "sb", "sb-lambda0")
    (tmp_path / "recipe.json").write_text('{"score": 3}', "utf-8")
    with pytest.raises(ValueError, match=r"recipe.json must be .* but is damaged"):
        compared(tmp_path, "sb", "sb-lambda0")


def test_a_baseline_alone_is_compared_with_nothing(tmp_path):
    """Its hypotheses may be gone; those of another row are read."""
    evaluated(tmp_path)
    settings = load_recipe(tmp_path / "recipe", False)
    (tmp_path / "results" / "transformer-pl.tok").unlink()
    rows = [{"name": "transformer-pl", "tokenised BLEU": 70.0}]
    assert comparison.compare(tmp_path, settings, rows) == "transformer-pl"
    rows.append({"name": "sb", "tokenised BLEU": 80.0})
    with pytest.raises(FileNotFoundError, match=r"transformer-pl\.tok"):
        comparison.compare(tmp_path, settings, rows)
    put(tmp_path / "results" / "transformer-pl.json", "{}")
    with pytest.raises(
        ValueError, match=r"transformer-pl\.json must .*: evaluate anew"
    ):
        comparison.compare(tmp_path, settings, rows)
