"""ENAT's rows of a recipe, as its commands, and what they are scored by."""

import pytest
from commands import captured
from steps import call

from sbnmt_plugin.tools.commands import recipe
from sbnmt_plugin.tools.evaluation import References, read_hypotheses
from sbnmt_plugin.tools.recipes import systems
from sbnmt_plugin.tools.recipes.rows import asked_rows


def printed(*words):
    """Commands of a recipe, a line each."""
    with captured() as out:
        call(recipe, *words, "--print")
    return out.text.replace("\\\n  ", "").splitlines()


@pytest.fixture(scope="module")
def script():
    """run.sh with all of ENAT's rows."""
    return printed("multi30k", "--small", "--rows", "teacher-l2r", *systems.PARALLEL)


def commands(script, start):
    return [line for line in script if line.startswith(start)]


def test_a_row_is_trained_on_the_teachers_words(script):
    made = commands(script, "sbnmt triples")
    assert len(made) == 1 and "--pairs kd" in made[0]
    assert "--pseudo-r2l" not in made[0]  # no R2L teacher is needed
    trained = commands(script, "fairseq-train")
    assert sum('"$work/data-kd"' in line for line in trained) == 6
    for line in trained:
        asks = "--enat-input phrase" in line
        assert ("--enat-table" in line) == asks, line


def test_a_recipe_has_words_for_its_phrase_table(script):
    (plain,) = commands(printed("multi30k", "--rows", "lookup"), "sbnmt phrase-table")
    (own,) = commands(printed("toy_styles"), "sbnmt phrase-table")
    assert "--least-count 6" in own and "--least-count" not in plain


def test_nine_lengths_are_chosen_by_the_teacher(script):
    decoded = commands(script, "fairseq-generate")
    rows = {}
    for line in decoded:
        name = line.split('--results-path "$work/results/')[1].split(".generate")[0]
        rows[name] = line
    for name, system in systems.PARALLEL.items():
        if name == systems.LOOKUP:
            continue
        nine = name.endswith("-9")
        assert ("--beam 9" in rows[name]) == nine
        assert ('--nat-teacher "$work/teacher-l2r/model.pt"' in rows[name]) == nine
        trained = system.decodes or name
        assert f'--path "$work/{trained}/model.pt"' in rows[name]
        reads = trained in ("enat-phrase", "enat-word")
        assert ("--enat-table" in rows[name]) == reads
    assert "/words" in rows["enat-word-9"] and "/phrases" in rows["enat-phrase"]


def test_the_group_has_the_rows_of_the_papers_table():
    found = [row.name for row in asked_rows(["parallel"])]
    assert found[:2] == ["teacher-l2r", "lookup"] and len(found) == 8
    with pytest.raises(ValueError, match="trains nothing"):
        asked_rows(["enat-map-9@2"])


def test_plain_lines_are_hypotheses(tmp_path):
    (tmp_path / "test.de").write_text("eins zwei\ndrei\n")
    references = References(tmp_path, "de")
    path = tmp_path / "lookup.bpe"
    path.write_text("ei@@ ns\n\n")
    assert read_hypotheses(path, references) == ["eins", ""]
    path.write_text("eins\n")
    with pytest.raises(ValueError, match="each of the 2 lines"):
        read_hypotheses(path, references)
