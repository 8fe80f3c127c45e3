"""sbnmt translate, and load() in Python: a model folder and raw text."""

import gzip
import json
import pickle

import pytest
from commands import ROOT
from exporting import model_folder
from steps import call, put

import sbnmt_plugin
from sbnmt_plugin.tools.commands import bpe, translate
from sbnmt_plugin.tools.models.engine import Hypothesis, distinct
from sbnmt_plugin.tools.subwords import subwords

WITNESSES = ROOT / "tests" / "data" / "0.2.0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    output = tmp_path_factory.mktemp("folder") / "model"
    return model_folder(WITNESSES / "sb.pt", WITNESSES / "data", output)


@pytest.fixture(scope="module")
def model(folder):
    return sbnmt_plugin.load(folder, device="cpu")


def ended(*words):
    """The exit status of sbnmt translate."""
    try:
        call(translate, *words)
    except SystemExit as end:
        return end.code
    return 0


def test_odd_lines_have_a_line_each(folder, model, tmp_path, capfd):
    raw = tmp_path / "raw"
    raw.write_bytes(
        b"\xef\xbb\xbfw1 w2 w3\r\n\n" + b"w1 " * 2000 + b"\n\xff\nw4\0\n<s> w1\nw4"
    )
    assert ended(folder, "--input", raw, "--output", tmp_path / "out") == 1
    found = (tmp_path / "out").read_text().split("\n")
    w4 = model.translate(["w4"])
    assert found[:4] == [*model.translate(["w1 w2 w3"]), "", "", ""]
    assert found[4] and found[5:] == ["", *w4, ""]
    told = capfd.readouterr().err
    assert "line 3 stays empty: 2001 tokens, at most 1024 are allowed" in told
    assert "line 4 stays empty: byte 1, 0xff, is no UTF-8" in told
    assert "line 6 stays empty: <s> is a reserved symbol" in told
    assert "line 1 " not in told and "line 2 " not in told


def test_a_killed_translation_goes_on(folder, tmp_path, capfd, monkeypatch):
    raw = put(tmp_path / "raw", "w1 w2", "", "w4 w5 w6", "w7")
    first, second, records = (tmp_path / x for x in ("first", "second", "records"))
    words = [folder, "--input", raw, "--nbest", 2, "--output"]
    assert ended(*words, first, "--records", records) == 0
    whole, told = first.read_text(), records.read_text()
    assert whole.count("\n") == 8 and told.count("\n") == 4
    records_of = map(json.loads, told.splitlines())
    for record, text in zip(records_of, whole.splitlines()[::2]):
        winner = record["winner"]
        assert (record[winner]["text"] if winner else "") == text
    with pytest.raises(FileExistsError, match=r"--output .* must be a new file"):
        ended(*words, first)
    with pytest.raises(FileExistsError, match=r"--records .* must be a new file"):
        ended(*words, second, "--records", records)
    assert (first.read_text(), records.read_text()) == (whole, told)
    assert not [*tmp_path.glob("*part*")]
    records.unlink()

    def killed(model, source, output, *given):
        output.write(("".join(whole.splitlines(True)[:5]) + "half a li").encode())
        given[2].write(told.encode()[:-9])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(translate, "translate_stream", killed)
        ended(*words, second, "--records", records)
    assert not second.exists() and not records.exists()
    with pytest.raises(ValueError, match=r"begun with options .+, not .+: remove it"):
        ended(*words, second, "--scores")
    given = raw.read_text()
    raw.write_text(given.swapcase())  # as long
    with pytest.raises(ValueError, match="begun with another input: remove it"):
        ended(*words, second, "--records", records)
    raw.write_text(given)
    capfd.readouterr()
    assert ended(*words, second, "--records", records) == 0
    assert "2 lines are translated already" in capfd.readouterr().err
    assert (second.read_text(), records.read_text()) == (whole, told)
    assert not [*tmp_path.glob("*part*")]


