"""Sweeps over beams and length penalties: planned, decoded, chosen from, printed."""

import json

import pytest
from steps import call, put

from sbnmt_plugin.tools.commands import sweep_beam
from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.results import sweep_runs
from sbnmt_plugin.tools.results.sweep import Setting, Sweep, render_sweep

GOLD = ["A B C D E"] * 21


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
def command(tmp_path):
    """The command line of a sweep, but for its systems."""
    given = put(tmp_path / "gold", *GOLD)
    output = tmp_path / "s.json"
    return ["--data", "data", "--reference", given, "--output", output]


A = ("--system", "a=--path a")


def runs_of(path):
    return json.loads(path.read_text())["runs"]


def test_the_sweep_decodes_what_directions_can_do(searches, command):
    one = "L=--path a --sb-direction l2r", "R=--path b --sb-direction=r2l"
    systems = [word for name in (*one, "S=--path c") for word in ("--system", name)]
    call(sweep_beam, *command, *systems, "--beams", "1,2,3,4", "--lenpens", "1,0.6")
    beams = {path: [] for path in "abc"}
    for path, beam, lenpen in searches.settings():
        beams[path].append(f"{beam}/{lenpen}")
    every = [f"{beam}/{lenpen}" for beam in (1, 2, 3, 4) for lenpen in (0.6, 1)]
    assert beams == {"a": every, "b": every, "c": [*every[2:4], *every[6:]]}


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
        *(
            (["--lenpens", value], "--lenpens must be numbers ≥ 0 of at most three de")
            for value in ("1,x", "-1", "inf", "0.12345", "1e-05")
        ),
    ],
)
def test_wrong_input_of_the_sweep_is_one_clear_error(words, message, searches, command):
    with pytest.raises(ValueError, match=message):
        call(sweep_beam, *command, *A, *words)
    assert not searches.words


def test_the_sweep_decodes_what_is_missing(tmp_path, monkeypatch, searches, command):
    words = [*command, *A, "--unkpen", "0.6"]
    call(sweep_beam, *words, "--beams", "2")
    call(sweep_beam, *words, "--beams", "1,2,4")
    assert [beam for _, beam, _ in searches.settings()] == ["2", "4"]
    assert [run["beam"] for run in runs_of(tmp_path / "s.json")] == [2, 4]
    with monkeypatch.context() as elsewhere:  # another clone goes on
        elsewhere.setattr(sweep_runs, "PLUGIN", tmp_path / "clone" / "sbnmt_plugin")
        call(sweep_beam, *words, "--beams", "2,4")
    assert len(searches.words) == 2
    with pytest.raises(ValueError, match="was decoded with other options: remove"):
        call(sweep_beam, *words, "--beams", "2", "--unkpen", "1")
    put(tmp_path / "gold", *["A C"] * 21)
    with pytest.raises(ValueError, match="with another text in --reference: remove"):
        call(sweep_beam, *words, "--beams", "2")


def test_an_interrupted_sweep_has_what_was_decoded(tmp_path, searches, command):
    searches.limit = 1
    with pytest.raises(KeyboardInterrupt):
        call(sweep_beam, *command, *A, "--beams", "2,4")
    assert [run["beam"] for run in runs_of(tmp_path / "s.json")] == [2]


def a_work(tmp_path, *models, texts=None, **settings):
    """A recipe's folder, without what the sweep does not ask for."""
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
    return work


@pytest.mark.parametrize("row", ["sb", "sb-shift"])
def test_the_sweep_searches_as_the_recipe_does(row, tmp_path, searches):
    decode = ["--lenpen", 0.6, "--beam", 4, "--max-len-b", 10]
    work = a_work(tmp_path, row, decode=decode, generate=["--max-tokens", 99])
    searches.lines = ["A B"]
    call(sweep_beam, "--work", work, "--beams", "2", "--max-len-b", "7")
    (words,) = searches.words
    assert searches.settings() == [(str(work / row / "model.pt"), "2", "0.6")]
    assert value(words, "--max-len-b") == "7"
    assert value(words, "--max-tokens") == "99"


