"""Sweeps over beams and length penalties: planned, decoded, chosen from, printed."""

import json

import pytest
from steps import call, put

from sbnmt_plugin.tools.commands import sweep_beam
from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.machine import commit, machine, versions
from sbnmt_plugin.tools.results import sweep_runs
from sbnmt_plugin.tools.results.sweep import Setting, Sweep, render_sweep

GOLD = ["A B C D E"] * 21
A = ("--system", "a=--path a")


class Searches:
    """A search that answers by its model and length penalty, and may be interrupted.

    Attributes:
        answers: (model, length penalty) -> the hypothesis of every sentence.
        lines: hypotheses of every search, in place of these.
        words: command line of each search.
        limit: how many searches run before an interruption.
    """

    def __init__(self):
        self.answers, self.lines, self.words, self.limit = {}, None, [], None

    def decode(self, folder, words):
        if self.limit is not None and len(self.words) >= self.limit:
            raise KeyboardInterrupt
        self.words.append(words)
        assert words.count("--beam") == 1 and words.count("--lenpen") <= 1
        path, _, lenpen = self.settings()[-1]
        said = self.lines or [self.answers.get((path, lenpen), "A B C D")] * len(GOLD)
        lines = (f"H-{i}\t0\t{text}" for i, text in enumerate(said))
        put(folder / f"generate-{value(words, '--gen-subset')}.txt", *lines)
        return {"sentences/s": 1.0}

    def settings(self):
        """Return (model, beam, length penalty) of each search."""
        flags = "--path", "--beam", "--lenpen"
        return [tuple(value(words, flag) for flag in flags) for words in self.words]


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
def sweep(tmp_path, searches):
    """Run a sweep of data, a reference and an output of its own; return its runs."""
    given = put(tmp_path / "gold", *GOLD)
    output = tmp_path / "s.json"

    def run(*words):
        files = ["--data", "data", "--reference", given, "--output", output]
        call(sweep_beam, *files, *words)
        return runs_of(output) if output.exists() else None

    return run


def runs_of(path):
    return json.loads(path.read_text())["runs"]


def refused(match, run, *words, error=ValueError):
    with pytest.raises(error, match=match):
        run(*words)


# what is decoded


def test_the_sweep_decodes_what_directions_can_do(searches, sweep):
    one = "L=--path a --sb-direction l2r", "R=--path b --sb-direction=r2l"
    systems = [word for name in (*one, "S=--path c") for word in ("--system", name)]
    sweep(*systems, "--beams", "1,2,3,4", "--lenpens", "1,0.6")
    beams = {path: [] for path in "abc"}
    for path, beam, lenpen in searches.settings():
        beams[path].append(f"{beam}/{lenpen}")
    every = [f"{beam}/{lenpen}" for beam in (1, 2, 3, 4) for lenpen in (0.6, 1)]
    assert beams == {"a": every, "b": every, "c": [*every[2:4], *every[6:]]}


def test_a_sweep_says_how_it_was_made(tmp_path, searches, sweep):
    words = "--system", "sb=--path sb.pt", "--beams", "2"
    sweep(*words)
    held = json.loads((tmp_path / "s.json").read_text())
    assert held["command"].startswith("sbnmt sweep-beam --data data ")
    assert held["command"].endswith("'sb=--path sb.pt' --beams 2")
    known = [held[key] for key in ("commit", "machine", "versions")]
    assert known == [commit(), machine(), versions()]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--system", "L2R"], "must be NAME=OPTIONS"),
        (["--system", "b=--beam 3"], "b must have --path"),
        (["--system", "b=--path x --beam 3"], "--beam is set by the sweep"),
        (["--system", "a=--path x"], "--system a must be given once"),
        (["--beams", "0,2"], "--beams must be numbers ≥ 1"),
        (["--beams", "²"], "--beams must be numbers ≥ 1"),
        (["--beams", "1"], "--beams must have an even number for a"),
        (["--rows", "sb"], "give its folder as --work"),
        *(
            (["--lenpens", value], "--lenpens must be numbers ≥ 0 of at most three de")
            for value in ("1,x", "-1", "inf", "0.12345", "1e-05")
        ),
        *(
            (["--lenpens", "1", *own], "--lenpen is set by the sweep")
            for own in (
                ["--lenpen", "1"],
                ["--lenpen=1"],
                ["--system", "b=--path b --lenpen 1"],
            )
        ),
    ],
)
def test_wrong_input_of_the_sweep_is_one_clear_error(words, message, searches, sweep):
    refused(message, sweep, *A, *words)
    assert not searches.words


