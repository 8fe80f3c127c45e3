"""The one reader of lines: streams, lists and tables."""

import gzip
import os
import re
import subprocess
import sys

import pytest
from steps import environment, put

from sbnmt_plugin import lines
from sbnmt_plugin.tools.text import read_parallel

COMMANDS = {  # with the input's name put in; all write what the file "out" holds
    "tokenise": "tokenise --language none {} out",
    "learn": "bpe learn --merges 2 --codes out {}",
    "apply": "bpe apply --codes codes {} out",
    "codes": "bpe apply --codes {} text out",
    "score": "score --reference text --hypothesis {} --json out",
    "lookup": "lookup --table {} --input text --output out",
}
SBNMT = f"{sys.executable} -m sbnmt_plugin "


@pytest.fixture
def folder(tmp_path):
    put(tmp_path / "text", "ab ab ac ad", "ab ac ab ac")
    put(tmp_path / "codes", "#version: 0.2", "a b</w>")
    put(tmp_path / "table", "ab ||| X ||| 1.0 3")
    return tmp_path


@pytest.mark.parametrize("stream", ["-", "/dev/stdin", "<(cat {})"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_input_may_be_a_stream(folder, command, stream):
    name = {"codes": "codes", "lookup": "table"}.get(command, "text")
    found = []
    for given in name, stream.format(name):
        words = f"cat {name} | {SBNMT} {COMMANDS[command].format(given)}"
        subprocess.run(
            ["bash", "-c", words],
            cwd=folder,
            env=environment(),
            check=True,
            capture_output=True,
        )
        found.append((folder / "out").read_bytes())
    assert found[0] == found[1] and found[0]


def test_a_stream_is_read_again(tmp_path):
    read, write = os.pipe()
    os.write(write, b"a\nb\n")
    os.close(write)
    path = f"/dev/fd/{read}"
    assert read_parallel(path, path) == [["a", "b"], ["a", "b"]]
    os.close(read)


FORM = re.compile(r"(\w+) ([0-9]+)")


def test_entries_are_matched_line_by_line(tmp_path):
    path = put(tmp_path / "list", "a 1", "b 2")
    entries = lines.each_entry(path, FORM, "a word and a number", "write them")
    assert [entry.groups() for entry in entries] == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must have at least one line, but is empty: write them"),
        (b"a 1\n\nb 2\n", "line 2, must be a word and a number, but is '': write them"),
        (b"a 1\nb 2 c\n", "line 2, must be a word and a number, but is 'b 2 c': write"),
        (b"a 1\nb 2\0\n", r"line 2, must be a word and a number, but is 'b 2\\x00'"),
        (
            b"a 1\n\xff\xfe\n",
            r"line 2, .* has the byte 0xff: iconv -f ENCODING -t UTF-8 .*list > NEW, w",
        ),
        (
            gzip.compress(b"a 1", mtime=0),
            r"line 1, .* is compressed: zcat .*list > NEW$",
        ),
        (
            "\ufeffa 1\n".encode("utf-16-be"),
            r"line 1, .* is UTF-16: iconv -f UTF-16 -t UTF-8 .*list > NEW$",
        ),
        (b"\xef\xbb\xbfa 1\n", "line 1, must not begin with a byte order mark"),
        (b"a 1\r\nb\r2\n", "line 2, must not contain a carriage"),
    ],
)
def test_a_list_of_another_form_is_refused(content, message, tmp_path):
    path = tmp_path / "list"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path},? {message}"):
        list(lines.each_entry(path, FORM, "a word and a number", "write them"))


def test_lines_end_at_line_feeds_alone(tmp_path):
    path = tmp_path / "odd"
    path.write_bytes("a\u2028b\r\nc\u0085d\n\n".encode())
    assert list(lines.each_line(path)) == ["a\u2028b", "c\u0085d", ""]


def test_what_is_no_file_is_named_at_once(tmp_path):
    for path, problem in (tmp_path, "is no file"), (tmp_path / "x", "does not exist"):
        with pytest.raises(FileNotFoundError, match=f"{path} {problem}"):
            lines.each_line(path)
