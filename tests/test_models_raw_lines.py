"""Raw lines in and out: one for one, in order, in bounded memory."""

import codecs
import gzip
import io
import os
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from odd_text import LINE
from steps import put

from sbnmt_plugin.tools.models import raw_lines
from sbnmt_plugin.tools.models.engine import Hypothesis
from sbnmt_plugin.tools.models.raw_lines import (
    count_lines,
    each_chunk,
    translate_stream,
)

ENDS = st.sampled_from([b"\n", b"\r\n"])
ODD = st.sampled_from([b"\xff\xff", b"\0", b"a\rb", b"\xef\xbb\xbf", b"", b" \t"])
FILES = st.lists(st.tuples(st.one_of(LINE.map(str.encode), ODD), ENDS), max_size=40)


class Echo:
    """Gives back the words of a line; lines of one word fail."""

    def __init__(self):
        self.chunks = []

    def hypotheses(self, lines):
        self.chunks.append(len(lines))
        return [self.answer(" ".join(line.split())) for line in lines]

    def answer(self, text):
        if text and " " not in text:
            return "it has one word"
        return [Hypothesis(text, -1.5, "r2l")] if text else []


def translated(path, done=0, model=None, **options):
    """(lines, problems) of a file."""
    output, problems = io.BytesIO(), []
    handle = os.open(path, os.O_RDONLY)
    for _, told in translate_stream(
        model or Echo(), handle, output, done=done, **options
    ):
        problems += told
    os.close(handle)
    assert not output.getvalue() or output.getvalue().endswith(b"\n")
    return output.getvalue().decode().split("\n")[:-1], problems


def assert_one_for_one(rows, path, **options):
    path.write_bytes(b"".join(line + end for line, end in rows))
    found, problems = translated(path, **options)
    assert len(found) == len(rows)
    failed = {int(told.split()[1]) for told in problems}
    for number, ((line, _), text) in enumerate(zip(rows, found), start=1):
        try:
            line = line.decode()
        except UnicodeDecodeError:
            line = "undecodable"
        if number == 1:
            line = line.removeprefix("\ufeff")
        words = line.split()
        assert text == ("" if len(words) == 1 else " ".join(words))
        assert (number in failed) == (len(words) == 1)
    with path.open("rb") as file:
        assert sum(count_lines(file)) == len(rows)
    for done in (min(1, len(rows)), len(rows) // 2, len(rows)):
        assert translated(path, done)[0] == found[done:]
    with pytest.raises(
        ValueError, match=f"must have the {len(rows) + 1} lines that are"
    ):
        translated(path, len(rows) + 1)


@given(FILES)
@example([(codecs.BOM_UTF8, b"\n"), (b"a b", b"")])
def test_every_line_has_its_own(tmp_path_factory, rows):
    assert_one_for_one(rows, tmp_path_factory.mktemp("raw") / "text")


@pytest.mark.parametrize("size", [1, 2, raw_lines.READ])
@pytest.mark.parametrize("form", ["gzip", "utf-16-le", "utf-16-be"])
def test_a_stream_of_another_form_is_refused(form, size, tmp_path, monkeypatch):
    monkeypatch.setattr(raw_lines, "READ", size)
    text, path = "\ufeffa b\n", tmp_path / "text"
    path.write_bytes(gzip.compress(b"a") if form == "gzip" else text.encode(form))
    name = "compressed: zcat" if form == "gzip" else "UTF-16: iconv -f UTF-16 -t UTF-8"
    message = rf"^the input must be UTF-8, but is {name} FILE \| sbnmt translate"
    with pytest.raises(ValueError, match=message):
        translated(path)
    path.write_bytes(b"\n" + path.read_bytes())  # a line of its own
    assert translated(path)[0][0] == ""


class Forgetful(Echo):
    def hypotheses(self, lines):
        return [found for found in super().hypotheses(lines) if found]


def test_the_check_of_lines_can_fail(tmp_path):
    rows = [(b"a b", b"\n"), (b"", b"\n"), (b"c d", b"\n")]
    assert_one_for_one(rows, tmp_path / "text")
    with pytest.raises(AssertionError):
        assert_one_for_one(rows, tmp_path / "text", model=Forgetful())


def test_a_last_line_needs_no_end(tmp_path):
    (tmp_path / "text").write_bytes(b"a b\nc d")
    assert translated(tmp_path / "text") == (["a b", "c d"], [])


def test_an_endless_line_is_left_out_and_takes_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_lines, "LONGEST", 100)
    monkeypatch.setattr(raw_lines, "READ", 16)
    path = tmp_path / "text"
    path.write_bytes(b"a b\n" + b"x " * 10**4 + b"\n" + b"y " * 50 + b"\nc d\n")
    handle = os.open(path, os.O_RDONLY)
    lines = [line for chunk in each_chunk(handle) for line in chunk]
    assert max(map(len, lines)) <= 100 + 16
    os.close(handle)
    found, problems = translated(path)
    assert found == ["a b", "", " ".join("y" * 50), "c d"]
    assert problems == ["line 2 stays empty: it has more than 100 bytes"]


