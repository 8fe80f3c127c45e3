"""Text files that the steps read and write: their lines and their encoding."""

import pytest
from commands import PLUGIN, write_texts
from steps import call, put

from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import bpe, score, tokenise
from sbnmt_plugin.tools.commands import triples as make_triples


def test_lines_end_at_line_feeds_alone(tmp_path):
    path = tmp_path / "odd"
    path.write_bytes("a\u2028b\r\nc\u0085d\n\n".encode())
    assert texts.read_lines(path) == ["a\u2028b", "c\u0085d", ""]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"good\nb\xe9d\n", "line 2, must be UTF-8.*0xe9"),
        (b"good\r\na\rb\n", "line 2, must not contain a carriage"),
        # fairseq reads the same files, so that stripping it here would not be enough
        ("first\nsecond\n".encode("utf-8-sig"), "line 1, must not begin with a"),
    ],
)
def test_a_text_that_is_no_plain_text_is_refused(tmp_path, content, message):
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"text, {message}"):
        texts.read_lines(path)


def test_an_input_is_never_the_output(tmp_path):
    path = put(tmp_path / "t.en", "a b")
    refused = pytest.raises(ValueError, match="must not be read and written by one")
    with refused:
        call(tokenise, "--language", "en", path, path)
    with refused:
        call(bpe, "learn", "--merges", 2, "--codes", path, path)
    with refused:
        call(score, "--hypothesis", path, "--reference", path, "--json", path)
    put(tmp_path / "t.de", "A B")
    words = ["--pseudo-l2r", "x", "--pseudo-r2l", "y", "--output", tmp_path / "t"]
    with refused:
        call(make_triples, "--source", path, "--target", tmp_path / "t.de", *words)
    with pytest.raises(ValueError, match="two different suffixes"):
        call(make_triples, "--source", path, "--target", path, *words)
    assert path.read_text() == "a b\n"


def test_writing_texts_is_seeded(tmp_path):
    first = write_texts(tmp_path / "a", {"train": 5})
    second = write_texts(tmp_path / "b", {"train": 5})
    assert (first / "train.de").read_text() == (second / "train.de").read_text()
    assert PLUGIN[0] == "--user-dir"
