"""sbnmt evaluate: a decoded test set to a row; sbnmt table: the rows to a table."""

import json

import in_process
import pytest
from steps import call, put

from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import evaluate
from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.evaluation import References, score_row
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.results import work_folder_rows
from sbnmt_plugin.tools.scoring import scores, tokenised_bleu

GOLD = ["Das ist ein Satz .", "Und noch ein ganzer Satz .", "Der letzte Satz ist das ."]
PLAIN = [line.replace(" .", ".") for line in GOLD]


@pytest.fixture
def text(tmp_path):
    """A folder as prepare.py writes it."""
    put(tmp_path / "text" / "test.de", *GOLD)
    put(tmp_path / "text" / "test.ref.de", *PLAIN)
    return tmp_path / "text"


def generated(path, hypotheses):
    """fairseq-generate's output, in its own order, with two answers each."""
    lines = ["2026-11-21 | INFO | ..."]
    for index, line in reversed(list(enumerate(hypotheses))):
        lines += [f"S-{index}\tx", f"T-{index}\ty", f"H-{index}\t-0.1\t{line}"]
        lines += [f"D-{index}\t-0.1\tz", f"H-{index}\t-0.9\tthe second best"]
    return put(path, *lines, "Generate test with beam=4: BLEU4 = 1")


def run(tmp_path, text, given, *words):
    output = tmp_path / "results" / "sb.json"
    words = [given, "--text", text, "--target", "de", *words, "--output", output]
    call(evaluate, *words)
    return json.loads(output.read_text())


def test_fairseqs_output_becomes_a_row(tmp_path, text, capsys):
    split = ["Das ist ein Sa@@ tz .", "Und noch ein Satz .", "Der letzte Satz ."]
    tokens = ["Das ist ein Satz .", *split[1:]]
    generated(tmp_path / "out" / "generate-test.txt", split)
    records = put(
        tmp_path / "sb.jsonl", *(f'{{"winner": "{w}"}}' for w in ("l2r", "r2l", "l2r"))
    )
    row = run(
        *(tmp_path, text, tmp_path / "out", "--detokenise", "de"),
        *("--records", records),
    )
    plain = [line.replace(" .", ".") for line in tokens]
    assert row["tokenised BLEU"] == tokenised_bleu(tokens, [GOLD])
    expected = scores(plain, [PLAIN])
    assert (row["BLEU"], row["chrF"]) == (expected["BLEU"], expected["chrF"])
    assert row["L2R wins"] == {"score": 66.7}
    assert texts.read_lines(tmp_path / "results" / "sb.tok") == tokens
    assert texts.read_lines(tmp_path / "results" / "sb.txt") == plain
    assert "tokenised BLEU = " in capsys.readouterr().out
    for lines in [], ['{"winner": "l2r"}'] * 4:
        put(records, *lines)
        with pytest.raises(ValueError, match="a line for each of the 3 sentences, but"):
            run(tmp_path, text, tmp_path / "out", "--records", records)
    # the file itself, and without a language: tokens alone
    row = run(tmp_path, text, tmp_path / "out" / "generate-test.txt")
    assert set(row) == {"tokenised BLEU"}
    assert texts.read_lines(tmp_path / "results" / "sb.txt") == tokens


def test_text_without_blanks_is_scored_by_its_tokeniser(tmp_path):
    text, line = tmp_path / "text", "今天 天气 很 好"
    put(text / "test.zh", line)
    put(text / "test.ref.zh", line.replace(" ", ""))
    generated(tmp_path / "out", [line])
    words = ["--text", text, "--target", "zh", "--detokenise", "zh"]
    call(evaluate, tmp_path / "out", *words, "--output", tmp_path / "zh.json")
    found = json.loads((tmp_path / "zh.json").read_text())["BLEU"]
    assert "tok:zh" in found["signature"] and found["score"] == 100.0


def test_further_references_and_case_are_options(tmp_path, text):
    put(text / "test.de.2", *(line.upper() for line in GOLD))
    out = generated(tmp_path / "out.txt", [line.lower() for line in GOLD])
    row = run(tmp_path, text, out, "--references", 2, "--lowercase")
    assert "nrefs:2|case:lc" in row["tokenised BLEU"]["signature"]
    with pytest.raises(FileNotFoundError, match=r"test\.de\.3 does not exist"):
        run(tmp_path, text, out, "--references", 3)


@pytest.mark.parametrize("name", ["test.ref.de", "test.de.2", "test.ref.de.2"])
def test_references_of_another_number_of_lines_are_refused(tmp_path, text, name):
    """Else all lines after the one that lacks are scored by a wrong reference."""
    for path in sorted(text.iterdir()):
        put(text / f"{path.name}.2", *texts.read_lines(path))
    put(text / name, *GOLD[1:])
    out = generated(tmp_path / "out.txt", GOLD)
    message = rf"{name} must have as many lines as .*test\.de, but has only 2"
    with pytest.raises(ValueError, match=message):
        run(tmp_path, text, out, "--references", 2, "--detokenise", "de")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (GOLD[:2], r"a hypothesis for each of the 3 lines .* lacks that of .* 2:"),
        ([*GOLD, "of another set"], "has that of sentence 3: decode the whole"),
        ([], "lines H-…, but has none"),
    ],
)
def test_an_output_of_other_sentences_is_refused(tmp_path, text, said, message):
    with pytest.raises(ValueError, match=message):
        run(tmp_path, text, generated(tmp_path / "out.txt", said))
    assert not (tmp_path / "results").exists()


