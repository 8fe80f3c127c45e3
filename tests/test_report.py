"""The report's inputs, its command and its refusals."""

import csv
import json
import re
from argparse import Namespace
from pathlib import Path

import pytest
import sacrebleu
from commands import ROOT
from report_texts import GOLDS, LOG, OUTPUTS
from steps import call, put

from sbnmt_plugin.tools.commands import report
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe

pytest.importorskip("matplotlib", reason="the extra [report] is not installed")


from sbnmt_plugin.tools.report import (
    build,
    content,
    drawing,
    inputs,
    page,
    records,
    scores,
    sentences,
)
from sbnmt_plugin.tools.text import read_lines


def record(i, source, winner="l2r", **texts):
    found = {name: {"text": text} for name, text in texts.items()}
    return json.dumps({"id": i, "source": source, "winner": winner, **found})


def test_records_are_ordered_and_known_by_their_words(tmp_path):
    """Subwords of either kind are joined."""
    source = ["Hello, wörld!", "good morning"]
    hello = "▁hel lo ▁, ▁w <0xC3> <0xB6> rld ▁!"
    lines = (
        record(1, "good mor@@ ning", "r2l", l2r="x"),
        record(0, hello, l2r="ha@@ llo"),
    )
    path = put(tmp_path / "r.jsonl", *lines)
    texts = "Hallo!", "guten Morgen"
    found = records.read_winners("--records sb", path, source, texts)
    assert found == ["l2r", "r2l"]
    assert records.is_line(hello, source[0]) and not records.is_line(hello, source[1])


@pytest.mark.parametrize(
    "lines, message",
    [
        ([record(0, "a")], r"for each of the 2 sentences, but has 1 \(none for line 2"),
        ([record(0, "a"), record(2, "b")], "has the id 2, but --source has the lines"),
        ([record(None, "a")], "has the id None, .* give fairseq-generate's records"),
        (
            [record(0, "b"), record(1, "a")],
            "--source, but only 0 of its 2 texts are the",
        ),
        (
            [record(i, "ab"[i], l2r="z", r2l="xy"[i]) for i in range(2)],
            "--system, but only 0 of its 2 texts are the line of their id",
        ),
        (["{"], "line 1, must be a JSON object"),
        ([record(0, "a").replace("l2r", "L2R")], "must be l2r or r2l, but is L2R"),
        (['{"id": 0}'], "line 1, must be a JSON object with id, source, winner"),
    ],
)
def test_wrong_records_are_refused(tmp_path, lines, message):
    path = put(tmp_path / "r.jsonl", *lines)
    with pytest.raises(ValueError, match=message):
        records.read_winners("--records sb", path, ["a", "b"], ["x", "y"])


@pytest.mark.parametrize(
    ("how", "tokens"),
    [
        ("13a", [["hi", ",", "รถ"]]),
        ("char", [["h", "i", ",", "ร", "ถ"]]),
        ("none", [["hi,", "รถ"]]),
    ],
)
def test_tokens_are_those_that_bleu_compares(how, tokens):
    given = inputs.Inputs([], [], {}, lowercase=True, tokenize=how)
    assert given.tokens(["Hi, รถ"]) == tokens


def test_a_source_is_counted_by_its_own_script():
    chinese, english = ["我爱你们。"], ["I love you."]
    assert inputs.Inputs(chinese, [english], {}).source_lengths() == [5]
    assert inputs.Inputs(english, [chinese], {}, tokenize="zh").source_lengths() == [4]
    assert inputs.Inputs(english, [], {}, tokenize="none").source_lengths() == [3]


@pytest.mark.parametrize(
    ("gold", "how", "warned"),
    [
        ("我爱你们。", "13a", "Give zh instead"),
        ("รถ", "intl", "Give char instead"),
        ("รถ", "char", ""),
        ("car", "13a", ""),
    ],
)
def test_a_tokeniser_that_finds_no_words_is_told(gold, how, warned):
    given = inputs.Inputs(["car"], [[gold]], {}, tokenize=how)
    asked = Namespace(source=[Path("a")], reference=[Path("b")])
    last = build.facts(given, asked)[-1]
    assert warned in last and bool(warned) == ("Careful" in last)


