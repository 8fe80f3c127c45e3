"""Sweeps over beams and length penalties: planned, decoded, chosen from, printed."""

import json

import pytest
from steps import call, put

from sbnmt_plugin import in_use
from sbnmt_plugin.tools.commands import sweep_beam
from sbnmt_plugin.tools.machine import commit, machine, versions
from sbnmt_plugin.tools.results import sweep_runs
from sbnmt_plugin.tools.results.sweep import Setting, Sweep, render_sweep

GOLD = ["A B C D E"] * 21
RIGHT, CLOSE, SHORT = GOLD[0], "A B C D", "A B C"


class Searches:
    """A search that answers by its row and length penalty, and may be interrupted.

    Attributes:
        answers: (row of the model, length penalty) -> hypothesis of every sentence.
        words: command line of each search.
        limit: how many searches run before an interruption.
    """

    def __init__(self):
        self.answers, self.words, self.limit = {}, [], None

    def decode(self, folder, words):
        if len(self.words) == self.limit:
            raise KeyboardInterrupt
        self.words.append(words)
        row, _, lenpen = self.settings()[-1]
        text = self.answers.get((row, lenpen), CLOSE)
        lines = (f"H-{i}\t0\t{text}" for i in range(len(GOLD)))
        put(folder / f"generate-{value(words, '--gen-subset')}.txt", *lines)
        return 1.0

    def settings(self):
        """Return (row of the model, beam, length penalty) of each search."""
        flags = "--beam", "--lenpen"
        return [
            (value(words, "--path").split("/")[-2], *(value(words, x) for x in flags))
            for words in self.words
        ]


def value(words, flag):
    """Return the value of an option, the last if it is given several times."""
    found = [words[i + 1] for i, word in enumerate(words) if word == flag]
    return found[-1] if found else None


@pytest.fixture
def searches(monkeypatch):
    made = Searches()
    monkeypatch.setattr(sweep_runs, "decode", made.decode)
    return made


@pytest.fixture
def work(tmp_path, searches):
    """Make a recipe's folder; return what sweeps it, and gives the runs of its file."""

    def made(*models, texts=None, **settings):
        work = tmp_path / "work"
        for name, lines in (texts or {"test.p": GOLD, "valid.p": GOLD}).items():
            put(work / "text" / name, *lines)
        for row in models:
            put(work / row / "model.pt")
        recipe = {"source": "a", "target": "p", "bpe": {"kind": "none"}, "train": {}}
        recipe |= {"teacher_arch": "", "sb_arch": "", "average": 0, "decode": []}
        put(work / "recipe.json", json.dumps(recipe | {"generate": []} | settings))

        def run(*words, rows=models, output=work / "s.json"):
            words = ["--rows", *rows, "--output", output, *words]
            call(sweep_beam, "--work", work, *words)
            return runs_of(output)

        return run

    return made


def runs_of(path):
    return json.loads(path.read_text())["runs"]


def refused(match, run, *words, error=ValueError, **options):
    with pytest.raises(error, match=match):
        run(*words, **options)


# what is decoded


def test_a_file_that_is_no_sweep_is_not_replaced(tmp_path, work):
    """Such as the recipe of the run."""
    run = work("teacher-l2r")
    for name, text in ("recipe.json", '{"source": "en"}'), ("text", "my notes"):
        path = put(tmp_path / name, text)
        refused(f"^--output {path} must be a new file or a sweep", run, output=path)
        assert path.read_text() == f"{text}\n"


def test_the_sweep_decodes_what_directions_can_do(searches, work):
    rows = "teacher-l2r", "teacher-r2l", "sb"
    work(*rows)("--beams", "1,2,3,4", "--lenpens", "1,0.6")
    beams = {row: [] for row in rows}
    for row, beam, lenpen in searches.settings():
        beams[row].append(f"{beam}/{lenpen}")
    every = [f"{beam}/{lenpen}" for beam in (1, 2, 3, 4) for lenpen in (0.6, 1)]
    assert [*beams.values()] == [every, every, [*every[2:4], *every[6:]]]


