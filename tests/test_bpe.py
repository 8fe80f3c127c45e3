"""sbnmt bpe: learning, applying and undoing subwords."""

import re
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_text import LINE
from steps import call, put

from sbnmt_plugin.tools import subwords
from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import bpe


def test_bpe_is_undone(tmp_path):
    source = put(tmp_path / "text", "lower lowest newer", "", "new low")
    call(bpe, "learn", "--merges", 8, "--codes", tmp_path / "codes", source)
    words = ["apply", "--codes", tmp_path / "codes", source, tmp_path / "split"]
    call(bpe, *words)
    split = texts.read_lines(tmp_path / "split")
    assert "@@" in split[0]
    assert [texts.remove_bpe(line) for line in split] == texts.read_lines(source)
    with mock.patch.object(subwords, "fast_bpe", lambda codes: None):
        call(bpe, *words[:-1], tmp_path / "slow")
    assert texts.read_lines(tmp_path / "slow") == split


@settings(deadline=None, max_examples=100)
@given(lines=st.lists(LINE, min_size=1, max_size=5))
def test_any_line_comes_back_from_its_subwords_or_is_refused(lines, tmp_path_factory):
    assert_comes_back(lines, tmp_path_factory.getbasetemp())


def assert_comes_back(lines, folder):
    """Learn codes of lines twice over, apply them, and join the subwords again."""
    lines = ["aa", "aa", *lines, *lines]
    source, split = put(folder / "source", *lines), folder / "split"
    codes = folder / "codes"
    learn = ["learn", "--merges", 30, "--codes", codes, source]
    if any(word.endswith("@@") for line in lines for word in line.split()):
        with pytest.raises(ValueError, match=r"source, line \d+, must have no word"):
            call(bpe, *learn)
        return
    call(bpe, *learn)
    call(bpe, "apply", "--codes", codes, source, split)
    wanted = [" ".join(line.replace("\ufeff", "").split()) for line in lines]
    found = texts.read_lines(split)
    assert [texts.remove_bpe(line) for line in found] == wanted
    # fairseq splits at white space of any kind, and joins by --remove-bpe in its way
    again = [" ".join(line.split()) + " " for line in found]
    assert [line.replace("@@ ", "").rstrip() for line in again] == wanted


@pytest.mark.parametrize("line", ["a\u00a0b", "x\u2028y z", "git diff @@ -1 +1 @@ a"])
def test_words_would_be_joined_or_lost_by_subword_nmt_alone(line, tmp_path):
    with (
        mock.patch.object(bpe, "unmarked", str),
        mock.patch.object(subwords, "unmarked", str),
        pytest.raises((AssertionError, pytest.fail.Exception)),
    ):
        assert_comes_back([line], tmp_path)


def test_fewer_merges_than_asked_for_are_told_of(tmp_path, capsys):
    source = put(tmp_path / "text", "ab ab")
    words = ["learn", "--codes", tmp_path / "codes", source, "--merges"]
    call(bpe, *words, 5)
    assert "codes has 1 merges instead of 5: no other" in capsys.readouterr().err
    call(bpe, *words, 1)
    assert not capsys.readouterr().err


@pytest.mark.parametrize("line", ["a b", "", "abc"])
def test_text_of_which_nothing_can_be_learned_is_refused(line, tmp_path):
    source = put(tmp_path / "text", line)
    with pytest.raises(ValueError, match="text must have two letters that stand"):
        call(bpe, "learn", "--merges", 5, "--codes", tmp_path / "codes", source)
    assert not (tmp_path / "codes").exists()


CODES = "#version: 0.2\na b\nab c</w>\n"
WRONG_CODES = {
    "": "must have at least one line, but is empty",
    "#version: 0.2\n": "must join subwords, but has none",
    "\ufeff" + CODES: "line 1, must not begin with a byte order mark",
    "#version: 0.3\na b\n": "line 1, must join letters .* but has '#version:'",
    CODES.replace("a b\n", ""): "line 2, must join letters .* but has 'ab'",
    CODES + "\nb c\n": "line 4, must be two subwords, as in codes, but is ''",
    CODES + "a\rb c\n": "line 4, must not contain a carriage return",
    CODES + "a b 7\n": "line 4, must be two subwords, as in codes, but is 'a b 7'",
    "ab@@ 20\nc 7\n": "line 1, must join letters .* but has 'ab@@'",  # a vocabulary
    "a text of words\n": "line 1, must be two subwords",
}


@pytest.mark.parametrize("content", WRONG_CODES)
def test_codes_that_are_none_are_refused_with_their_line(content, tmp_path):
    source, codes = put(tmp_path / "text", "abc"), tmp_path / "codes"
    codes.write_text(content, encoding="utf-8", newline="")
    message = re.escape(str(codes)) + ",? " + WRONG_CODES[content]
    with pytest.raises(ValueError, match=message):
        call(bpe, "apply", "--codes", codes, source, tmp_path / "out")


@pytest.mark.parametrize(
    "content", [CODES, CODES.replace("\n", "\r\n"), CODES.removesuffix("\n")]
)
def test_codes_are_read_whatever_ends_their_lines(content, tmp_path):
    source, codes = put(tmp_path / "text", "abc abd"), tmp_path / "codes"
    codes.write_text(content, encoding="utf-8", newline="")
    call(bpe, "apply", "--codes", codes, source, tmp_path / "out")
    assert texts.read_lines(tmp_path / "out") == ["abc ab@@ d"]
