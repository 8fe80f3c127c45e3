"""Rows of both translation directions: trained, decoded, scored the right way round."""

import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import in_process
import pytest
import torch
from commands import ROOT
from steps import call, put

from sbnmt_plugin.tools.commands import both_ways
from sbnmt_plugin.tools.recipes import settings as recipes
from sbnmt_plugin.tools.recipes import stages, systems
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row, asked_rows
from sbnmt_plugin.tools.text import read_lines, write_lines

FOLDER = ROOT / "examples" / "toy_swap"
CHECK = runpy.run_path(str(FOLDER / "check.py"))


def small_recipe(folder, **changes):
    return in_process.shrink("toy_swap", folder, average=0, jobs=1, **changes)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A run of all rows."""
    folder = tmp_path_factory.mktemp("both-ways")
    in_process.make(small_recipe(folder / "recipe"), "--work", folder / "work")
    return folder / "work"


def test_every_row_is_scored_against_the_language_that_it_writes(work):
    made = json.loads((work / "table.json").read_text())
    names = [row["name"] for row in made["rows"]]
    assert names == ["teacher-l2r", *systems.TWO_WAY]
    for name in names:
        side = "src" if name.endswith("back") else "tgt"
        printed = (
            work / "results" / f"{name}.generate" / "generate-test.txt"
        ).read_text()
        gold = [x.split("\t", 1) for x in printed.splitlines() if x.startswith("T-")]
        texts = {int(key[2:]): text for key, text in gold}
        lines = read_lines(work / "text" / f"test.{side}")
        assert [texts[i] for i in range(len(lines))] == lines, name
        assert len(read_lines(work / "results" / f"{name}.tok")) == len(lines)


def test_rows_that_go_back_train_nothing_or_the_other_way_round(work):
    for name in "two-way-back", "multilingual-back":
        assert not (work / name).exists()
        assert not (work / "logs" / f"train-{name}.log").exists()
    options = json.loads((work / "teacher-back" / "options.json").read_text())
    assert (options["--source-lang"], options["--target-lang"]) == ("tgt", "src")
    rows = {r["name"]: r for r in json.loads((work / "table.json").read_text())["rows"]}
    assert "updates" not in rows["two-way-back"]


def test_the_multilingual_text_is_every_pair_both_ways(work):
    plain, both = work / "text", work / "examples" / "both-ways"
    sides = {end: read_lines(plain / f"train.{end}") for end in ("src", "tgt")}
    found = {end: read_lines(both / f"train.{end}") for end in ("src", "tgt")}
    forth = [f"<2tgt> {line}" for line in sides["src"]]
    assert found["src"] == forth + [f"<2src> {line}" for line in sides["tgt"]]
    assert found["tgt"] == sides["tgt"] + sides["src"]
    back = read_lines(both / "back.src")
    assert back == [f"<2src> {line}" for line in read_lines(plain / "test.tgt")]
    assert read_lines(both / "back.tgt") == read_lines(plain / "test.src")
    one, other = (
        (work / f"data-both-ways{end}" / "dict.src.txt").read_bytes()
        for end in ("", "-back")
    )
    assert one == other and b"<2src> " in one and b"<2tgt> " in one


def test_texts_that_do_not_fit_are_refused(tmp_path):
    for split in "train", "valid", "test":
        write_lines(tmp_path / f"{split}.a", ["x"])
        write_lines(tmp_path / f"{split}.b", ["y", "z"])
    words = ["--text", tmp_path, "-s", "a", "--output", tmp_path / "made"]
    with pytest.raises(ValueError, match="lines"):
        call(both_ways, *words, "-t", "b")
    assert not (tmp_path / "made").exists()
    with pytest.raises(ValueError, match="must be two languages, but both are a"):
        call(both_ways, *words, "-t", "a")
    (tmp_path / "made").mkdir()
    with pytest.raises(FileExistsError, match="must be a new folder"):
        call(both_ways, *words, "-t", "b")


def test_a_row_of_both_ways_is_trained_as_it_says():
    multi30k = load_recipe(ROOT / "examples" / "multi30k", small=True)
    options = stages.training_options(multi30k, Row("two-way"))
    assert options["--criterion"] == "two_way_cross_entropy"
    assert not {"--label-smoothing", "--share-all-embeddings"} & set(options)
    assert not [name for name in options if name.startswith("--encoder-")]
    back = stages.training_options(multi30k, Row("teacher-back"))
    assert (back["--source-lang"], back["--target-lang"]) == ("de", "en")
    four = {**multi30k, "score": {**multi30k["score"], "references": 4}}
    back, there = (
        recipes.scoring_options(four, Row(name)) for name in ("two-way-back", "two-way")
    )
    assert back == ["--target", "en", "--detokenise", "en"]
    assert there[:4] == ["--target", "de", "--references", "4"]
    assert asked_rows(["two-way"]) == [Row("two-way")]
    found = [row.name for row in asked_rows(["both-ways"])]
    assert found == ["teacher-l2r", *systems.TWO_WAY]
    with pytest.raises(ValueError, match="two-way-back trains nothing"):
        asked_rows(["two-way-back@2"])


# the toy


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Pairs of lines of the test set."""
    folder = tmp_path_factory.mktemp("text")
    in_process.run_script(FOLDER / "prepare.py", "--output", folder)
    return list(zip(*(read_lines(Path(folder, f"test.{x}")) for x in ("src", "tgt"))))