def test_a_sweep_says_how_it_was_made_and_where_it_is_kept(tmp_path, work):
    words = "--beams", "2"
    work("sb")(*words)
    held = json.loads((tmp_path / "work" / "s.json").read_text())
    assert held["command"].startswith(f"sbnmt sweep-beam --work {tmp_path}/work ")
    known = [held[key] for key in ("commit", "machine", "versions")]
    assert known == [commit(), machine(), versions()]
    whole = ["--work", tmp_path / "work", "--rows", "sb"]
    for kind, *more in ("beam", *words), ("lenpen", "--lenpens", "1"):
        call(sweep_beam, *whole, *more)
        output = tmp_path / "work" / f"{kind}-sweep.json"
        assert runs_of(output)
        call(sweep_beam, *whole, "--chosen-by", output)
        (chosen,) = runs_of(tmp_path / "work" / "chosen-sweep.json")
        assert "lenpen" in chosen or kind == "beam"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (["--beams", beams], "--beams must be numbers ≥ 1")
            for beams in ("0,2", "²")
        ),
        (["--beams", "1"], "--beams must have an even number for sb"),
        *(
            (["--lenpens", value], "--lenpens must be numbers ≥ 0")
            for value in ("1,x", "-1", "inf", "nan")
        ),
    ],
)
def test_wrong_input_of_the_sweep_is_one_clear_error(words, message, searches, work):
    refused(message, work("sb"), *words)
    assert not searches.words


def test_the_sweep_decodes_what_is_missing(tmp_path, searches, work):
    run, output = work("teacher-l2r"), tmp_path / "work" / "s.json"
    run("--beams", "2")
    assert [found["beam"] for found in run("--beams", "1,2,4")] == [1, 2, 4]
    assert [beam for _, beam, _ in searches.settings()] == ["2", "1", "4"]
    # an interrupted sweep has what was decoded, and its repeat loses nothing
    searches.limit = 4
    refused("", run, "--beams", "2,4,6,8", error=KeyboardInterrupt)
    assert [found["beam"] for found in runs_of(output)] == [2, 4, 6]
    result = tmp_path / "work" / "s.json.runs" / "test"
    result /= "teacher-l2r-beam-2/result.json"
    whole = result.read_text()
    result.unlink()
    refused("", run, "--beams", "2,4,6", error=KeyboardInterrupt)
    assert [found["beam"] for found in runs_of(output)] == [2, 4, 6]
    put(result, whole[:-9])
    refused("result.json must be as it was written", run, "--beams", "2")


def test_a_sweep_of_other_rows_or_another_set_loses_no_run(tmp_path, searches, work):
    rows = "sb+rescored@2", "sb"
    run = work("sb", "sb@2")
    valid = "--gen-subset", "valid"
    for more in (), valid, (), valid:
        run("--beams", "2", *more, rows=rows)
        rows = rows[::-1]
    assert len(searches.words) == 4
    assert json.loads((tmp_path / "work" / "s.json").read_text())["subset"] == "valid"
    for more in (), valid:
        words = "--work", tmp_path / "work", "--rows", "sb", "--beams", "2", *more
        call(sweep_beam, *words)
    assert {path.name for path in (tmp_path / "work").glob("beam-*.json")} == {
        *("beam-sweep.json", "beam-sweep-valid.json")
    }


def test_two_sweeps_do_not_share_their_runs(tmp_path, searches, work, monkeypatch):
    monkeypatch.setattr(in_use, "PATIENCE", 0)
    run = work("sb")
    with in_use.hold(tmp_path / "work" / "s.json.runs"):
        refused(r"--output .*s\.json\.runs must not be in use", run, "--beams", "2")
    assert not searches.words


@pytest.mark.parametrize(
    "change",
    [
        lambda work: put(work / "text" / "test.p", *["A C"] * 21),
        lambda work: put(work / "sb" / "model.pt", "another"),
        lambda work: put(
            work / "recipe.json",
            (work / "recipe.json")
            .read_text()
            .replace('"decode": [', '"decode": ["-x"'),
        ),
    ],
    ids=["text", "model", "options"],
)
def test_another_search_is_decoded_anew(tmp_path, searches, work, change):
    run = work("sb")
    for _ in range(2):
        run("--beams", "2")
    assert len(searches.words) == 1
    change(tmp_path / "work")
    run("--beams", "2", "--gen-subset", "test")
    assert len(searches.words) == 2
    run("--beams", "2", "--gen-subset", "valid")
    assert len(searches.words) == 3


def test_a_failed_decoding_shows_the_end_of_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    refused("failed with status 1, its log", sweep_runs.decode, tmp_path / "run", [])


def test_the_speed_is_the_one_that_fairseq_measures(tmp_path, monkeypatch):
    line = "INFO | x | Translated 1,000 sentences (11,443 tokens) in 5.6s (177.34 "
    line += "sentences/s, 2029.30 tokens/s)"
    monkeypatch.setattr(sweep_runs, "step_command", lambda *_: ["echo", line])
    assert sweep_runs.decode(tmp_path / "run", []) == 177.34


