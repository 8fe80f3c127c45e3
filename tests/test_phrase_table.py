"""The phrase table: lookup against all spans, its file, the steps around it."""

import logging
import pickle
import random
import re
import sys

import pytest
from steps import call

from sbnmt_plugin.tools.commands import lookup, phrase_table
from sbnmt_plugin.tools.text import read_lines, write_lines
from sbnmt_plugin.training.phrase_table import ENTRY, PhraseTable, entry_line

TABLE = PhraseTable(
    {
        ("a",): ("A",),
        ("a", "b"): ("C",),
        ("b", "c", "d"): ("B",),
        ("c",): ("X", "Y"),
    }
)


# lookup


def looked_up(tokens, entries):
    """Translate by the longest of all spans that begin where nothing is translated."""
    found, place = [], 0
    while place < len(tokens):
        spans = [
            (start, end)
            for start in range(len(tokens))
            for end in range(start + 1, len(tokens) + 1)
            if start == place and tuple(tokens[start:end]) in entries
        ]
        if spans:
            start, end = max(spans, key=lambda span: span[1] - span[0])
            found += entries[tuple(tokens[start:end])]
            place = end
        else:
            place += 1
    return found


def shortest_first(table, tokens):
    """The twin: by the shortest phrase there is."""
    found, start = [], 0
    while start < len(tokens):
        for end in range(start + 1, len(tokens) + 1):
            if tuple(tokens[start:end]) in table.entries:
                found += table.entries[tuple(tokens[start:end])]
                break
        else:
            end = start + 1
        start = end
    return found


def test_the_lookup_is_the_longest_of_all_spans(found_by=PhraseTable.lookup):
    generator = random.Random(3)
    for _ in range(200):
        tokens = [generator.randrange(5) for _ in range(generator.randint(0, 9))]
        phrases = [
            tuple(generator.randrange(4) for _ in range(generator.randint(1, 4)))
            for _ in range(6)
        ]
        entries = {
            phrase: tuple(generator.randrange(9) for _ in range(1 + i % 3))
            for i, phrase in enumerate(phrases)
        }
        assert found_by(PhraseTable(entries), tokens) == looked_up(tokens, entries)


def test_the_check_of_the_lookup_can_fail():
    with pytest.raises(AssertionError):
        test_the_lookup_is_the_longest_of_all_spans(shortest_first)


# over ids


class Words(dict):
    """A dictionary of fairseq's."""

    def index(self, word):
        return self.get(word, 3)

    def unk(self):
        return 3


INDEX = Words(a=4, b=5, c=6)
OTHERS = Words(A=7, C=8, X=9)


def test_entries_with_unknown_words_are_left_out(caplog):
    caplog.set_level(logging.INFO, "sbnmt_plugin")
    table = TABLE.with_ids(INDEX, OTHERS)
    assert table.entries == {(4,): (7,), (4, 5): (8,)}  # d and Y are unknown
    assert "2 of 4 entries" in caplog.text
    assert table.longest == 2 and table.lookup([6, 4, 5, 4]) == [8, 7]
    assert (6,) in TABLE.with_ids(INDEX, Words(OTHERS, Y=10)).entries


def test_a_table_of_unknown_words_alone_is_refused(tmp_path):
    path = tmp_path / "table"
    write_lines(path, ["a ||| A ||| 1.000000 1"])
    with pytest.raises(ValueError, match=f"{path} must have an entry whose words"):
        PhraseTable.load(path).with_ids(Words(b=4), OTHERS)
    write_lines(path, [])
    with pytest.raises(ValueError, match=f"{path} must have at least one line"):
        PhraseTable.load(path)


# the file


def test_a_line_is_read_as_it_was_written():
    line = entry_line("a b", "A |", 2 / 3, 4)
    assert line == "a b ||| A | ||| 0.666667 4"
    assert ENTRY.fullmatch(line).groups() == ("a b ", "A | ")


NOT_ENTRIES = [
    ("a ||| A", "'source phrase ||| target phrase ||| share count', but is 'a ||| A'"),
    ("a ||| A ||| 0.5 0.25 0.1 0.2", "share count"),
    ("a ||| A ||| 0.500000 0", "share count"),
    ("a ||| A ||| 0.500000 1 ||| 0-0", "share count"),
    ("", "share count"),
    (" ||| A ||| 0.500000 1", "share count"),
    ("a |||  ||| 0.500000 1", "share count"),
    ("a ||| \u00a0 ||| 0.500000 1", "share count"),
    ("first ||| B ||| 1.000000 1", "source phrase 'first', which an earlier line has"),
]


@pytest.mark.parametrize(("line", "message"), NOT_ENTRIES)
def test_a_line_that_is_no_entry_is_named(tmp_path, line, message):
    path = tmp_path / "table"
    write_lines(path, ["first ||| A ||| 1.000000 2", line])
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 2, must")) as error:
        PhraseTable.load(path)
    assert message in str(error.value) and ":" in str(error.value)[len(str(path)) :]


# the steps