def test_the_sweep_scores_as_the_recipe_does(tmp_path, searches):
    """All references, and error rates where lines are words."""
    texts = {"test.p": ["A B", "A C"], "test.p.2": ["A B", "A D"]}
    score = {"references": 2, "phonemes": True}
    work = a_work(tmp_path, "sb", texts=texts, score=score)
    searches.lines = ["A B", "A D"]
    command = ["--work", work, "--beams", "2"]
    call(sweep_beam, *command)
    (found,) = runs_of(work / "beam-sweep.json")
    assert (found["WER"], found["PER"]) == (0, 0)
    one = ["--reference", work / "text" / "test.p"]
    with pytest.raises(ValueError, match="was decoded with other references"):
        call(sweep_beam, *command, *one)
    call(sweep_beam, *command, *one, "--output", tmp_path / "one.json")
    (found,) = runs_of(tmp_path / "one.json")
    assert (found["WER"], found["PER"]) == (50, 25)


def test_the_sweep_takes_rows_of_a_recipe(tmp_path, searches, capsys):
    """As the recipe decodes them: direction, seed and rescoring."""
    own = "teacher-back", "enat-phrase", "multilingual"
    work = a_work(tmp_path, "sb", "sb@2", "teacher-r2l", *own, rescore=2)
    searches.lines = ["A B"]
    rows = ["sb", "sb+rescored@2", "teacher-r2l"]
    call(sweep_beam, "--work", work, "--beams", "2", "--rows", *rows)
    paths = [path for path, *_ in searches.settings()]
    assert paths == [f"{work}/{row}/model.pt" for row in ("sb", "sb@2", "teacher-r2l")]
    found = searches.words
    assert [" ".join(words).count("--sb-rescore 2") for words in found] == [0, 1, 0]
    assert [words.count("r2l") for words in found] == [0, 0, 1]
    runs = runs_of(work / "beam-sweep.json")
    assert [run["system"] for run in runs] == rows
    assert capsys.readouterr().out == render_sweep({"runs": runs})
    with pytest.raises(FileNotFoundError, match=r"--rows sb@3 needs .*sb@3/model.pt"):
        call(sweep_beam, "--work", work, "--rows", "sb@3")
    with pytest.raises(ValueError, match=r"--rows rerank@2 has no model of its own"):
        call(sweep_beam, "--work", work, "--rows", "rerank@2")
    for row in own:
        with pytest.raises(ValueError, match=f"--rows {row} is decoded with data or"):
            call(sweep_beam, "--work", work, "--rows", row)
    with pytest.raises(ValueError, match=r"--beams must have an even number .* has 3"):
        call(sweep_beam, "--work", work, "--rows", "sb@01", "--beams", "3")
    with pytest.raises(ValueError, match="give its folder as --work"):
        call(sweep_beam, "--rows", "sb")


def test_the_sweep_takes_the_model_that_a_row_decodes_with(tmp_path, searches):
    """Its twin's, where both are trained in one way, or the one teacher's."""
    models = "sb", "teacher-both", "teacher-r2l"  # the last of a run before
    work = a_work(tmp_path, *models, teachers="one")
    searches.lines = ["A B"]
    rows = ["sb-tanh-0.1", "sb-tanh-0.1+rescored", "teacher-r2l"]
    call(sweep_beam, "--work", work, "--beams", "2", "--rows", *rows)
    paths = [path for path, *_ in searches.settings()]
    assert paths == [f"{work}/{row}/model.pt" for row in ("sb", "sb", "teacher-both")]
    answers = [value(words, "--sb-answer") for words in searches.words]
    assert answers == [None, None, "r2l"]
    a_work(tmp_path, teachers="two")
    words = ["--output", tmp_path / "two.json", "--beams", "2", "--rows", "teacher-r2l"]
    call(sweep_beam, "--work", work, *words)
    assert value(searches.words[-1], "--path") == f"{work}/teacher-r2l/model.pt"
    assert "--sb-answer" not in searches.words[-1]