def counted(count, path):
    """What counts a file's lines, and how much memory it takes at most."""
    tracemalloc.start()
    with path.open("rb") as file:
        found = count(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, peak


def test_lines_are_counted_without_holding_one(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"a\n" + b"x" * 2**21)
    (lines, little), (same, much) = (
        counted(count, path)
        for count in (count_lines, lambda file: sum(1 for _ in file))
    )
    assert lines == (1, 1) and same == 2 and little < 2**19 < 2**20 < much


def test_chunks_grow_to_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_lines, "MOST", 32)
    path = put(tmp_path / "text", *["a b"] * 100)
    model = Echo()
    translated(path, model=model)
    assert model.chunks == [8, 16, 32, 32, 12]


def test_a_chunk_of_long_lines_has_few(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_lines, "READ", 64)
    path, model = put(tmp_path / "text", *["a b " * 8] * 60), Echo()
    translated(path, model=model)
    assert max(model.chunks) == 32
    monkeypatch.setattr(raw_lines, "TOGETHER", 100)
    few = Echo()
    translated(path, model=few)
    assert max(few.chunks) < 8 and sum(few.chunks) == sum(model.chunks) == 60


def test_a_slow_writer_is_answered_before_the_end():
    """A line that is there is translated, while the next is not written yet."""
    reading, writing = os.pipe()
    output = io.BytesIO()
    answered = threading.Event()

    def answer():
        for _ in translate_stream(Echo(), reading, output):
            answered.set()

    thread = threading.Thread(target=answer)
    thread.start()
    os.write(writing, b"a b\nc")
    assert answered.wait(20) and output.getvalue() == b"a b\n"
    os.write(writing, b" d\n")
    os.close(writing)
    thread.join(20)
    os.close(reading)
    assert output.getvalue() == b"a b\nc d\n"


def test_hypotheses_are_as_many_as_asked_for_on_every_line(tmp_path):
    path = put(tmp_path / "text", "a b", "", "c")
    found, _ = translated(path, nbest=2, scores=True)
    assert found == ["-1.500000\ta b", "\t", "\t", "\t", "\t", "\t"]
    assert translated(path, nbest=2)[0] == ["a b", "", "", "", "", ""]


def begun_with(path, rows, content, how):
    """A file of which another command has written some bytes."""
    raw_lines.Growing(path, rows, how).close()
    Path(f"{path}.part").write_bytes(content)
    return raw_lines.Growing(path, rows, HOW)


HOW = {"model": "m", "input": "i", "options": "new"}


def test_a_file_goes_on_behind_its_last_whole_rows(tmp_path):
    path = tmp_path / "text"
    grown = begun_with(path, 2, b"1\n1\n2\n2\n3\n3", HOW)
    assert grown.done == 2 and not path.exists()
    grown.go_on(2)
    grown.file.write(b"x\n")
    grown.close()
    assert Path(f"{path}.part").read_bytes() == b"1\n1\n2\n2\nx\n"
    grown = raw_lines.Growing(path, 2, HOW)
    grown.go_on(1)
    grown.finish()
    grown.close()
    assert path.read_bytes() == b"1\n1\n" and os.listdir(tmp_path) == ["text"]
    for content, count in (b"", 0), (b"1", 0), (b"1\n", 0), (b"1\n1\n", 1):
        grown = begun_with(tmp_path / "other", 2, content, HOW)
        grown.close()
        assert grown.done == count
    for special in tmp_path, Path("-"), Path("/dev/stdout"):
        with pytest.raises(OSError, match=str(special)):
            raw_lines.Growing(special, 1, HOW)


def test_what_another_command_has_begun_stays(tmp_path):
    path, part = tmp_path / "text", tmp_path / "text.part"
    old = "with options old, not new"
    for how, named in (
        ({**HOW, "model": "x"}, "with another model"),
        ({}, "with another model"),
        ({**HOW, "options": "old"}, old),
    ):
        with pytest.raises(ValueError, match=f"but was begun {named}: remove it"):
            begun_with(path, 1, b"1\n2", how)
        assert part.read_bytes() == b"1\n2"
        part.unlink()
    part.write_bytes(b"notes of somebody")
    for note in None, "[1", "7":
        if note:
            (tmp_path / "text.part.json").write_text(note)
        else:
            (tmp_path / "text.part.json").unlink()
        with pytest.raises(ValueError, match="remove"):
            raw_lines.Growing(path, 1, HOW)
        assert part.read_bytes() == b"notes of somebody"


def test_a_file_has_one_writer(tmp_path):
    path = tmp_path / "out"
    grown = begun_with(path, 1, b"a b\n", HOW)
    with pytest.raises(ValueError, match="must have one writer"):
        raw_lines.Growing(path, 1, HOW)
    assert Path(f"{path}.part").read_text() == "a b\n"
    grown.close()
    raw_lines.Growing(path, 1, HOW).close()
