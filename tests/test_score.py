"""sbnmt score: sacreBLEU's scores of a hypothesis file."""

import json
from urllib.error import URLError

import pytest
from steps import call, put

from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import score
from sbnmt_plugin.tools.scoring import tokeniser_of


def test_scores_are_sacrebleus(tmp_path, capsys):
    from sacrebleu import corpus_bleu

    hypothesis = put(tmp_path / "h", "the cat sat here", "a b c d e")
    reference = put(tmp_path / "r", "the cat sat there", "a b c d e")
    words = ["--hypothesis", hypothesis, "--reference", reference]
    tok = ["--tokenised-hypothesis", hypothesis, "--tokenised-reference", reference]
    call(score, *words, *tok, "--json", tmp_path / "s.json")
    found = json.loads((tmp_path / "s.json").read_text())
    rows = [texts.read_lines(p) for p in (hypothesis, reference)]
    expected = corpus_bleu(rows[0], [rows[1]]).score
    assert found["BLEU"]["score"] == pytest.approx(expected, abs=0.005)
    assert "tok:13a" in found["BLEU"]["signature"]
    assert "tok:none" in found["tokenised BLEU"]["signature"]
    assert found["tokenised BLEU"]["signature"] in capsys.readouterr().out
    call(score, *words, "--tokenize", "zh", "--json", tmp_path / "s.json")
    assert "tok:zh" in (tmp_path / "s.json").read_text()
    with pytest.raises(ValueError, match="go together"):
        call(score, *words, *tok[:2])
    with pytest.raises(ValueError, match="--phonemes excludes"):
        call(score, *words, "--phonemes", "--tokenize", "zh")


@pytest.mark.parametrize(
    ("line", "advised"),
    [
        ("文档「index.html」在服务器的目录中。", "zh"),
        ("今日は、いい天気ですね。", "char"),
        ("วันนี้อากาศดี", "char"),
        ("The word 北京 is two signs.", None),
        ("यह एक किताब है।", None),
    ],
)
def test_a_tokeniser_is_advised_for_scripts_without_blanks(
    line, advised, tmp_path, capsys
):
    text = put(tmp_path / "h", line)
    words = ["--hypothesis", text, "--reference", text]
    call(score, *words)
    out, said = capsys.readouterr()
    assert "tok:13a" in out
    assert said.endswith(f": give --tokenize {advised}\n") if advised else not said
    call(score, *words, "--tokenize", "13a")
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("tokeniser", "error", "message"),
    [
        (
            "ja-mecab",
            RuntimeError("\nPlease install them.\n\n  pip install sacrebleu[ja]\n"),
            "Please .* pip install sacrebleu",
        ),
        ("flores200", URLError("no network"), "its model must .* no network"),
    ],
)
def test_a_tokeniser_that_lacks_something_is_one_line(
    tokeniser, error, message, tmp_path, monkeypatch
):
    def lacking(**_):
        raise error

    monkeypatch.setattr("sbnmt_plugin.tools.scoring.BLEU", lacking)
    text = put(tmp_path / "h", "a")
    words = ["--hypothesis", text, "--reference", text, "--tokenize", tokeniser]
    with pytest.raises(ValueError, match=f"{tokeniser}: {message}"):
        call(score, *words)


def test_the_tokeniser_follows_the_language_whose_code_has_two_or_three_letters():
    for codes, tokeniser in (
        ("zh zh-CN zho_Hans cmn yue", "zh"),
        ("ja jpn_Jpan tha lao khm mya bod dzo", "char"),
        ("de deu tr", "13a"),
    ):
        assert {tokeniser_of(code) for code in codes.split()} == {tokeniser}