@pytest.fixture
def text(tmp_path):
    """A text whose words stand for each other, its links, and a new text."""
    generator = random.Random(7)
    for name, size in ("train", 40), ("valid", 9):
        rows = [
            [f"w{generator.randrange(9)}@@", *generator.choices("abcde", k=i % 6)]
            for i in range(size)
        ]
        write_lines(tmp_path / f"{name}.en", map(" ".join, rows))
        write_lines(tmp_path / f"{name}.de", (" ".join(r).upper() for r in rows))
        links = (" ".join(f"{i}-{i}" for i in range(len(row))) for row in rows)
        write_lines(tmp_path / f"{name}.links", links)
    return tmp_path


def make(text, *words, links=True):
    sides = ["--source", text / "train.en", "--target", text / "train.de"]
    if links:
        sides += ["--alignments", text / "train.links"]
    call(phrase_table, *sides, "--output", text / "table", *words)
    return text / "table"


def test_the_steps_from_text_to_text(text, capsys):
    path = make(text)
    table = PhraseTable.load(path)
    (counted,) = capsys.readouterr().out.splitlines()
    assert counted == f"{len(table.entries)} entries"
    for source, target in table.entries.items():
        assert " ".join(target) == " ".join(source).upper()

    write_lines(text / "new.en", ["z", "", "a z b"])
    write_lines(text / "new.de", ["", "", "A B"])
    for name in "valid", "new":
        files = "--input", text / f"{name}.en", "--output", text / "x"
        call(lookup, "--table", path, *files)
        said = capsys.readouterr().out
        empty = read_lines(text / "x").count("")
        assert said.startswith(f"{empty} of ") and "no phrase of the table" in said
        assert read_lines(text / "x") == read_lines(text / f"{name}.de")


def test_a_table_is_the_same_when_made_again(text):
    first = make(text).read_bytes()
    assert first == make(text).read_bytes()
    lines = first.decode().splitlines()
    keys = [line.split(" ||| ")[0] for line in lines]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    assert first != make(text, "--least-count", 1).read_bytes()
    assert PhraseTable.load(make(text)).longest > 1
    assert PhraseTable.load(make(text, "--words")).longest == 1


@pytest.mark.parametrize(("least", "known"), [(1, True), (2, False)])
def test_phrases_seen_once_remember_their_text(text, least, known):
    """Of a text that says nothing twice, whose words stand for nothing else."""
    generator = random.Random(1)
    rows, others = (
        [" ".join(generator.choices(letters, k=8)) for _ in range(40)]
        for letters in ("abcde", "ABCDE")
    )
    links = " ".join(f"{i}-{i}" for i in range(8))
    for end, lines in ("en", rows), ("de", others), ("links", [links] * 40):
        write_lines(text / f"train.{end}", lines)
    table = PhraseTable.load(make(text, "--least-count", least))
    assert table.longest == 7 if known else table.longest < 7
    for row, other in zip(rows, others):
        found = pickle.loads(pickle.dumps(table)).lookup(row.split())
        assert (found[:7] == other.split()[:7]) == known


WRONG = [
    (["--least-count", -1], "--least-count must be ≥ 1, but is -1"),
    (["--words", "--least-count", 2], "--least-count is for phrases of several"),
    (
        ["--keep-alignments", "x"],
        "--keep-alignments must not stand beside --alignments",
    ),
]


@pytest.mark.parametrize(("words", "message"), WRONG)
def test_what_cannot_be_asked_for_is_refused(text, words, message):
    with pytest.raises(ValueError, match=message):
        make(text, *words)
    assert not (text / "table").exists()


def test_texts_that_cannot_be_read_are_refused(text):
    links = read_lines(text / "train.links")
    write_lines(text / "train.links", [*links[:2], "0-3", *links[3:]])
    with pytest.raises(ValueError, match=r"line 3, must link words .* but has 0-3: al"):
        make(text)
    write_lines(text / "train.links", [""] * len(links))
    with pytest.raises(
        ValueError, match="must give at least one phrase, but gives none"
    ):
        make(text)
    with pytest.raises(ValueError, match="must not be read and written"):
        make(text, "--output", text / "train.links")
    assert not (text / "table").exists()


def test_an_aligner_that_is_not_installed_is_named(text, monkeypatch):
    monkeypatch.setitem(sys.modules, "eflomal", None)
    remedy = r"eflomal must be installed .* pip install .* '.\[phrases\]'"
    with pytest.raises(ValueError, match=remedy):
        make(text, links=False)
    assert make(text).exists()  # other links need none


def test_eflomals_links_are_kept_and_give_the_same_table(text):
    pytest.importorskip("eflomal", reason="eflomal is not installed")
    kept = text / "kept"
    first = make(text, "--keep-alignments", kept, links=False).read_bytes()
    assert first == make(text, "--alignments", kept, links=False).read_bytes()
    right = [links.split() for links in read_lines(text / "train.links")]
    found = [links.split() for links in read_lines(kept)]
    agreed = sum(len(set(a) & set(b)) for a, b in zip(right, found))
    assert len(found) == 40 and agreed > 0.6 * sum(map(len, right))