# a recipe's rows


def test_the_sweep_searches_and_scores_as_the_recipe_does(searches, work):
    decode = ["--lenpen", 0.6, "--beam", 4, "--max-len-b", 10]
    made = {"decode": decode, "generate": ["--max-tokens", 99]}
    made["texts"] = {"test.p": GOLD, "test.p.2": ["a b c d f"] * 21}
    searches.answers["sb", "0.6"] = "A B C D F"
    for score, whole in ({"references": 2, "lowercase": True}, True), ({}, False):
        (found,) = work("sb", score=score, **made)("--beams", "2")
        assert (found["BLEU"] == pytest.approx(100)) == whole
        assert "lenpen" not in found
        flags = "--lenpen", "--beam", "--max-len-b", "--max-tokens"
        assert [value(searches.words[0], x) for x in flags] == ["0.6", "2", "10", "99"]


def test_several_sets_are_averaged_as_in_the_table(tmp_path, searches, work):
    mixed = {"test.p": [*["X Y Z W V"] * 20, RIGHT], "valid.p": GOLD}
    run, sets = work("sb", texts=mixed), tmp_path / "work" / "text" / "test.sets"
    searches.answers["sb", None] = RIGHT
    (whole,) = run("--beams", "2")
    put(sets, "one\t20", "two\t1")
    (found,) = run("--beams", "2")
    assert whole["BLEU"] < 20 and found["BLEU"] == pytest.approx(50, abs=1)
    assert found["signature"].endswith("mean of 2 sets")
    (valid,) = run("--beams", "2", "--gen-subset", "valid")
    assert valid["BLEU"] == pytest.approx(100)


def test_a_sweep_that_lacks_a_sentence_is_not_scored(monkeypatch, searches, work):
    def decode(folder, words):
        put(folder / "generate-test.txt", f"H-1\t0\t{RIGHT}")
        return 1.0

    monkeypatch.setattr(sweep_runs, "decode", decode)
    refused("lacks that of sentence 0: decode", work("sb"), "--beams", "2")


def test_the_sweep_takes_rows_of_a_recipe(searches, work, capsys):
    """As the recipe decodes them: direction, seed and rescoring."""
    own = "teacher-back", "enat-phrase", "rerank@2"
    run = work("sb", "sb@2", "teacher-r2l", *own, rescore=2)
    rows = ["sb", "sb+rescored@2", "teacher-r2l"]
    runs = run("--beams", "2", rows=rows)
    assert [row for row, *_ in searches.settings()] == ["sb", "sb@2", "teacher-r2l"]
    found = searches.words
    assert [" ".join(words).count("--sb-rescore 2") for words in found] == [0, 1, 0]
    assert [words.count("r2l") for words in found] == [0, 0, 1]
    assert [run["system"] for run in runs] == rows
    assert capsys.readouterr().out == render_sweep({"runs": runs})
    missing = "--rows sb@3 needs .*sb@3/model.pt"
    refused(missing, run, rows=["sb@3"], error=FileNotFoundError)
    for row in own:
        refused(f"--rows {row} must be a row with a model of its own", run, rows=[row])
    # its twin's, where both are trained in one way
    run("--beams", "2", rows=["sb-tanh-0.1+rescored"])
    assert searches.settings()[-1][0] == "sb"


def test_a_multilingual_row_is_swept_on_its_test_set_alone(searches, work):
    run = work("multilingual", "sb")
    run("--beams", "2")
    assert [row for row, *_ in searches.settings()] == ["multilingual", "sb"]
    refused(
        "--rows multilingual has both", run, "--beams", "2", "--gen-subset", "valid"
    )
    run("--beams", "2", "--gen-subset", "valid", rows=["sb"])


def test_the_sweep_of_another_set_has_its_references(tmp_path, searches, work):
    """Those of a recipe's validation set, which may be fewer than the test set's."""
    other = ["X Y Z W V"] * 21
    texts = {"test.p": other, "test.p.2": other, "valid.p": GOLD}
    run = work("sb", texts=texts, score={"references": 2})
    searches.answers["sb", "1.5"] = RIGHT
    words = "--beams", "2", "--gen-subset", "valid", "--lenpens", "0.6,1.5"
    scores = [found["BLEU"] for found in run(*words)]
    assert [lenpen for *_, lenpen in searches.settings()] == ["0.6", "1.5"]
    assert scores[0] < 90 and scores[1] == pytest.approx(100)
    put(tmp_path / "work" / "text" / "test.p.2", *other[1:])
    refused(r"test\.p\.2 must have as many lines as", run)
    (tmp_path / "work" / "text" / "test.p.2").unlink()
    refused(r"test\.p\.2", run, error=FileNotFoundError)