def test_without_rows_the_sweep_takes_teachers_and_the_first_sb_nmt(tmp_path, searches):
    work = a_work(tmp_path, "sb-shift", "sb", "teacher-l2r", "teacher-r2l")
    searches.lines = ["A B"]
    call(sweep_beam, "--work", work, "--beams", "2")
    paths = [path for path, *_ in searches.settings()]
    models = "teacher-l2r", "teacher-r2l", "sb"
    assert paths == [f"{work}/{row}/model.pt" for row in models]
    systems = [run["system"] for run in runs_of(work / "beam-sweep.json")]
    assert systems == ["L2R", "R2L", "SB-NMT"]


def test_the_sweep_runs_fairseq_generate(tmp_path, data, trained):
    gold = put(tmp_path / "gold", *["W1 W2"] * 21)
    command = ["--data", data, "--reference", gold, "--output", tmp_path / "s.json"]
    command += ["--system", f"S=--path {trained}", "--cpu", "--num-workers", "0"]
    call(sweep_beam, *command, "--beams", "2")
    (found,) = runs_of(tmp_path / "s.json")
    assert found["BLEU"] > 0 and found["sentences/s"] > 0


def test_a_failed_decoding_shows_the_end_of_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(ValueError, match="failed with status 1, its log"):
        sweep_runs.decode(tmp_path / "run", [])


def sweep_of(systems):
    """A sweep's file, of name -> beam -> score."""
    return {
        "runs": [
            {"system": name, "beam": beam, "BLEU": score, "signature": "as it was"}
            for name, by_beam in systems.items()
            for beam, score in by_beam.items()
        ]
    }


def test_a_sweep_is_printed_a_line_a_system(tmp_path, capsys):
    """Seeds together, with no mean of those that happen to be there."""
    path = tmp_path / "sweep.json"
    seeds = {"sb": {2: 30, 4: 31}, "sb@2": {2: 32}, "sb@x": {2: 1234.5, 8: 0}}
    put(path, json.dumps(sweep_of(seeds)))
    call(show_table, path)
    assert capsys.readouterr().out.splitlines() == [
        "| tok. BLEU, by beam | seeds |            2 |  4 |    8 |",
        "| ------------------ | ----: | -----------: | -: | ---: |",
        "| sb                 |  1, 2 | 31.00 ± 1.41 |    |      |",
        "| sb@x               |     1 |     1,234.50 |    | 0.00 |",
        "",
        "tokenised BLEU: `as it was`",
    ]
    for name, seed in ("sb", []), ("sb@2", ["2", "|"]):
        put(path, json.dumps(sweep_of({name: {2: 30, 4: 31.254}})))
        call(show_table, path)
        alone = capsys.readouterr().out.splitlines()
        assert ("seeds" in alone[0]) == bool(seed)
        assert alone[2].split() == ["|", "sb", "|", *seed, "30.00", "|", "31.25", "|"]
    words = sweep_of({"sb": {2: 30, 4: 31}})
    words["runs"][0]["WER"] = 12.5
    put(path, json.dumps(words))  # not all have error rates
    call(show_table, path)
    assert "tok. BLEU, by beam" in capsys.readouterr().out
    words["runs"][1]["WER"] = 11
    put(path, json.dumps(words))
    call(show_table, path)
    heading, _, line = capsys.readouterr().out.splitlines()
    assert heading.startswith("| WER, %, by beam")
    assert line.split() == ["|", "sb", "|", "12.50", "|", "11.00", "|"]
    twice = sweep_of({"sb": {2: 30}, "sb@1": {2: 10}})
    for damaged in [{"system": "sb"}], [], twice["runs"]:
        put(path, json.dumps({"runs": damaged}))
        with pytest.raises(ValueError, match=r"sweep.json must be .* but is damaged"):
            call(show_table, path)