@pytest.fixture
def given(tmp_path):
    """Files of a small test set, and the command line that names them."""
    lines = [f"word{i} and more" for i in range(4)]
    won = [record(i, line, "l2r" if i else "r2l") for i, line in enumerate(lines)]
    run = {"system": "one", "signature": "s"}
    runs = [{**run, "beam": k, "BLEU": 30.0 + k} for k in (2, 4)]
    penalised = [{**run, "lenpen": 1.0} for run in runs]
    texts = {"src": lines, "ref0": GOLDS[0], "ref1": GOLDS[1], **OUTPUTS}
    texts |= {"records": won, "log": LOG.splitlines(), "short": ["only"]}
    whole = {"subset": "test", "planned": 2, "runs": runs}
    texts["sweep"] = [json.dumps(whole)]
    texts["valid"] = [json.dumps(whole | {"subset": "valid"})]
    texts["part"] = [json.dumps(whole | {"planned": 6})]
    texts["lenpens"] = [json.dumps({"runs": penalised})]
    for name, text in texts.items():
        put(tmp_path / name, *text)
    command = "--source {0}/src --reference {0}/ref0 --reference {0}/ref1 "
    command += "--system one={0}/one --system two={0}/two --output {0}/out"
    return tmp_path, command.format(tmp_path).split()


def numbers_of(folder, name):
    """Return the rows of a table of the report."""
    with (folder / "out" / "numbers" / f"{name}.csv").open() as file:
        return [*csv.DictReader(file)]


def test_the_report_has_all_sections_and_files(given):
    folder, command = given
    more = ["--records", f"one={folder / 'records'}", "--tokenize", "none"]
    more += ["--train-log", f"one={folder / 'log'}", "--beam-sweep", folder / "sweep"]
    call(report, *command, *more)
    html = (folder / "out" / "report.html").read_text()
    assert "Left out." not in html
    _, two = numbers_of(folder, "scores")
    corpus = sacrebleu.corpus_bleu(OUTPUTS["two"], GOLDS, tokenize="none").score
    assert float(two["BLEU"]) == pytest.approx(corpus)
    assert "tok:none" in html and "bs:1000|seed:12345" in html
    (winners,) = numbers_of(folder, "winners")
    assert float(winners["L2R won (%)"]) == 75
    assert "bits a token that each reads of the other" in html
    curves = [[*row.values()][2:] for row in numbers_of(folder, "training")]
    assert ["read_bits_l2r", "200", "0.31"] in curves
    assert ["read_bits_r2l", "200", "-0.02"] in curves
    for name in ("scores", "accuracy", "by-length", "beam-sweep"):
        assert b"<svg" in (folder / "out" / "figures" / f"{name}.svg").read_bytes()
        assert (folder / "out" / "numbers" / f"{name}.csv").exists()


def test_a_section_without_input_says_why(given):
    folder, command = given
    call(report, *command)
    call(report, *command)  # an earlier report is replaced
    html = (folder / "out" / "report.html").read_text()
    for key, reason in {
        "beams": "sbnmt sweep-beam",
        "winners": "--sb-records",
        "training": "--train-log",
    }.items():
        assert reason in html.split(f'id="{key}"')[1].split("</section>")[0]
    assert not list(folder.glob(".out*"))


