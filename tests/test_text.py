"""Text files that the steps read and write: their lines and their encoding."""

import pytest

from sbnmt_plugin.tools import text as texts


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