def test_the_sweep_decodes_what_is_missing(tmp_path, monkeypatch, searches, sweep):
    words = [*A, "--min-len", "2", "--beams"]
    sweep(*words, "2")
    assert [run["beam"] for run in sweep(*words, "1,2,4")] == [2, 4]
    assert [beam for _, beam, _ in searches.settings()] == ["2", "4"]
    with monkeypatch.context() as elsewhere:  # another clone goes on
        elsewhere.setattr(sweep_runs, "PLUGIN", tmp_path / "clone" / "sbnmt_plugin")
        sweep(*words, "2,4")
    assert len(searches.words) == 2
    refused("was decoded with other options: remove", sweep, *A, "--beams", "2")
    gold = (tmp_path / "gold").read_text()
    put(tmp_path / "gold", *["A C"] * 21)
    refused("another text in --reference: remove", sweep, *words, "2")
    (tmp_path / "gold").write_text(gold)
    # an interrupted sweep has what was decoded, and its repeat loses nothing
    searches.limit = 3
    refused("", sweep, *words, "2,4,6,8", error=KeyboardInterrupt)
    assert [run["beam"] for run in runs_of(tmp_path / "s.json")] == [2, 4, 6]
    (tmp_path / "s.json.runs" / "0-beam-2" / "result.json").unlink()
    refused("", sweep, *words, "2,4,6", error=KeyboardInterrupt)
    assert [run["beam"] for run in runs_of(tmp_path / "s.json")] == [2, 4, 6]


def test_the_sweep_runs_fairseq_generate(tmp_path, data, trained):
    gold = put(tmp_path / "gold", *["W1 W2"] * 21)
    command = ["--data", data, "--reference", gold, "--output", tmp_path / "s.json"]
    command += ["--system", f"S=--path {trained}", "--cpu", "--num-workers", "0"]
    call(sweep_beam, *command, "--beams", "2")
    (found,) = runs_of(tmp_path / "s.json")
    assert found["BLEU"] > 0 and found["sentences/s"] > 0


def test_a_failed_decoding_shows_the_end_of_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    refused("failed with status 1, its log", sweep_runs.decode, tmp_path / "run", [])


# a recipe's rows


@pytest.fixture
def work(tmp_path, searches):
    """Make a recipe's folder; return what sweeps it, and gives runs of its file."""
    searches.lines = ["A B"]

    def made(*models, texts=None, file="beam-sweep.json", **settings):
        work = tmp_path / "work"
        put(work / "data" / "test.a-p.a.idx")
        for name, lines in (texts or {"test.p": ["A B"]}).items():
            put(work / "text" / name, *lines)
        put(work / "results" / "sb.txt", "A B")
        for row in models:
            put(work / row / "model.pt")
        recipe = {"source": "a", "target": "p", "bpe": {"kind": "none"}, "train": {}}
        recipe |= {"teacher_arch": "", "sb_arch": "", "average": 0, "decode": []}
        put(work / "recipe.json", json.dumps(recipe | {"generate": []} | settings))

        def run(*words):
            call(sweep_beam, "--work", work, "--beams", "2", *words)
            return runs_of(work / file)

        return run

    return made


def models_of(searches, tmp_path):
    """Return the rows whose models were searched with."""
    paths = [path for path, *_ in searches.settings()]
    assert all(path.startswith(f"{tmp_path}/work/") for path in paths)
    return [path.split("/")[-2] for path in paths]


@pytest.mark.parametrize("row", ["sb", "sb-shift"])
def test_the_sweep_searches_as_the_recipe_does(row, tmp_path, searches, work):
    decode = ["--lenpen", 0.6, "--beam", 4, "--max-len-b", 10]
    work(row, decode=decode, generate=["--max-tokens", 99])("--max-len-b", "7")
    (words,) = searches.words
    assert searches.settings() == [(f"{tmp_path}/work/{row}/model.pt", "2", "0.6")]
    assert value(words, "--max-len-b") == "7"
    assert value(words, "--max-tokens") == "99"