@pytest.mark.parametrize(
    "words, message",
    [
        (["--system", "three=short"], "short must have as many lines as .*src, but"),
        (["--system", "three"], "--system must be NAME=FILE, but is 'three'"),
        (["--system", "one=ref0"], "--system one must be given once"),
        (["--records", "six=records"], "must name one of the systems"),
        (["--records", "one=missing"], "missing does not exist"),
        (["--beam-sweep", "none"], "none does not exist"),
        (["--beam-sweep", "ref0"], "ref0 must be as .* damaged .*: give a file"),
        (["--beam-sweep", "lenpens"], "must be a sweep over beams, but is one over"),
        (["--beam-sweep", "valid"], "of the test set, but is one of valid: give one"),
        (["--beam-sweep", "part"], "lacks 4 of its runs: repeat that sweep"),
        (["--work", "."], "--system must not stand beside --work"),
        (["--train-log", "one=src"], r"--train-log one=.*src must be a log with"),
        (["--output", "."], "must be new, empty or an earlier report"),
        (["--output", "ref0"], "must be a folder, but is a file"),
    ],
)
def test_wrong_input_of_the_report_is_one_clear_error(given, words, message):
    folder, command = given
    words = [w if w.startswith("--") else w.replace("=", f"={folder}/") for w in words]
    if words[0] in ("--beam-sweep", "--output"):
        words[1] = str(folder / words[1])
    with pytest.raises((ValueError, FileNotFoundError), match=message) as caught:
        call(report, *command, *words)
    assert "\n" not in str(caught.value)
    assert not (folder / "out").exists()


def test_everything_in_the_page_is_escaped():
    evil = "</script><script>alert(1)</script>&<b>\u2028"
    table = content.Table(evil, evil, [content.Column(evil)], [[evil]], [evil])
    section = content.Section("trace", evil, evil, [table], [], [evil], data=[evil])
    given = inputs.Inputs([evil], [[evil]], {evil: [evil]})
    html = page.render(evil, [evil], [section, sentences.section(given)])
    assert "<script>alert" not in html and "<b>\u2028" not in html
    assert html.count("</script>") == 2  # the trace's and ours
    missing = content.Section("beams", "t", missing=evil)
    assert "<script>alert" not in page.render("t", [], [missing])


def test_the_sentences_that_differ_most_are_shown(monkeypatch):
    monkeypatch.setattr(sentences, "SHOWN", 1)
    gold = ["a b c d", "e f g h", "i j k l"]
    systems = {"one": ["x", *gold[1:]], "two": [gold[0], "e f", ""]}
    section = sentences.section(inputs.Inputs(gold, [gold], systems))
    best, worst = section.data
    assert (best["line"], best["gain"]) == (1, 100) and worst["line"] == 3
    assert best["texts"][2:] == [("one", "0.0", "x"), ("two", "100.0", "a b c d")]
    html = page.render("t", [], [section])
    assert "(empty)" in html and 'dir="auto">e f' not in html
    assert 'dir="auto">a b c d' in html  # scripts of either direction
    assert [row[0] for row in section.tables[0].rows] == [1, 2, 3]


def test_the_best_of_a_column_is_bold_only_among_several():
    column = content.Column("BLEU", "", ".2f", best=True)
    table = content.Table("t", "", [column], [[1.0], [None], [2.0]])
    assert table.best_of(0) == 2.0 and column.show(None) == "–"
    assert content.Table("t", "", [column], [[1.0]]).best_of(0) is None
    assert table.csv() == 'BLEU\n1.0\n""\n2.0\n'


NAMES = "Ba$$in", "a$\\frac$b", "$x_1$", "_mine", "_"


def every_figure(given):
    """Return the SVG of every figure that names systems, all of :data:`NAMES` in it."""
    folder, command = given
    for name in NAMES:
        command += ["--system", f"{name}={folder / 'two'}"]
        command += ["--train-log", f"{name}={folder / 'log'}"]
    run = {"BLEU": 1.0, "signature": "s"}
    runs = [{**run, "system": x, "beam": k} for x in NAMES for k in (2, 4)]
    put(folder / "sweep", json.dumps({"runs": runs}))
    call(report, *command, "--beam-sweep", folder / "sweep")
    return {x.stem: x.read_text() for x in (folder / "out" / "figures").glob("*.svg")}


def assert_names_are_text(drawn, names=NAMES):
    """The text of every label is a comment; formulas are set in italics."""
    for figure, svg in drawn.items():
        missing = [name for name in names if not re.search(label_of(name), svg)]
        assert not missing, f"{figure} does not name {missing}"
        assert "Oblique" not in svg, f"{figure} has a formula"


def label_of(name):
    return f"<!-- {re.escape(name)}(, (L2R|R2L))? -->"