def assert_says_all_of_the_other(pairs):
    """Each word of the one belongs to one of the other, and its ending to its noun."""
    meaning, classes = {}, {}
    for source, target in pairs:
        ours, theirs = source.split(), target.split()
        assert len(ours) == len(theirs) and len(ours) % 2 == 0
        for place in range(0, len(ours), 2):
            adjective, noun = ours[place : place + 2]
            other, inflected = theirs[place : place + 2]
            stem, ending = inflected[:3], inflected[3:]
            assert meaning.setdefault(noun, other) == other
            assert meaning.setdefault(adjective, stem) == stem
            assert classes.setdefault(noun, ending) == ending
    assert len(set(meaning.values())) == len(meaning) == 40
    assert set(classes.values()) == {"o", "in", "u"}


def test_each_text_says_all_of_the_other(text):
    assert len(text) == 300
    assert_says_all_of_the_other(text)


def test_an_ending_that_nobody_could_know_is_noticed(text):
    source, target = text[0]
    words = target.split()
    words[1] = words[1][:3] + "x"
    with pytest.raises(AssertionError):
        assert_says_all_of_the_other([(source, " ".join(words)), *text])


def test_another_end_is_another_word(text):
    lines = [source for source, _ in text]
    for before, after in zip(lines, CHECK["with_another_end"](lines)):
        assert before.split()[:-1] == after.split()[:-1]
        assert before.split()[-1] != after.split()[-1]


def test_what_is_measured_is_what_its_files_say(tmp_path, monkeypatch):
    """Only rows that are there; parameters of the models that are compared."""
    scores = {"teacher-l2r": 95.5, "two-way": 91.25, "two-way-back": 89.0}
    for name, score in scores.items():
        found = {"BLEU": {"score": 1.0}, "tokenised BLEU": {"score": score}}
        put(tmp_path / "results" / f"{name}.json", json.dumps(found))
    sizes, asked = {"teacher-l2r": 3, "two-way": 5}, []

    def loaded(work, row, *languages):
        asked.append((work, row, *languages))
        return SimpleNamespace(models=[torch.nn.Linear(sizes[row], 2)])

    monkeypatch.setitem(CHECK["measured"].__globals__, "loaded", loaded)
    assert CHECK["measured"](tmp_path) == {
        "teacher-l2r": {"BLEU": 95.5, "parameters": 8},
        "two-way": {"BLEU": 91.25, "parameters": 12},
        "two-way-back": {"BLEU": 89.0},
    }
    assert asked == [(tmp_path, row, "src", "tgt") for row in sizes]


@pytest.mark.parametrize(("read", "changed"), [(None, 100), (-1, 0)])
def test_answers_that_the_last_word_changes_are_counted(
    tmp_path, monkeypatch, read, changed
):
    """All of a model that reads it, none of one that does not."""
    put(tmp_path / "text" / "test.src", "a b", "c d", "e f")
    model = SimpleNamespace(
        translate=lambda rows: [dict(enumerate(rows))],
        text=lambda row: row.split()[:read],
    )
    monkeypatch.setitem(CHECK["measured"].__globals__, "loaded", lambda *_: model)
    assert CHECK["changed_by_the_end"](tmp_path, "src", "tgt") == changed


def test_the_verdicts_can_fail():
    good = {
        "teacher-l2r": {"parameters": 60},
        "two-way": {"BLEU": 95.0, "parameters": 100},
        "two-way-back": {"BLEU": 91.0},
    }
    assert all(holds for _, holds in CHECK["verdicts"](good, [99.0, 98.0]))
    broken = [
        ({"two-way": {"BLEU": 89.9, "parameters": 100}}, [99.0, 99.0]),
        ({"two-way-back": {"BLEU": 20.0}}, [99.0, 99.0]),
        ({"teacher-l2r": {"parameters": 50}}, [99.0, 99.0]),
        ({}, [94.0, 99.0]),
        ({}, [99.0, 94.0]),
    ]
    for place, (changes, changed) in enumerate(broken):
        assert not CHECK["verdicts"]({**good, **changes}, changed)[place][1]