def cells_of(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_length_penalties_are_swept_and_the_best_is_taken(
    tmp_path, searches, command, capsys
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
    call(sweep_beam, *command, *systems, *swept, "--gen-subset", "valid")
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
    chosen = [*command, *systems, "--chosen-by", valid]
    call(sweep_beam, *chosen)
    assert searches.settings() == [("a", "4", "1"), ("b", "4", "2"), ("b2", "4", "2")]
    heading, _, first, second, *_ = capsys.readouterr().out.splitlines()
    assert cells_of(heading) == ["system", "seeds", "beam/lenpen", "tok. BLEU"]
    assert cells_of(first) == ["a", "1", "4/1", "100.00 (1.00)"]
    assert cells_of(second) == ["b", "1, 2", "4/2", "100.00 ± 0.00 (1.00)"]
    call(sweep_beam, *chosen)
    assert len(searches.words) == 3


def test_words_are_chosen_by_their_errors(tmp_path, searches, command):
    """The fewest, where BLEU would have the most."""
    searches.answers = {("a", "0.6"): GOLD[0], ("a", "1"): "Z"}
    swept = ["--phonemes", "--beams", "2", "--lenpens", "0.6,1"]
    call(sweep_beam, *command, *A, *swept)
    assert Sweep.of_file(tmp_path / "s.json").best("a") == Setting(2, 0.6)
    runs = runs_of(tmp_path / "s.json")
    for run in runs:
        run["WER"] = 100 - run["WER"]
    assert Sweep({"runs": runs}).best("a") == Setting(2, 1)


def test_beams_alone_are_printed_as_ever():
    """One beam too, and whatever the file says of lengths."""
    sweep = sweep_of({"sb": {4: 30}, "sb-lambda0": {4: 31}})
    for run in sweep["runs"]:
        run["length ratio"] = 0.9
    assert render_sweep(sweep).splitlines()[:3] == [
        "| tok. BLEU, by beam |     4 |",
        "| ------------------ | ----: |",
        "| sb                 | 30.00 |",
    ]
    apart = sweep_of({"sb": {4: 30}, "teacher-l2r": {1: 31}})
    assert render_sweep(apart).splitlines()[2:4] == [
        "| sb          |    4 |     30.00 |",
        "| teacher-l2r |    1 |     31.00 |",
    ]


def sweep_with(scores, **more):
    """A sweep of (system, beam) -> BLEU."""
    runs = [
        {"system": name, "beam": beam, "BLEU": score, "signature": ""}
        for (name, beam), score in scores.items()
    ]
    return Sweep({"runs": runs, **more})


def test_of_equal_settings_the_cheapest_is_taken():
    scores = {("a", 8): 3, ("a", 4): 3, ("a", 2): 1, ("b", 2): 1, ("b@2", 2): 1}
    assert sweep_with(scores).best("a") == Setting(4)
    assert sweep_with(scores).best("b") == Setting(2)


def test_a_sweep_that_is_not_whole_is_not_chosen_from(tmp_path, searches, command):
    """The best of what an interrupted one has may be the worst of all."""
    with pytest.raises(ValueError, match="all seeds of b must have the same beams"):
        sweep_with({("b", 2): 1, ("b", 4): 2, ("b@2", 2): 1}).best("b")
    valid = tmp_path / "valid.json"
    swept = [*command, *A, "--beams", "2", "--lenpens", "0.6,1,2", "--output", valid]
    searches.limit = 2
    with pytest.raises(KeyboardInterrupt):
        call(sweep_beam, *swept)
    chosen = [*command, *A, "--chosen-by", valid]
    with pytest.raises(ValueError, match=r"valid\.json: 1 runs are missing: repeat"):
        call(sweep_beam, *chosen)
    searches.limit = None
    call(sweep_beam, *swept)
    assert len(searches.words) == 3
    call(sweep_beam, *chosen)


def test_an_interrupted_repeat_loses_nothing(tmp_path, searches, command):
    """Of a sweep of which one run was removed."""
    words = [*command, *A, "--beams", "2,4,8"]
    call(sweep_beam, *words)
    (tmp_path / "s.json.runs" / "0-beam-2" / "result.json").unlink()
    searches.limit = 0
    with pytest.raises(KeyboardInterrupt):
        call(sweep_beam, *words)
    assert [run["beam"] for run in runs_of(tmp_path / "s.json")] == [2, 4, 8]


def test_what_goes_ill_with_a_choice_is_one_clear_error(tmp_path, searches, command):
    given, valid = tmp_path / "gold", tmp_path / "valid.json"
    swept = [*command, "--beams", "2", "--lenpens", "1", "--output", valid]
    lenpen = "--system", "a=--path a --lenpen 1"
    for own in [*A, "--lenpen", "1"], [*A, "--lenpen=1"], lenpen:
        with pytest.raises(ValueError, match="--lenpen is set by the sweep"):
            call(sweep_beam, *swept, *own)
    call(sweep_beam, *swept, *A)
    chosen = "--chosen-by", valid
    for flag in "--beams", "--lenpens":
        with pytest.raises(ValueError, match=f"leave out .*{flag}"):
            call(sweep_beam, *command, *A, *chosen, flag, "2")
    with pytest.raises(ValueError, match=r"valid\.json: it must have b, but has a"):
        call(sweep_beam, *command, "--system", "b=--path b", *chosen)
    with pytest.raises(ValueError, match=r"with the same options, --unkpen 1, but had"):
        call(sweep_beam, *command, *A, *chosen, "--unkpen", "1")
    for taken in valid, given:
        with pytest.raises(ValueError, match="must not be read and written by one"):
            call(sweep_beam, *command, *A, *chosen, "--output", taken)
    for nothing in "", tmp_path / "none.json":
        with pytest.raises(FileNotFoundError, match="does not exist: give a file"):
            call(sweep_beam, *command, *A, "--chosen-by", nothing)
    odd = {"system": "a", "beam": 3, "BLEU": 1, "signature": ""}
    put(valid, json.dumps({"runs": [odd]}))
    with pytest.raises(ValueError, match="a has two directions, but the best beam is"):
        call(sweep_beam, *command, *A, *chosen)


@pytest.mark.parametrize(
    "change",
    [
        {"beam": "4"},
        {"beam": 0},
        {"lenpen": "1"},
        {"lenpen": float("nan")},
        {"BLEU": None},
        {"BLEU": "x"},
        {"system": 3},
        {"lenpen": 1},
    ],
    ids=str,
)
def test_a_damaged_sweep_is_one_clear_error(tmp_path, command, change):
    """Also one where some runs have a length penalty and others have none."""
    fine = {"system": "a", "beam": 4, "BLEU": 1.5, "signature": ""}
    valid = tmp_path / "valid.json"
    put(valid, json.dumps({"runs": [fine, {**fine, "beam": 2, **change}]}))
    with pytest.raises(ValueError, match=r"valid\.json must be .* but is damaged"):
        call(sweep_beam, *command, *A, "--chosen-by", valid)


def test_the_sweep_of_another_set_has_its_references(tmp_path, searches):
    """Those of a recipe's validation set, which may be fewer than the test set's."""
    other = ["X Y Z W V"] * 21
    texts = {"test.p": other, "test.p.2": other, "valid.p": GOLD}
    score, decode = {"references": 2}, ["--beam", 4, "--lenpen", 0.6]
    work = a_work(tmp_path, "sb", texts=texts, score=score, decode=decode)
    path = str(work / "sb" / "model.pt")
    searches.answers = {(path, "1.5"): GOLD[0], (path, "0.6"): "A B C D"}
    command = ["--work", work, "--rows", "sb", "--beams", "2", "--gen-subset", "valid"]
    output = tmp_path / "valid.json"
    call(sweep_beam, *command, "--lenpens", "0.6,1.5", "--output", output)
    assert [lenpen for *_, lenpen in searches.settings()] == ["0.6", "1.5"]
    _, best = runs_of(output)
    assert (best["BLEU"], best["length ratio"]) == (pytest.approx(100), 1)
    put(work / "text" / "valid.p.2", *GOLD[1:])
    with pytest.raises(ValueError, match="--reference must have as many lines"):
        call(sweep_beam, *command, "--output", tmp_path / "two.json")
    (work / "text" / "valid.p.2").unlink()
    call(sweep_beam, *command, "--output", tmp_path / "plain.json")
    assert searches.settings()[-1] == (path, "2", "0.6")  # the recipe's own
    assert "lenpen" not in runs_of(tmp_path / "plain.json")[0]
    (work / "text" / "test.p.2").unlink()
    with pytest.raises(FileNotFoundError, match=r"test\.p\.2"):
        call(sweep_beam, *command[:-2], "--output", tmp_path / "test.json")