def test_names_are_text_in_every_figure(given):
    drawn = every_figure(given)
    known = {"scores", "accuracy", "by-length", "beam-sweep", "training"}
    assert known <= set(drawn)
    assert_names_are_text(drawn)


@pytest.mark.parametrize("broken", ["not name", "formula"])
def test_the_check_of_names_can_fail(monkeypatch, tmp_path, broken):
    names = "$x_1$", "_mine"
    if broken == "formula":
        style = drawing.STYLE.read_text() + "text.parse_math: True\n"
        monkeypatch.setattr(drawing, "STYLE", put(tmp_path / "x.mplstyle", style))
    else:
        monkeypatch.setattr(drawing, "UNNAMED", re.compile("_.*"))
    with drawing.panels(1, 2.0) as (canvas, (axis,)):
        drawing.draw_lines(axis, {name: ([1, 2], [1, 2]) for name in (*names, "x")})
        drawing.legend_above(canvas, axis)
    svg = drawing.finish(canvas, "x", "").svg.decode()
    with pytest.raises(AssertionError, match=broken):
        assert_names_are_text({"lines": svg}, names)


def test_figures_are_the_same_bytes_for_the_same_numbers():
    one, two = (scores.intervals({"a": (30, 1), "b": (31, 2)}) for _ in range(2))
    assert one.svg == two.svg


@pytest.fixture(params=[False, True], ids=["tokenised", "detokenised"])
def recipe_folder(given, request):
    """A folder that a recipe has filled, with text of its own or tokens alone."""
    folder, _ = given
    work = folder / "work"
    put(work / "data" / "test.en-de.en.idx")
    put(work / "text" / "test.en", *read_lines(folder / "src"))
    put(work / "text" / "test.de", *GOLDS[0])
    if request.param:
        put(work / "text" / "test.ref.de", *(x.replace(" .", ".") for x in GOLDS[0]))
    for name in "teacher-l2r", "rerank", "sb@2", "sb+rescored", "sb":
        for end in "txt", "tok":
            put(work / "results" / f"{name}.{end}", *OUTPUTS["one"])
        put(work / "results" / f"{name}.json", "{}")
    put(work / "results" / "notes.txt", "of the user's")
    put(work / "results" / "rnmt.txt", "not scored: killed half-way")
    (folder / "records").rename(work / "results" / "sb.jsonl")
    put(work / "logs" / "train-sb.log", *LOG.splitlines())

    return folder, work, request.param


def test_a_recipes_folder_fills_everything_in(recipe_folder):
    """Then it is scored as its recipe says: several references, case ignored."""
    folder, work, detokenised = recipe_folder
    args = report.parser().parse_args(["--work", str(work), "--output", "x"])
    found = inputs.read(inputs.of_command(args))
    # as in the table
    order = ["teacher-l2r", "rerank", "sb", "sb@2", "sb+rescored"]
    assert list(found.systems) == order
    assert list(found.winners) == list(found.train_logs) == ["sb"]
    assert (found.references == [GOLDS[0]]) == (not detokenised)
    assert found.tokenize == ("13a" if detokenised else "none")
    with pytest.raises(FileNotFoundError, match=r"must be a folder that .* finished"):
        inputs.of_work(folder)
    settings = load_recipe(ROOT / "examples" / "multi30k", small=True)
    settings["score"] |= {"references": 2, "lowercase": True}
    put(work / "recipe.json", json.dumps(settings))
    stem = "test.ref.de" if detokenised else "test.de"
    found = inputs.of_work(work)
    assert found.reference == [work / "text" / (stem + end) for end in ("", ".2")]
    assert found.lowercase


def test_text_of_a_recipe_is_scored_by_the_tokeniser_of_its_language(tmp_path):
    """As in the table."""
    put(tmp_path / "data" / "test.en-zh.en.idx")
    put(tmp_path / "results" / "sb.json", "{}")
    put(tmp_path / "text" / "test.ref.zh", "今天")
    with pytest.raises(ValueError, match="a row with results, but has none yet"):
        inputs.of_work(tmp_path)
    put(tmp_path / "results" / "sb.txt", "今天")
    assert inputs.of_work(tmp_path).tokenize == "zh"