def test_an_output_of_another_set_of_the_text_is_refused(tmp_path, text):
    path = generated(tmp_path / "generate-valid.txt", GOLD)
    run(tmp_path, text, path)  # which the folder does not have: it may be the test set
    put(text / "valid.de", *GOLD)
    with pytest.raises(
        ValueError, match=r"must be of test, .* but is of valid: decode"
    ):
        run(tmp_path, text, path)


def test_a_sentence_that_reranking_left_out_is_empty(tmp_path, text, capsys):
    out = put(tmp_path / "rerank.tsv", f"0\t-1.0\t{GOLD[0]}", f"2\t-2.0\t{GOLD[2]}")
    row = run(tmp_path, text, out)
    assert texts.read_lines(tmp_path / "results" / "sb.tok") == [GOLD[0], "", GOLD[2]]
    assert row["tokenised BLEU"] == tokenised_bleu([GOLD[0], "", GOLD[2]], [GOLD])
    assert "tsv has no hypothesis for 1 of the 3 lines of" in capsys.readouterr().err
    put(out, f"3\t-1.0\t{GOLD[0]}")
    with pytest.raises(ValueError, match="below 3, but has 3: it belongs"):
        run(tmp_path, text, out)


@pytest.mark.parametrize("sizes", [(3, 3), (1, 1), (3, 2)])
def test_an_output_of_two_runs_is_refused(tmp_path, text, sizes):
    """Also of a text of one sentence, whose two answers are no list of one."""
    runs = [generated(tmp_path / f"{i}", GOLD[:n]) for i, n in enumerate(sizes)]
    lines = [line for path in runs for line in texts.read_lines(path)]
    with pytest.raises(ValueError, match=r"must not begin with sentence \d anew"):
        run(tmp_path, text, put(tmp_path / "log", *lines))


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        *(("log", line, "H-id<TAB>score") for line in ("H-x\t-1\ta", "H-0\t-1", "H-")),
        *(
            ("text/test.sets", line, "a set's name")
            for line in ("one", "a\t2\t3", "a\t0", "")
        ),
    ],
)
def test_a_line_of_another_form_is_named(tmp_path, text, name, line, message):
    generated(tmp_path / "log", GOLD)
    put(tmp_path / name, "first\t1", line)
    with pytest.raises(ValueError, match=f"{name}, line 2, must be {message}"):
        run(tmp_path, text, tmp_path / "log")


def test_wrong_input_is_named(tmp_path, text):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"must hold one generate-\*\.txt"):
        run(tmp_path, text, tmp_path / "empty")
    with pytest.raises(ValueError, match="--references must be ≥ 1, but is 0"):
        run(tmp_path, text, tmp_path / "log", "--references", 0)
    with pytest.raises(ValueError, match=r"--output must end in \.json, but is out"):
        call(evaluate, "x", "--text", text, "--target", "de", "--output", "out.txt")


def test_a_table_is_built_from_the_results_alone(tmp_path, capsys):
    recipe, work = in_process.write_recipe(tmp_path / "recipe"), tmp_path / "work"
    put(work / "text" / "test.tgt", *GOLD)
    for name in ("transformer-pl", "sb"):
        out = generated(tmp_path / "out.txt", GOLD if name == "sb" else GOLD[::-1])
        call(
            *(evaluate, out, "--text", work / "text", "--target", "tgt"),
            *("--output", work / "results" / f"{name}.json"),
        )
    capsys.readouterr()
    call(show_table, "--recipe", recipe, "--work", work)
    shown = capsys.readouterr().out
    assert "| SB-NMT, tanh, λ = 1.0, two triples |    100.00 |" in shown
    assert f"sbnmt table --recipe {recipe}`\n" in shown  # no log says of which commit
    table = json.loads((work / "table.json").read_text())
    assert table["opponent"] == "transformer-pl"
    put(tmp_path / "results" / "teacher-both+rescored@2.json", "{}")
    settings = load_recipe(recipe, small=False)
    row = work_folder_rows.build_row(tmp_path, settings, Row("teacher-both", 2, True))
    assert row["title"] == "SB-NMT, λ = 0, gold, rescored, seed 2"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--recipe toy --work w", "must hold a row's results"),
        ("--recipe bitext --work w --small", "--small is not for bitext, whose run"),
    ],
)
def test_a_table_is_of_a_run(words, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        call(show_table, *words.split())


def test_sets_are_scored_apart_and_averaged(tmp_path):
    good, bad = "a b c d e f", "x y z u v w"
    put(tmp_path / "test.en", good, good, good)
    put(tmp_path / "test.en.2", good, good, good)
    references = References(tmp_path, "en", count=2, lowercase=True)
    tokens = [good.upper(), bad, bad]
    scored, _ = score_row(tokens, references)
    assert "nrefs:2|case:lc" in scored["tokenised BLEU"]["signature"]
    whole = scored["tokenised BLEU"]["score"]
    put(tmp_path / "test.sets", "mt03\t1", "mt04\t2")
    scored, _ = score_row(tokens, references)
    assert scored["sets"]["mt03"] == 100
    assert scored["sets"]["mt04"] < 1
    mean = (scored["sets"]["mt03"] + scored["sets"]["mt04"]) / 2
    assert scored["tokenised BLEU"]["score"] == pytest.approx(mean, abs=0.01)
    assert scored["tokenised BLEU"]["score"] != whole
    for sets in ["mt03\t1", "mt04\t1"], ["mt03\t1", "mt03\t3"]:
        put(tmp_path / "test.sets", *sets)
        with pytest.raises(ValueError, match="different names that add up to 3 lines"):
            score_row(tokens, references)
