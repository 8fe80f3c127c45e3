"""Subwords of each kind: applied to any line, and undone."""

import builtins
import re
from argparse import Namespace
from pathlib import Path
from unittest import mock

import pytest
import torch
from fairseq.data import Dictionary, encoders
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceConfig
from hypothesis import example, given, settings
from hypothesis import strategies as st
from odd_text import LINE
from steps import call, put

from sbnmt_plugin.symbols import BYTES, RESERVED, UNKNOWN, join_pieces
from sbnmt_plugin.task_data import StreamData
from sbnmt_plugin.tools import subwords
from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import bpe

KIND = ["--kind", "sentencepiece"]
# what a model must neither lose nor learn as a piece
TRAPS = (
    *("  two  blanks ", "▁", "a▁b ▁ c▁", "▅⁇", "a\u3000b", "a\u3000b c", "x\u2028y"),
    *("\x1f\x85", "a\tb", "\0", "<0xF0> <0x0A>", *RESERVED, UNKNOWN, "<s>a</s>"),
    *("ﬁ ½ Å e\u0301", "\ufeffa \ufeff", "🇩🇪👨\u200d👩", " "),
)


def learned(path, lines, pieces=400):
    """Learn pieces of lines three times over; return the model's path."""
    source = put(path.with_suffix(".text"), "the cat sat", *lines * 3)
    call(bpe, "learn", *KIND, "--merges", pieces, "--codes", path, source)
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that has seen each of the traps."""
    return learned(tmp_path_factory.mktemp("pieces") / "codes", TRAPS)


def assert_comes_back(made, line):
    """A line comes back from its pieces, as fairseq has them, too; or is refused."""
    if set(line) & {"\n", "\r"}:
        with pytest.raises(ValueError, match="must have no line break"):
            made.apply(line)
        return
    found = made.apply(line)
    wanted = line.replace("\ufeff", "")
    assert made.undo(found) == wanted
    assert made.undo(" ".join(found.split())) == wanted
    words = found.split(" ") if found else []
    assert words == found.split()
    assert set(words) <= set(made.pieces)
    assert made.model.decode(words) == wanted  # sentencepiece's own way


@settings(deadline=None, max_examples=300)
@given(line=LINE | st.text(st.characters(blacklist_categories=["Cs"])))
def test_any_line_comes_back_from_its_pieces_or_is_refused(model, line):
    assert_comes_back(subwords.subwords(model), line)


@settings(deadline=None, max_examples=40)
@given(lines=st.lists(LINE, min_size=1, max_size=5))
@example(lines=list(TRAPS))
def test_a_model_of_any_text_brings_it_back(lines, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp()
    made = subwords.Pieces(learned(folder / "codes", lines, 700))
    for line in lines:
        assert_comes_back(made, line)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"normalization_rule_name": "nmt_nfkc"}, "ﬁ ½"),
        ({"remove_extra_whitespaces": True}, "  two  blanks "),
        ({"byte_fallback": False}, "a😀"),
        ({"add_dummy_prefix": False}, " a"),
    ],
    ids=str,
)
def test_other_options_of_sentencepiece_would_lose_text(change, line, tmp_path):
    with (
        mock.patch.dict(bpe.UNIGRAM, change),
        pytest.raises(ValueError, match=r"must (come back from|have <unk> as)"),
    ):
        made = subwords.Pieces(learned(tmp_path / "codes", ["a b c fi 1"]))
        assert_comes_back(made, line)


@pytest.mark.parametrize("line", ["a\u3000b", "<pad>", "<l2r>"])
def test_pieces_that_fairseq_would_take_for_others_are_refused(line, tmp_path):
    nothing, whole = re.compile("(?!)"), {"split_by_unicode_script": False}
    with (
        mock.patch.object(bpe, "NOT_LEARNED", nothing),
        mock.patch.dict(bpe.UNIGRAM, whole),
        pytest.raises(ValueError, match="no piece with white space or reserved"),
    ):
        learned(tmp_path / "codes", [f"{line} x{line}y"] * 9, 600)


def test_the_sign_of_blanks_would_become_a_blank(model):
    made = subwords.Pieces(model)
    with (
        mock.patch.object(subwords, "BLANK", "no such sign"),
        pytest.raises(ValueError, match="must come back from its pieces"),
    ):
        assert_comes_back(made, "a▁b")


@given(
    line=st.lists(
        st.sampled_from([*BYTES]) | st.sampled_from(["▁", "a", "▁b", "<unk>", "é"])
    ).map(" ".join)
)
@example(line="▁a <0x0A> <0x0D> b")
@example(line="<0xEF> <0xBB> <0xBF> a")
def test_whatever_a_model_writes_becomes_a_line_of_a_file(line, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "joined"
    joined = join_pieces(line)
    texts.write_lines(path, [joined])
    assert texts.read_lines(path) == [joined]


def test_the_words_that_subword_nmt_keeps_are_bounded(tmp_path, monkeypatch):
    codes = put(tmp_path / "codes", "#version: 0.2", "a b")
    made, words = subwords.BytePairs(codes), [f"ab{i}" for i in range(99)]
    wanted = [made.apply(word) for word in words]
    monkeypatch.setattr(subwords, "CACHED", 9)
    for word, found in zip(words, wanted):
        assert made.apply(word) == found
        assert len(made.cache) <= 10


def test_the_dictionary_has_every_piece(model):
    entries = [line.split(" ") for line in texts.read_lines(f"{model}.dict")]
    found = [piece for piece, count in entries]
    assert found == subwords.Pieces(model).pieces
    assert BYTES.keys() <= set(found) and UNKNOWN not in found


def assert_removing_bpe_joins_pieces(dictionary, made, *words):
    """A dictionary of pieces gives a text back, whatever symbol it is asked by."""
    lines = ["the cat", "😀 ▁\u3000 sat."]
    rows = [
        dictionary.encode_line(made.apply(line), add_if_not_exist=False).long()
        for line in lines
    ]
    for symbol in "@@ ", "sentencepiece":
        assert [dictionary.string(row, symbol, *words) for row in rows] == lines
    batch = torch.nn.utils.rnn.pad_sequence(rows, True, dictionary.eos())
    assert dictionary.string(batch, "@@ ", *words) == "\n".join(lines)
    for symbol in None, "none":
        assert dictionary.string(rows[0], symbol) == made.apply(lines[0])


def test_removing_bpe_joins_pieces(model):
    dictionary = StreamData.load_dictionary(f"{model}.dict")
    made = subwords.Pieces(model)
    assert_removing_bpe_joins_pieces(dictionary, made)
    assert_removing_bpe_joins_pieces(dictionary, made, True)  # escape_unk


def test_fairseq_alone_would_print_bytes(model):
    dictionary, made = Dictionary.load(f"{model}.dict"), subwords.Pieces(model)
    with pytest.raises(AssertionError):
        assert_removing_bpe_joins_pieces(dictionary, made)


def test_fairseqs_bpe_of_a_task_joins_pieces(model):
    words = SentencepieceConfig(sentencepiece_model=str(model))
    words = Namespace(bpe="sentencepiece", **vars(words))
    task = StreamData.__new__(StreamData)
    joined = [owner.build_bpe(words) for owner in (task, encoders)]
    line = "the 😀 sat."
    ours, fairseqs = (made.decode(made.encode(line)) for made in joined)
    assert ours == line
    assert fairseqs != line  # the bytes are spelt


def test_other_dictionaries_remove_bpe_as_fairseq_does(tmp_path):
    path = put(tmp_path / "dict.txt", "a@@ 1", "b 1", "▁c 1", "<0x41> 1")
    dictionary = StreamData.load_dictionary(str(path))
    row = dictionary.encode_line("a@@ b ▁c <0x41>", add_if_not_exist=False)
    assert dictionary.string(row, "@@ ") == "ab ▁c <0x41>"


def test_a_text_is_split_and_joined_by_commands(model, tmp_path):
    source = put(tmp_path / "text", *(line for line in TRAPS if "\ufeff" not in line))
    split, back = tmp_path / "split", tmp_path / "back"
    call(bpe, "apply", "--codes", model, source, split)
    call(bpe, "undo", "--codes", model, split, back)
    assert back.read_bytes() == source.read_bytes() != split.read_bytes()


def test_fewer_pieces_than_asked_for_are_told_of(tmp_path, capsys):
    lines = [f"word{number} of {number * 7}" for number in range(50)]
    path = learned(tmp_path / "codes", lines, 8000)
    count = 1 + len(subwords.Pieces(path).pieces)
    assert f"{path} has {count} pieces instead of 8000: the" in capsys.readouterr().err
    learned(path, lines, count - 5)
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("lines", "merges", "message"),
    [
        (["a b c"], 100, r"--merges must be ≥ 26\d, for all bytes and the letters of"),
        (["", " ", "\u3000"], 300, "text must have words, but have none: take more"),
        (["a", "b\rc"], 300, "text, line 2, must not contain a carriage return"),
    ],
)
def test_text_of_which_no_model_can_be_learned_is_refused(
    lines, merges, message, tmp_path
):
    source, codes = put(tmp_path / "text", *lines), tmp_path / "codes"
    with pytest.raises(ValueError, match=message):
        call(bpe, "learn", *KIND, "--merges", merges, "--codes", codes, source)
    assert not codes.exists()


@pytest.mark.parametrize("place", range(8, 500, 37))
def test_a_damaged_model_is_refused(place, model, tmp_path):
    damaged = tmp_path / "codes"
    damaged.write_bytes(model.read_bytes()[:place] + b"\xff")
    with pytest.raises(ValueError, match=r"codes, line|codes must "):
        call(bpe, "apply", "--codes", damaged, put(tmp_path / "text", "a"), "x")
    assert not Path("x").exists()


def test_codes_show_their_kind(model, tmp_path):
    words = subwords.subwords(None)
    assert words.undo(words.apply(" a  b\u3000c\ufeff ")) == "a b c"
    pairs = subwords.subwords(put(tmp_path / "codes", "a b"))
    assert pairs.apply("abc") == "ab@@ c" and pairs.undo("ab@@ c") == "abc"
    assert isinstance(subwords.subwords(model), subwords.Pieces)


@pytest.mark.parametrize("words", [["learn", *KIND, "--merges", 300], ["apply"]])
def test_a_missing_sentencepiece_is_asked_for(words, model, tmp_path):
    own = builtins.__import__

    def without(name, *rest):
        if name == "sentencepiece":
            raise ModuleNotFoundError(name=name)
        return own(name, *rest)

    source = put(tmp_path / "text", "a")
    end = [source] if words[0] == "learn" else [source, tmp_path / "out"]
    codes = tmp_path / "new" if words[0] == "learn" else model
    with (
        mock.patch.object(builtins, "__import__", without),
        pytest.raises(ValueError, match=r"module sentencepiece .*\[sentencepiece\]"),
    ):
        call(bpe, *words, "--codes", codes, *end)
