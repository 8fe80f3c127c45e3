"""Garbage: strange text, and files in which something has changed."""

import json
import random
import subprocess

import pytest
import regex
from commands import ROOT, SB, changeable, run_generate, run_train
from hypothesis import given, settings
from hypothesis import strategies as st
from steps import call

from campaign import __main__ as campaign
from campaign import fuzz, garbage
from campaign.readers import DataFolder, readers
from sbnmt_plugin.symbols import RESERVED
from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools import tokens
from sbnmt_plugin.tools.evaluation import l2r_wins
from sbnmt_plugin.tools.recipes import costs
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.results import work_folder_rows as results
from sbnmt_plugin.training import checksums

SECONDS = 0.15  # of a short round, for each target


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    return DataFolder(tmp_path_factory.mktemp("strange"), 1)


@pytest.fixture(scope="module")
def kinds(strange, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    return folder, {reader.name: reader for reader in readers(folder, strange)}


LINE = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\r"))


@settings(deadline=None, max_examples=200)
@given(lines=st.lists(LINE, min_size=1).filter(lambda x: x[0][:1] != "\ufeff"))
def test_what_is_written_is_read_back(lines, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    texts.write_lines(path, lines)
    assert texts.read_lines(path) == lines
    assert path.read_bytes().count(b"\n") == len(lines)


@settings(deadline=None, max_examples=200)
@given(content=st.binary() | LINE.map(str.encode))
def test_any_bytes_are_lines_or_an_error_with_file_and_line(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "bytes.txt"
    path.write_bytes(content)
    try:
        lines = texts.read_lines(path)
    except ValueError as error:
        assert f"{path}, line " in str(error)
    else:
        unfinished = bool(content) and not content.endswith(b"\n")
        assert len(lines) == content.count(b"\n") + unfinished


@settings(deadline=None, max_examples=100)
@given(line=LINE, symbol=st.sampled_from(RESERVED))
def test_a_reserved_symbol_is_found_anywhere(line, symbol):
    with pytest.raises(ValueError, match=r"x\.en, line 2, must not contain"):
        texts.refuse_reserved("x.en", ["a", f"{line} {symbol} {line}"])


def test_strange_text_is_binarised_and_read_back(strange):
    count = fuzz.binarised(strange, random.Random(2), SECONDS)
    assert count.read and not count.faults


def test_a_lost_line_would_be_found(strange, monkeypatch):
    back = strange.there_and_back
    monkeypatch.setattr(strange, "there_and_back", lambda lines: back(lines)[:-1])
    assert fuzz.binarised(strange, random.Random(2), SECONDS).faults


def test_the_step_has_a_file_and_a_table_of_what_it_found(
    strange, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(fuzz, "DataFolder", lambda *_: strange)  # made already
    words = ["fuzz", "--output", tmp_path / "campaign", "--minutes", 0.03]
    call(campaign, *words)
    found = json.loads((tmp_path / "campaign" / "fuzz.json").read_text())
    assert all(row["cases"] and not row["faults"] for row in found["rows"])
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(found["rows"])
    with pytest.raises(ValueError, match="--output"):
        call(campaign, *words)


def test_odd_text_comes_back_from_tokens_and_subwords(tmp_path):
    count = fuzz.returned(tmp_path, random.Random(5), 10 * SECONDS)
    assert count.read and not count.faults


@pytest.mark.parametrize(
    "where", [(tokens, "PLAIN", "(?s).*"), (tokens, "TORN", "(?!)")]
)
def test_torn_letters_would_be_found(tmp_path, monkeypatch, where):
    module, name, pattern = where
    monkeypatch.setattr(module, name, regex.compile(pattern))
    assert fuzz.returned(tmp_path, random.Random(5), 10 * SECONDS).faults


def test_a_lost_blank_would_be_found(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz, "subwords_joined", lambda path: ["a"])
    assert fuzz.returned(tmp_path, random.Random(5), SECONDS).faults


@pytest.mark.parametrize("summed", [True, False])
def test_a_changed_data_folder_is_an_error_or_the_same(strange, summed):
    count = fuzz.every_byte(strange, summed, 3, 10 * SECONDS)
    assert count.refused and not count.faults


def test_without_checksums_another_text_would_be_read(strange):
    """The twin: a changed byte of a .bin is another word."""
    expected = strange.load(False)
    path = strange.folders[False] / "train.en-de.en.bin"
    content = path.read_bytes()
    other = next(i for i in range(2, len(content), 2) if content[i] != content[0])
    path.write_bytes(content[other : other + 2] + content[2:])
    try:
        assert strange.outcome(False) != expected
    finally:
        path.write_bytes(content)


def test_the_checksums_are_those_of_sha256sum(strange):
    folder = strange.folders[True]
    words = ["sha256sum", "--check", "--strict", checksums.NAME]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in folder.iterdir()} - {checksums.NAME}
    assert {line.split(":")[0] for line in done.stdout.splitlines()} == names


def test_changed_data_are_refused_where_they_are_read(data, trained, tmp_path):
    folder = changeable(data, tmp_path / "bin")
    checksums.write_sums(folder)
    path = folder / "test.en-de.en.bin"
    content = path.read_bytes()
    path.write_bytes(garbage.flipped(content, 3, random.Random(1)))
    with pytest.raises(
        ValueError, match=r"test.en-de.en.bin must be as it was written"
    ):
        run_generate(folder, trained)
    path.write_bytes(content)
    with (folder / "dict.de.txt").open("a") as file:
        file.write("more 1\n")
    with pytest.raises(ValueError, match=r"dict.de.txt must be as it was written"):
        run_generate(folder, trained)


def test_a_stream_that_has_gone_is_missed(data, tmp_path):
    """Without it both streams would silently be gold text."""
    folder = changeable(data, tmp_path / "bin")
    checksums.write_sums(folder)
    for path in folder.glob("train.*.r2l.*"):
        path.unlink()
    with pytest.raises(ValueError, match=r"r2l.bin must be as it was written"):
        run_train(folder, tmp_path / "save", *SB, "--max-epoch", 1)


def test_an_index_whose_lines_overlap_is_refused(data, trained, tmp_path):
    """It has the right size, and fairseq would read other sentences."""
    folder = changeable(data, tmp_path / "bin")
    path = folder / "test.en-de.en.idx"
    content = bytearray(path.read_bytes())
    content[-8:] = (0).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(ValueError, match="must be whole, but are cut off or damaged"):
        run_generate(folder, trained)


KINDS = [
    *("checkpoint", "recipe.yaml", "recipe.json", "options.json", "shard", "job.json"),
    *("pseudo targets", "output of fairseq-generate", "records", "trace", "beam sweep"),
    *("benchmark.json", "log", "codes", "dictionary", "phrase table"),
    *("links", "known links", "lengths of sets"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_file_is_an_error_that_names_it(kinds, kind):
    folder, known = kinds
    assert set(known) == set(KINDS)
    count = fuzz.files(folder, known[kind], random.Random(4), SECONDS)
    assert not count.faults and count.read + count.refused


def test_an_error_that_names_no_file_would_be_found(tmp_path):
    count = fuzz.Count("x")
    count.attempt(tmp_path / "a.json", lambda: json.loads("{"), "case 0")
    count.attempt(tmp_path / "a.json", lambda: {}["key"], "case 1")
    assert len(count.faults) == 2


BROKEN = {  # found by the campaign: each was a traceback, or named no file
    "recipe.yaml": [b"{", b"\xff", b"[1]", b'{"stages": 3}', b"a: b: c"],
    "recipe.json": [b"{", b"\xff", b"[]", b"{}", b'{"score": 1}'],
    "shard": [
        b'{"id": 0, "score": "x", "text": "W1"}\n{"id": 1, "skipped": "long"}\n',
        b'{"id": "0", "score": -1, "text": "W1"}\n{"id": 1, "skipped": "long"}\n',
    ],
    "options.json": [b"{", b"\xff", b"7"],
    "output of fairseq-generate": [b"H-0\n", b"H-x\t-1\tW\n"],
    "records": [
        b'{"id": 0, "source": "w0 w1", "winner": "l2r", "l2r": {}, "r2l": {}}\n',
        b'{"id": 0, "source": 1, "winner": "l2r", "l2r": {}, "r2l": {}}\n',
    ],
    "trace": [
        b'{"id": 0, "source": "", "beam": 2, "pairing": "x", "steps": [1], "pool": [1]}'
    ],
    "benchmark.json": [b'{"command": "c"}', b'{"command": 1}'],
    "checkpoint": [b"PK\x05\x06\x01\x00\x01\x00" + b"\0" * 14],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_what_the_campaign_has_found_names_the_file(kinds, kind):
    folder, known = kinds
    path = folder / known[kind].file
    path.parent.mkdir(exist_ok=True)
    for content in BROKEN[kind]:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=path.name):
            known[kind].read(path)


def test_a_sentence_with_a_reason_is_skipped_whatever_else_it_has(kinds):
    folder, known = kinds
    path = folder / "00000.jsonl"
    text = (
        '{"id": 0, "score": -1, "text": "W"}\n{"id": 1, "skipped": "x", "text": ""}\n'
    )
    path.write_text(text)
    assert known["shard"].read(path) == (1, 1)


def test_a_damaged_log_still_tells_the_rest(tmp_path):
    log = tmp_path / "log"
    log.write_text(
        f"{costs.LAUNCH}2026-11-21 10:00:00 | commit x |\n"
        "2026-11-99 10:00:10 | epoch 001 | loss 1 | wpb 9e | num_updates 5\n"
        "2026-11-99 10:00:10 | train | epoch 002 | wpb 9e999 | num_updates 5\n"
        f"{costs.END}2026-11-21 10:00:20 | peak 0..5 GiB\n"
    )
    assert costs.step_cost(log) == {"seconds": 20, "commits": ["x"]}


def test_a_damaged_result_is_named(tmp_path):
    records = tmp_path / "sb.jsonl"
    records.write_text('{"winner": 1}\nnull\n')
    with pytest.raises(ValueError, match=r"sb.jsonl must be as it was written"):
        l2r_wins(records, 2)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "sb.json").write_text("{")
    with pytest.raises(ValueError, match=r"sb.json must be as it was written"):
        results.build_table(tmp_path, load_recipe(ROOT / "examples/toy", False), "x")