def test_the_sweep_scores_as_the_recipe_does(tmp_path, searches, work):
    """All references, and error rates where lines are words."""
    texts = {"test.p": ["A B", "A C"], "test.p.2": ["A B", "A D"]}
    run = work("sb", texts=texts, score={"references": 2, "phonemes": True})
    searches.lines = ["A B", "A D"]
    (found,) = run()
    assert (found["WER"], found["PER"]) == (0, 0)
    one = ["--reference", tmp_path / "work" / "text" / "test.p"]
    refused("was decoded with other references", run, *one)
    run(*one, "--output", tmp_path / "one.json")
    (found,) = runs_of(tmp_path / "one.json")
    assert (found["WER"], found["PER"]) == (50, 25)


def test_the_sweep_takes_rows_of_a_recipe(tmp_path, searches, work, capsys):
    """As the recipe decodes them: direction, seed and rescoring."""
    own = "teacher-back", "enat-phrase", "multilingual"
    run = work("sb", "sb@2", "teacher-r2l", *own, rescore=2)
    rows = ["sb", "sb+rescored@2", "teacher-r2l"]
    runs = run("--rows", *rows)
    assert models_of(searches, tmp_path) == ["sb", "sb@2", "teacher-r2l"]
    found = searches.words
    assert [" ".join(words).count("--sb-rescore 2") for words in found] == [0, 1, 0]
    assert [words.count("r2l") for words in found] == [0, 0, 1]
    assert [run["system"] for run in runs] == rows
    assert capsys.readouterr().out == render_sweep({"runs": runs})
    missing = "--rows sb@3 needs .*sb@3/model.pt"
    refused(missing, run, "--rows", "sb@3", error=FileNotFoundError)
    refused("rerank@2 has no model of its own", run, "--rows", "rerank@2")
    for row in own:
        refused(f"--rows {row} is decoded with data or", run, "--rows", row)
    odd = "--rows", "sb@01", "--beams", "3"
    refused("--beams must have an even number .* has 3", run, *odd)


def test_the_sweep_takes_the_model_that_a_row_decodes_with(tmp_path, searches, work):
    """Its twin's, where both are trained in one way, or the one teacher's."""
    models = "sb", "teacher-both", "teacher-r2l"  # the last of a run before
    rows = ["sb-tanh-0.1", "sb-tanh-0.1+rescored", "teacher-r2l"]
    work(*models, teachers="one")("--rows", *rows)
    assert models_of(searches, tmp_path) == ["sb", "sb", "teacher-both"]
    answers = [value(words, "--sb-answer") for words in searches.words]
    assert answers == [None, None, "r2l"]
    two = "--output", tmp_path / "two.json", "--rows", "teacher-r2l"
    work(teachers="two")(*two)
    assert models_of(searches, tmp_path)[3:] == ["teacher-r2l"]
    assert "--sb-answer" not in searches.words[-1]


def test_without_rows_the_sweep_takes_teachers_and_the_first_sb_nmt(
    tmp_path, searches, work
):
    runs = work("sb-shift", "sb", "teacher-l2r", "teacher-r2l")()
    assert models_of(searches, tmp_path) == ["teacher-l2r", "teacher-r2l", "sb"]
    assert [run["system"] for run in runs] == ["L2R", "R2L", "SB-NMT"]


def test_the_sweep_of_another_set_has_its_references(tmp_path, searches, work):
    """Those of a recipe's validation set, which may be fewer than the test set's."""
    other = ["X Y Z W V"] * 21
    texts = {"test.p": other, "test.p.2": other, "valid.p": GOLD}
    score, decode = {"references": 2}, ["--beam", 4, "--lenpen", 0.6]
    file = "lenpen-sweep.json"
    run = work("sb", texts=texts, file=file, score=score, decode=decode)
    path, text = f"{tmp_path}/work/sb/model.pt", tmp_path / "work" / "text"
    searches.lines = None
    searches.answers = {(path, "1.5"): GOLD[0], (path, "0.6"): "A B C D"}
    valid = "--rows", "sb", "--gen-subset", "valid"
    _, best = run(*valid, "--lenpens", "0.6,1.5")
    assert [lenpen for *_, lenpen in searches.settings()] == ["0.6", "1.5"]
    assert (best["BLEU"], best["length ratio"]) == (pytest.approx(100), 1)
    put(text / "valid.p.2", *GOLD[1:])
    refused("--reference must have as many lines", run, *valid)
    (text / "valid.p.2").unlink()
    run(*valid, "--output", tmp_path / "plain.json")
    assert searches.settings()[-1] == (path, "2", "0.6")  # the recipe's own
    assert "lenpen" not in runs_of(tmp_path / "plain.json")[0]
    (text / "test.p.2").unlink()
    refused(r"test\.p\.2", run, "--rows", "sb", error=FileNotFoundError)


