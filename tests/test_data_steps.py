"""A recipe on raw text, in sentencepiece's pieces: from the text to its scores."""

import json
import re
from unittest import mock

import in_process
import pytest
from fairseq.data import Dictionary
from steps import call

from sbnmt_plugin.symbols import BYTES, TAGS
from sbnmt_plugin.task import SBTranslationTask
from sbnmt_plugin.tools.commands import compare, report, sweep_beam, table
from sbnmt_plugin.tools.results import sweep_runs
from sbnmt_plugin.tools.scoring import scores
from sbnmt_plugin.tools.subwords import Pieces
from sbnmt_plugin.tools.text import read_lines

ROWS = ["teacher-l2r", "teacher-r2l", "sb", "rerank"]


@pytest.fixture(scope="module")
def raw_work(tmp_path_factory):
    """A work folder whose rows are trained on pieces of raw text."""
    folder = tmp_path_factory.mktemp("raw")
    changes = {"bpe": {"kind": "sentencepiece", "merges": 320}, "rows": ROWS}
    watched = {"--eval-bleu": None, "--eval-bleu-remove-bpe": None}
    watched |= {"--eval-bleu-args": '{"beam": 2}', "--eval-bleu-print-samples": None}
    recipe = in_process.write_recipe(
        folder / "recipe", **changes, teacher_train=watched
    )
    script = recipe / "prepare.py"
    odd = 'return f"{source}  Ω▁😀", f"{target}, \\u3000😀."'
    script.write_text(script.read_text().replace("return source, target", odd))
    in_process.make(recipe, "--work", folder / "work")
    return folder / "work"


def test_the_dictionary_is_the_models(raw_work):
    model = Pieces(raw_work / "bpe" / "codes")
    for language in "src", "tgt":
        path = raw_work / "data" / f"dict.{language}.txt"
        symbols = SBTranslationTask.load_dictionary(str(path)).symbols
        assert symbols[Dictionary().nspecial :] == [*model.pieces, *TAGS]
        assert BYTES.keys() <= set(symbols)


def test_every_word_of_the_texts_is_known(raw_work):
    log = (raw_work / "logs" / "data.log").read_text()
    shares = re.findall(r"([\d.]+)% replaced", log)
    assert len(shares) == 6 and set(map(float, shares)) == {0.0}


def test_rows_are_scored_on_the_text_itself(raw_work, capsys):
    gold = read_lines(raw_work / "text" / "test.tgt")
    assert "\u3000😀." in gold[0]
    for row in ROWS:
        result = raw_work / "results" / f"{row}.json"
        found = read_lines(result.with_suffix(".txt"))
        scored = json.loads(result.read_text())
        wanted = scores(found, [gold])
        assert {name: scored[name] for name in wanted} == wanted
        assert "tokenised BLEU" not in scored and "tok:13a" in str(scored["BLEU"])
        assert not any("▁" in line or "<0x" in line for line in found)
        assert not result.with_suffix(".tok").exists()
    call(table, "--recipe", raw_work.parent / "recipe", "--work", raw_work)
    shown = capsys.readouterr().out
    assert re.search(r"\| +BLEU \|", shown) and "tok. BLEU" not in shown


def test_validation_scores_the_text_itself(raw_work):
    log = (raw_work / "logs" / "train-teacher-l2r.log").read_text()
    shown = re.findall(r"example reference: (.*)", log)
    gold = read_lines(raw_work / "text" / "valid.tgt")
    assert shown and {line + " " for line in shown} <= {line + " " for line in gold}
    assert "example hypothesis" in log and "▁" not in "".join(shown)


def test_probes_sweeps_and_comparisons_read_the_text_itself(raw_work, capsys):
    probe = json.loads((raw_work / "results" / "interaction" / "sb.json").read_text())
    row = json.loads((raw_work / "results" / "sb.json").read_text())
    assert probe["as trained"]["signature"] == row["BLEU"]["signature"]
    assert probe["as trained"]["score"] == row["BLEU"]["score"]
    output = raw_work / "sweep.json"
    words = ["--work", raw_work, "--rows", "sb", "--beams", 4, "--output", output]
    with mock.patch.object(sweep_runs, "decode", in_process.decode):
        call(sweep_beam, *words)
    (run,) = json.loads(output.read_text())["runs"]
    assert run["BLEU"] == row["BLEU"]["score"]
    assert run["signature"] == row["BLEU"]["signature"]
    call(compare, "--work", raw_work, "sb", "teacher-l2r")
    assert "BLEU" in capsys.readouterr().out


def test_a_report_reads_the_text_itself(raw_work, tmp_path):
    call(report, "--work", raw_work, "--output", tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text()
    row = json.loads((raw_work / "results" / "sb.json").read_text())
    assert f">{row['BLEU']['score']:.2f}</td>" in page
    assert "tok:13a" in page and "tok:none" not in page