def held(scores, **more):
    """The content of a sweep's file, of name -> beam -> score."""
    runs = [
        {"system": name, "beam": beam, "BLEU": score, "signature": "as it was"}
        for name, by_beam in scores.items()
        for beam, score in by_beam.items()
    ]
    return {"runs": runs, **more}


# the best setting


def test_length_penalties_are_swept_and_the_best_is_taken(tmp_path, searches, work):
    """Of each system, by the mean of its seeds, in place of the recipe's own."""
    searches.answers = {
        **{("teacher-l2r", "1"): RIGHT, ("teacher-l2r", "2"): SHORT},
        **{("sb", "1"): SHORT, ("sb", "0.6"): RIGHT, ("sb", "2"): RIGHT},
        ("sb@2", "2"): RIGHT,
    }
    run = work(*(rows := ("teacher-l2r", "sb", "sb@2")))
    valid = tmp_path / "valid.json"
    swept = ["--beams", "4", "--lenpens", "0.6,1,2", "--gen-subset", "valid"]
    run(*swept, output=valid)
    every = {(row, "4", lenpen) for row in rows for lenpen in ("0.6", "1", "2")}
    assert len(searches.words) == 9 and set(searches.settings()) == every
    found = Sweep.of_file(valid)
    assert [found.best(x) for x in rows[:2]] == [Setting(4, 1), Setting(4, 2)]
    searches.words.clear()
    for _ in range(2):  # the second decodes nothing
        run("--chosen-by", valid)
        assert searches.settings() == [
            *(("teacher-l2r", "4", "1"), ("sb", "4", "2"), ("sb@2", "4", "2"))
        ]


def test_of_equal_settings_the_cheapest_is_taken():
    found = Sweep(held({"a": {8: 3, 4: 3, 2: 1}, "b": {2: 1}, "b@2": {2: 1}}))
    assert (found.best("a"), found.best("b")) == (Setting(4), Setting(2))


def test_a_sweep_that_is_not_whole_is_not_chosen_from(tmp_path, searches, work):
    """The best of what an interrupted one has may be the worst of all."""
    seeds = Sweep(held({"b": {2: 1, 4: 2}, "b@2": {2: 1}}))
    refused("all seeds of b must have the same beams", seeds.best, "b")
    run, valid = work("sb"), tmp_path / "valid.json"
    searches.limit = 2
    swept = ["--beams", "2", "--lenpens", "0.6,1,2"]
    refused("", run, *swept, output=valid, error=KeyboardInterrupt)
    chosen = "--chosen-by", valid
    refused(r"valid\.json: 1 runs are missing: repeat", run, *chosen)
    searches.limit = None
    run(*swept, output=valid)
    assert len(searches.words) == 3
    run(*chosen)


def test_what_goes_ill_with_a_choice_is_one_clear_error(tmp_path, work):
    run, valid = work("sb"), put(tmp_path / "v.json", json.dumps(held({"sb": {2: 1}})))
    chosen = "--chosen-by", valid
    for flag in "--beams", "--lenpens":
        refused(f"leave out .*{flag}", run, *chosen, flag, "2")
    lacks = r"v\.json: it must have teacher-l2r, but has sb"
    refused(lacks, run, *chosen, rows=["teacher-l2r"])
    both = "must not be read and written by one"
    refused(both, run, *chosen, output=valid)
    for nothing in "", tmp_path / "none.json":
        words = "--chosen-by", nothing
        refused("does not exist: give", run, *words, error=FileNotFoundError)


@pytest.mark.parametrize(
    "change",
    [
        *({"beam": beam} for beam in ("4", 0)),
        *({"lenpen": lenpen} for lenpen in ("1", float("nan"), 1)),
        *({"BLEU": score} for score in (None, "x")),
        *({"system": system} for system in (3, "sb@1")),
        {"runs": []},
    ],
    ids=str,
)
def test_a_damaged_sweep_is_one_clear_error(tmp_path, change):
    """Also one where some runs have a length penalty, or one stands there twice."""
    damaged = held({"sb": {4: 1.5, 2: 1.5}})
    damaged["runs"][1] |= {"beam": 4} if change == {"system": "sb@1"} else {}
    damaged["runs"][1] |= change
    damaged |= change
    valid = put(tmp_path / "valid.json", json.dumps(damaged))
    refused(r"valid\.json must be .* damaged", Sweep.of_file, valid)