# tables


def held(scores, **more):
    """The content of a sweep's file, of name -> beam -> score."""
    runs = [
        {"system": name, "beam": beam, "BLEU": score, "signature": "as it was"}
        for name, by_beam in scores.items()
        for beam, score in by_beam.items()
    ]
    return {"runs": runs, **more}


def test_a_sweep_is_printed_a_line_a_system(tmp_path, capsys):
    """Seeds together, with no mean of those that happen to be there."""

    def shown(sweep):
        path = put(tmp_path / "sweep.json", json.dumps(sweep))
        call(show_table, path)
        return capsys.readouterr().out.splitlines()

    seeds = {"sb": {2: 30, 4: 31}, "sb@2": {2: 32}, "sb@x": {2: 1234.5, 8: 0}}
    assert shown(held(seeds)) == [
        "| tok. BLEU, by beam | seeds |            2 |  4 |    8 |",
        "| ------------------ | ----: | -----------: | -: | ---: |",
        "| sb                 |  1, 2 | 31.00 ± 1.41 |    |      |",
        "| sb@x               |     1 |     1,234.50 |    | 0.00 |",
        "",
        "tokenised BLEU: `as it was`",
    ]
    for name, seed in ("sb", []), ("sb@2", ["2", "|"]):
        alone = shown(held({name: {2: 30, 4: 31.254}}))
        assert ("seeds" in alone[0]) == bool(seed)
        assert alone[2].split() == ["|", "sb", "|", *seed, "30.00", "|", "31.25", "|"]
    words = held({"sb": {2: 30, 4: 31}})
    words["runs"][0]["WER"] = 12.5  # not all have error rates
    assert "tok. BLEU, by beam" in shown(words)[0]
    words["runs"][1]["WER"] = 11
    heading, _, line = shown(words)
    assert heading.startswith("| WER, %, by beam")
    assert line.split() == ["|", "sb", "|", "12.50", "|", "11.00", "|"]
    # one beam of all, whatever the file says of lengths, and one of each
    one = held({"sb": {4: 30}, "sb-lambda0": {4: 31}})
    one["runs"] = [{**run, "length ratio": 0.9} for run in one["runs"]]
    assert shown(one)[:3] == [
        "| tok. BLEU, by beam |     4 |",
        "| ------------------ | ----: |",
        "| sb                 | 30.00 |",
    ]
    assert shown(held({"sb": {4: 30}, "teacher-l2r": {1: 31}}))[2:4] == [
        "| sb          |    4 |     30.00 |",
        "| teacher-l2r |    1 |     31.00 |",
    ]
    twice = held({"sb": {2: 30}, "sb@1": {2: 10}})
    for damaged in {"runs": [{"system": "sb"}]}, {"runs": []}, twice:
        refused(r"sweep.json must be .* but is damaged", shown, damaged)