def test_standard_output_has_the_text(folder, model, tmp_path, capfdbinary):
    raw = put(tmp_path / "raw", "w1 w2", "w3")
    assert ended(folder, "--input", raw, "--scores", "--dtype", "bf16") == 0
    rows = capfdbinary.readouterr().out.decode().splitlines()
    assert [row.split("\t")[1] for row in rows] == model.translate(["w1 w2", "w3"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["data", "--path", "x.pt", "--output", "y"], "is now sbnmt pseudo"),
        (["data", "--path=x.pt"], "is now sbnmt pseudo"),
        (["FOLDER", "--input", "IN", "--output", "IN"], "must not be read and written"),
        (["FOLDER", "--input", "IN", "--nbest", 5], "--nbest must be .* in 1 … 4"),
        (
            ["FOLDER", "--input", "IN", "--records", "x", "--nbest", 5],
            "--nbest must be .* in 1 … 4",
        ),
        (["FOLDER", "--input", "IN", "--beam", 1], "--beam must be ≥ 2"),
        (["FOLDER", "--input", "IN", "--lenpen", "nan"], "--lenpen must be"),
        (["FOLDER", "--input", "IN", "--lenpen", 21], r"--lenpen .* -20 … 20"),
        (["FOLDER", "--input", "IN", "--rescore=-1"], "--rescore must be"),
        (["FOLDER", "--input", "IN", "--beam", 10**5], "--beam must be"),
        (["FOLDER", "--input", "IN", "--output", "LINK"], "must not be read and"),
        (["FOLDER", "--input", "IN", "--output", "x", "--records", "x"], "read and"),
        (["FOLDER", "--input", "IN", "--output", "MODEL"], "must not be in"),
        (["FOLDER", "--input", "."], r"\.: Is a directory|'\.'"),
        (["none", "--input", "IN"], "must be a model folder, .* that sbnmt bundle"),
        (["WORK", "--input", "IN"], "must be a model folder, .*: give .*work/model$"),
        (["FOLDER", "--input", "GZIP"], r"is compressed: zcat .* \| sbnmt transl"),
        (["FOLDER", "--input", "WIDE"], "must be UTF-8, but is UTF-16: iconv"),
        (["FOLDER", "--input", "none"], "none"),
    ],
)
def test_a_users_mistake_is_told(folder, tmp_path, words, message):
    raw = put(tmp_path / "raw", "w1")
    link = tmp_path / "link"
    link.symlink_to(raw)
    (tmp_path / "gzip").write_bytes(gzip.compress(b"w1"))
    (tmp_path / "wide").write_bytes("w1".encode("utf-16"))
    names = {"FOLDER": folder, "IN": raw, "LINK": link, "MODEL": folder / "model.yaml"}
    (work := tmp_path / "work").mkdir()
    (work / "model").symlink_to(folder)
    names |= {"WORK": work, "GZIP": tmp_path / "gzip", "WIDE": tmp_path / "wide"}
    with pytest.raises((ValueError, OSError), match=message):
        ended(*(names.get(word, word) for word in words))
    assert raw.read_text() == "w1\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("w1", "must be a list of texts"),
        ([1], "must be a list of texts"),
        (None, "must be a list of texts"),
        (["w1", "w\ud800"], "line 2 cannot be translated: 'utf-8'"),
        (["w1", "w1 " * 2000], "line 2 cannot be translated: 2001 tokens"),
        (["<l2r>"], "line 1 cannot be translated: <l2r> is a reserved symbol"),
    ],
)
def test_python_is_told_too(model, given, message):
    with pytest.raises(ValueError, match=message):
        model.translate(given)


@pytest.mark.parametrize("option", [{"device": "x"}, {"dtype": "x"}, {"nbest": 1.5}])
def test_a_wrong_option_is_named(folder, option):
    with pytest.raises(
        ValueError, match=f"{next(iter(option))} must be (one of|a whole)"
    ):
        sbnmt_plugin.load(folder, **option)


def test_a_text_stands_once_among_the_best(folder):
    lines = ["w1 w2", "w3", "w4 w5 w6"]
    every = sbnmt_plugin.load(folder, device="cpu", nbest=None).hypotheses(lines)
    best = sbnmt_plugin.load(folder, device="cpu", nbest=3).hypotheses(lines)
    for own, all_of_them in zip(best, every):
        assert own == distinct(all_of_them, 3)
    twice = [[x.tokens for x in own] for own in every]
    assert any(len(set(own)) < len(own) for own in twice)  # else it shows nothing
    pairs = [Hypothesis("a", -1, "l2r"), Hypothesis("b", -2, "l2r")]
    pairs += [Hypothesis("a", -3, "r2l"), Hypothesis("c", -4, "r2l")]
    assert [x.score for x in distinct(pairs, 2)] == [-1, -2]
    assert [x.score for x in distinct(pairs, 4)] == [-1, -2, -4]


def test_a_beam_that_two_directions_cannot_share_is_refused(folder):
    with pytest.raises(ValueError, match="--beam must be even"):
        sbnmt_plugin.load(folder, beam=5)


def test_a_model_is_copied_to_other_processes(folder, model):
    found = pickle.loads(pickle.dumps(sbnmt_plugin.load(folder, device="cpu", nbest=2)))
    assert found.nbest == 2 and found.engine.cfg.common.cpu
    assert found.translate(["w1 w2"]) == model.translate(["w1 w2"])


def test_an_iterator_is_a_list_of_texts(model):
    lines = ["w1 w2", "w3"]
    assert model.translate(iter(lines)) == model.translate(lines) != []


def test_a_line_break_in_a_text_gives_one_line(model):
    assert model.translate(["w1\nw2", ""]) == [*model.translate(["w1 w2"]), ""]


def test_a_number_that_argparse_takes_for_a_flag_is_a_number(folder):
    assert sbnmt_plugin.load(folder, lenpen=-1e-05).translate(["w1"])


def test_a_folder_of_pieces_reads_raw_text_as_recipes_write_it(tmp_path):
    """Letters composed, blanks single: of white space alone no piece is made."""
    codes, raw = tmp_path / "codes", put(tmp_path / "raw", *["w1 w2 w3"] * 9)
    call(
        bpe, "learn", "--kind", "sentencepiece", "--merges", 300, "--codes", codes, raw
    )
    made = model_folder(
        *(WITNESSES / "sb.pt", WITNESSES / "data", tmp_path / "model"),
        *("--codes", codes),
    )
    found = sbnmt_plugin.load(made, device="cpu")
    blank = ["\u3000", "\u00a0 \t", "\r", "\ufeff \ufeff", "\u2028"]
    assert found.hypotheses([*blank, "w1"])[:-1] == [[]] * len(blank)
    assert found.hypotheses(["w1"]) != [[]]
    plain, other = "w1 \u00e9 w2", "\ufeff w1 e\u0301\u3000\tw2 "
    assert found.encode(other) == found.encode(plain) != subwords(codes).apply(other)