def cells_of(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


# the best setting


def test_length_penalties_are_swept_and_the_best_is_taken(
    tmp_path, searches, sweep, capsys
):
    """Of each system, by the mean of its seeds, beside the recipe's own options."""
    right, close, short = GOLD[0], "A B C D", "A B C"
    searches.answers = {
        **{("a", "1"): right, ("a", "0.6"): close, ("a", "2"): short},
        **{("b", "1"): short, ("b", "0.6"): right, ("b", "2"): right},
        **{("b2", "1"): close, ("b2", "0.6"): close, ("b2", "2"): right},
    }
    systems = [*A, "--system", "b=--path b", "--system", "b@2=--path b2"]
    valid = tmp_path / "valid.json"
    swept = ["--beams", "4", "--lenpens", "0.6,1,2", "--output", valid]
    sweep(*systems, *swept, "--gen-subset", "valid")
    assert len(searches.words) == 9
    assert set(searches.settings()) == {
        (name, "4", lenpen) for name in ("a", "b", "b2") for lenpen in ("0.6", "1", "2")
    }
    table = capsys.readouterr().out.splitlines()
    assert cells_of(table[0]) == (
        ["tok. BLEU, by beam/lenpen", "seeds", "4/0.6", "4/1", "4/2"]
    )
    assert "100.00 (1.00)" in table[2] and "(0.60)" in table[2]
    assert table[3].rstrip(" |").endswith("100.00 ± 0.00 (1.00)")
    found = Sweep.of_file(valid)
    assert found.best("a") == Setting(4, 1) and found.best("b") == Setting(4, 2)
    searches.words.clear()
    for _ in range(2):  # the second decodes nothing
        sweep(*systems, "--chosen-by", valid)
        assert searches.settings() == (
            [("a", "4", "1"), ("b", "4", "2"), ("b2", "4", "2")]
        )
    heading, _, first, second, *_ = capsys.readouterr().out.splitlines()
    assert cells_of(heading) == ["system", "seeds", "beam/lenpen", "tok. BLEU"]
    assert cells_of(first) == ["a", "1", "4/1", "100.00 (1.00)"]
    assert cells_of(second) == ["b", "1, 2", "4/2", "100.00 ± 0.00 (1.00)"]


def test_words_are_chosen_by_their_errors(searches, sweep):
    """The fewest, where BLEU would have the most."""
    searches.answers = {("a", "0.6"): GOLD[0], ("a", "1"): "Z"}
    runs = sweep(*A, "--phonemes", "--beams", "2", "--lenpens", "0.6,1")
    assert Sweep({"runs": runs}).best("a") == Setting(2, 0.6)
    for run in runs:
        run["WER"] = 100 - run["WER"]
    assert Sweep({"runs": runs}).best("a") == Setting(2, 1)


def test_of_equal_settings_the_cheapest_is_taken():
    found = Sweep(held({"a": {8: 3, 4: 3, 2: 1}, "b": {2: 1}, "b@2": {2: 1}}))
    assert (found.best("a"), found.best("b")) == (Setting(4), Setting(2))


def test_a_sweep_that_is_not_whole_is_not_chosen_from(tmp_path, searches, sweep):
    """The best of what an interrupted one has may be the worst of all."""
    seeds = Sweep(held({"b": {2: 1, 4: 2}, "b@2": {2: 1}}))
    refused("all seeds of b must have the same beams", seeds.best, "b")
    valid = tmp_path / "valid.json"
    swept = [*A, "--beams", "2", "--lenpens", "0.6,1,2", "--output", valid]
    searches.limit = 2
    refused("", sweep, *swept, error=KeyboardInterrupt)
    chosen = [*A, "--chosen-by", valid]
    refused(r"valid\.json: 1 runs are missing: repeat", sweep, *chosen)
    searches.limit = None
    sweep(*swept)
    assert len(searches.words) == 3
    sweep(*chosen)


def test_what_goes_ill_with_a_choice_is_one_clear_error(tmp_path, sweep):
    given, valid = tmp_path / "gold", tmp_path / "valid.json"
    sweep(*A, "--beams", "2", "--lenpens", "1", "--output", valid)
    chosen = "--chosen-by", valid
    for flag in "--beams", "--lenpens":
        refused(f"leave out .*{flag}", sweep, *A, *chosen, flag, "2")
    lacks = r"valid\.json: it must have b, but has a"
    refused(lacks, sweep, "--system", "b=--path b", *chosen)
    other = "with the same options, --min-len 2, but had none"
    refused(other, sweep, *A, *chosen, "--min-len", "2")
    refused("--lenpen is set by the sweep", sweep, *A, *chosen, "--lenpen", "1")
    for taken in valid, given:
        both = "must not be read and written by one"
        refused(both, sweep, *A, *chosen, "--output", taken)
    for nothing in "", tmp_path / "none.json":
        words = *A, "--chosen-by", nothing
        refused("does not exist: give", sweep, *words, error=FileNotFoundError)
    put(valid, json.dumps(held({"a": {3: 1}})))
    refused("a has two directions, but the best beam is", sweep, *A, *chosen)


@pytest.mark.parametrize(
    "change",
    [
        *({"beam": beam} for beam in ("4", 0)),
        *({"lenpen": lenpen} for lenpen in ("1", float("nan"), 1)),
        *({"BLEU": score} for score in (None, "x")),
        {"system": 3},
    ],
    ids=str,
)
def test_a_damaged_sweep_is_one_clear_error(tmp_path, sweep, change):
    """Also one where some runs have a length penalty and others have none."""
    damaged = held({"a": {4: 1.5, 2: 1.5}})
    damaged["runs"][1] |= change
    valid = put(tmp_path / "valid.json", json.dumps(damaged))
    refused(r"valid\.json must be .* damaged", sweep, *A, "--chosen-by", valid)
