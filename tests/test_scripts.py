"""From bitext to triples: the scripts, their refusals, and that they can be resumed."""

import errno
import json
import logging
import os
import runpy
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import in_process
import pytest
import torch
from commands import (
    PLUGIN,
    ROOT,
    SB,
    changeable,
    load,
    run_generate,
    run_train,
    write_texts,
)
from steps import call, imported, put, translate_command

from sbnmt_plugin.symbols import RESERVED, TAGS
from sbnmt_plugin.tools import jobs, origin, quiet, tokens, translator, unfinished
from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import average as average_checkpoints
from sbnmt_plugin.tools.commands import binarise, bpe, score, tokenise, translate
from sbnmt_plugin.tools.commands import triples as make_triples
from sbnmt_plugin.tools.recipes import runner
from sbnmt_plugin.tools.recipes.training import Training

# ---------------------------------------------------------------- text files


def test_lines_end_at_line_feeds_alone(tmp_path):
    path = tmp_path / "odd"
    path.write_bytes("a\u2028b\r\nc\u0085d\n\n".encode())
    assert texts.read_lines(path) == ["a\u2028b", "c\u0085d", ""]


def test_undecodable_text_is_named(tmp_path):
    path = tmp_path / "latin"
    path.write_bytes(b"good\nb\xe9d\n")
    with pytest.raises(ValueError, match=r"latin, line 2, must be UTF-8.*0xe9"):
        texts.read_lines(path)


def test_a_carriage_return_inside_a_line_is_refused(tmp_path):
    path = tmp_path / "mac"
    path.write_bytes(b"good\r\na\rb\n")
    with pytest.raises(ValueError, match=r"mac, line 2, must not contain a carriage"):
        texts.read_lines(path)


def test_a_byte_order_mark_is_refused(tmp_path):
    """fairseq reads the same files, so that stripping it here would not be enough."""
    path = tmp_path / "notepad"
    path.write_text("first\nsecond\n", encoding="utf-8-sig")
    with pytest.raises(ValueError, match=r"notepad, line 1, must not begin with a"):
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


def test_a_failure_leaves_the_old_file(tmp_path):
    path = put(tmp_path / "kept", "old")
    with pytest.raises(RuntimeError), unfinished.new_file(path) as file:
        file.write("new\n")
        raise RuntimeError
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_users_mistake_is_one_line(tmp_path):
    words = [ROOT / "scripts" / "bpe.py", "apply", "--codes", "none", "in", "out"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.strip() == "bpe.py: error: in does not exist"


def fails(*words):
    """The one line that a script prints when it fails."""
    command = [sys.executable, ROOT / "scripts" / words[0], *map(str, words[1:])]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_what_the_system_refuses_is_one_line(tmp_path):
    source = put(tmp_path / "in", "a b")
    words = ["bpe.py", "vocabulary", source]
    assert f"{tmp_path}: Is a directory: choose" in fails(*words, tmp_path)
    assert f"{source}: File exists: choose" in fails(*words, source / "out")
    assert f"{tmp_path} is no file" in fails("bpe.py", "vocabulary", tmp_path, "x")
    assert list(tmp_path.iterdir()) == [source]


def test_a_full_disk_names_the_file(tmp_path):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(OSError, match=r"No space") as caught:  # noqa: SIM117
        with unfinished.new_file(tmp_path / "out"):
            raise full
    assert caught.value.filename == str(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_the_end_by_sigterm_leaves_nothing(tmp_path):
    """A batch system ends a job in this way."""
    for suffix in ("en", "de"):
        put(tmp_path / "texts" / f"train.{suffix}", *["a b c d e f g"] * 50_000)
    output = tmp_path / "data"
    output.mkdir()
    words = ["-s", "en", "-t", "de", "--trainpref", tmp_path / "texts" / "train"]
    words += ["--destdir", output / "bin", "--workers", "2"]
    script = [sys.executable, ROOT / "scripts" / "binarise.py", *map(str, words)]
    running = subprocess.Popen(script, stderr=subprocess.PIPE)
    while not list(output.glob(".bin.*.tmp/*.bin")):
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.01)
    running.terminate()
    running.communicate(timeout=60)
    assert running.returncode == 128 + signal.SIGTERM
    assert not list(output.iterdir())


@pytest.mark.parametrize("raised", ["KeyboardInterrupt", "RuntimeError"])
def test_an_interrupt_is_one_line(raised):
    """And any other surprise has its traceback."""
    program = (
        "from sbnmt_plugin.tools.command import run\n"
        f"def fall(): raise {raised}\n"
        "run(fall)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )
    interrupted = raised == "KeyboardInterrupt"
    assert done.stderr.endswith("-c: interrupted\n") == interrupted
    assert ("Traceback" in done.stderr) != interrupted
    interrupts = -signal.SIGINT, 128 + signal.SIGINT
    assert (done.returncode in interrupts) == interrupted


# ---------------------------------------------------------------- the command

LIGHT = ["recipe", "prepare", "tokenise", "bpe", "train", "triples", "score", "table"]
LIGHT += ["evaluate", "sweep-beam", "report", "trace-page", "benchmark"]


@pytest.mark.parametrize("step", LIGHT)
def test_a_light_step_imports_no_torch(step):
    """Importing it with fairseq takes seconds, in each step of a recipe."""
    found = imported("-u", "-m", "sbnmt_plugin", step, "--help")
    assert "sbnmt_plugin.tools.command" in found
    assert not {"torch", "fairseq"} & found


def test_any_other_import_of_the_package_registers(tmp_path):
    """Which is what --user-dir does; and that the check above can fail."""
    assert {"torch", "fairseq"} < imported("-c", "import sbnmt_plugin")
    lines = ["import sys", "sys.path.insert(0, sys.argv[1])", "import sbnmt_plugin"]
    assert "torch" in imported(put(tmp_path / "sbnmt.py", *lines), ROOT)


WITHOUT = """
import sys
sys.modules["jinja2"] = None
sys.argv[0] = "sbnmt"
from sbnmt_plugin.__main__ import main
main()
"""


@pytest.mark.parametrize(
    "words", [["report"], ["trace-page", "--trace", "none"]], ids=lambda w: w[0]
)
def test_a_missing_extra_is_named(tmp_path, words):
    command = [sys.executable, "-c", WITHOUT, *words, "--output", str(tmp_path / "x")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr == (
        f"sbnmt {words[0]}: error: the module jinja2 must be installed for this step, "
        "but is not: pip install 'sbnmt-plugin[report]', or in a clone -e '.[report]'\n"
    )


MESSAGES = {  # of fairseq's, and whether the steps of sbnmt show them
    ("fairseq.tasks.fairseq_task", "can_reuse_epoch_itr = True"): False,
    ("fairseq.tasks.fairseq_task", "creating new batches for epoch 1"): True,
    ("fairseq.tasks.text_to_speech", "Please install tensorboardX: pip …"): False,
    ("fairseq.tasks.text_to_speech", "can_reuse_epoch_itr = True"): True,
    ("fairseq.tasks.translation", "can_reuse_epoch_itr = True"): True,
}


def test_two_messages_of_fairseqs_are_left_out_and_no_others(caplog):
    loggers = [logging.getLogger(name) for name in quiet.SILENCED]
    for name in (None, "fairseq"):  # a report has quietened fairseq
        caplog.set_level(logging.INFO, name)

    def shown():
        caplog.clear()
        for name, text in MESSAGES:
            logging.getLogger(name).info(text)
        return {(name, text) for name, _, text in caplog.record_tuples}

    for logger in loggers:
        logger.removeFilter(quiet.wanted)
    assert shown() == set(MESSAGES)
    try:
        quiet.silence()
        quiet.silence()
        assert shown() == {key for key, kept in MESSAGES.items() if kept}
        assert all(logger.filters == [quiet.wanted] for logger in loggers)
    finally:
        for logger in loggers:
            logger.removeFilter(quiet.wanted)


def test_progress_bars_are_not_interrupted(data, teacher, tmp_path):
    source = data.parent / "texts" / "test.en"
    words = translate_command(
        data, teacher, source, tmp_path / "out", "--shard-size", 9
    )
    command = [sys.executable, ROOT / "scripts" / "translate.py", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "out: shards" in done.stderr
    assert "can_reuse_epoch_itr" not in done.stderr
    assert "tensorboardX" not in done.stderr


# ---------------------------------------------------------------- binarising


def test_line_counts_must_agree(tmp_path):
    put(tmp_path / "train.en", "a", "b")
    put(tmp_path / "train.de", "A")
    words = ["-s", "en", "-t", "de", "--trainpref", tmp_path / "train"]
    with pytest.raises(
        ValueError, match=r"train.de must have as many lines as .*1 inst"
    ):
        call(binarise, *words, "--destdir", tmp_path / "bin")
    put(tmp_path / "train.de", "A", "B")
    put(tmp_path / "train.r2l", "A", "B", "C")
    with pytest.raises(ValueError, match=r"train.r2l must have .* 3 instead of 2"):
        call(binarise, *words, "--destdir", tmp_path / "bin")
    assert not (tmp_path / "bin").exists()


@pytest.mark.parametrize("suffix", ["en", "de", "r2l"])
@pytest.mark.parametrize("symbol", RESERVED)
def test_a_reserved_symbol_in_the_text_is_refused(tmp_path, symbol, suffix):
    for other in ("en", "de", "r2l"):
        put(tmp_path / f"train.{other}", "a", "b")
    path = put(tmp_path / f"train.{suffix}", "a", f"b {symbol} c")
    words = ["-s", "en", "-t", "de", "--trainpref", tmp_path / "train"]
    message = rf"{path.name}, line 2, must not contain {symbol}, which is reserved"
    with pytest.raises(ValueError, match=message):
        call(binarise, *words, "--destdir", tmp_path / "bin")


def test_an_unknown_word_may_stand_in_a_text(tmp_path):
    """A teacher has written it; it is binarised as what it is."""
    for suffix in ("en", "de", "r2l"):
        put(tmp_path / f"train.{suffix}", "a <unk>", "b <unk> <pad>s")
    words = ["-s", "en", "-t", "de", "--trainpref", tmp_path / "train"]
    call(binarise, *words, "--destdir", tmp_path / "bin")
    assert "<unk>" not in (tmp_path / "bin" / "dict.de.txt").read_text()


def test_the_reserved_symbols_are_fairseqs_and_the_tags():
    from fairseq.data import Dictionary

    words = Dictionary()
    assert {*words.symbols[: words.nspecial], *TAGS} == {*RESERVED, "<unk>"}


def test_an_empty_corpus_is_refused(tmp_path):
    put(tmp_path / "train.en")
    put(tmp_path / "train.de")
    words = ["-s", "en", "-t", "de", "--trainpref", tmp_path / "train"]
    with pytest.raises(ValueError, match="must have at least one line, but is empty"):
        call(binarise, *words, "--destdir", tmp_path / "bin")


def test_an_existing_folder_is_kept(data):
    words = ["-s", "en", "-t", "de", "--trainpref", data.parent / "texts" / "train"]
    before = sorted(data.iterdir())
    with pytest.raises(FileExistsError, match=r"--destdir .* must be a new"):
        call(binarise, *words, "--destdir", data)
    assert sorted(data.iterdir()) == before


@pytest.mark.parametrize(
    "options",
    [
        ["--only-source"],
        ["--dict-only"],
        ["--workers", 0],
        ["--dataset-impl", "raw"],
        ["--dataset-impl", "fasta"],
    ],
    ids=str,
)
def test_what_a_data_folder_cannot_hold_is_refused(data, tmp_path, options):
    words = ["-s", "en", "-t", "de", "--trainpref", data.parent / "texts" / "train"]
    with pytest.raises(ValueError, match=f"{options[0]} .* is not supported"):
        call(binarise, *words, "--destdir", tmp_path / "bin", *options)
    assert not list(tmp_path.iterdir())


def test_workers_write_the_same(data, tmp_path):
    folder = data.parent / "texts"
    words = ["-s", "en", "-t", "de"]
    for split in ("train", "valid", "test"):
        words += [f"--{split}pref", folder / split]
    call(binarise, *words, "--destdir", tmp_path / "bin", "--workers", 3)
    for path in data.glob("*.bin"):
        assert path.read_bytes() == (tmp_path / "bin" / path.name).read_bytes()


@pytest.fixture
def folder(data, tmp_path):
    """A copy of the data that a test may damage."""
    return changeable(data, tmp_path / "bin")


def test_an_opposite_stream_of_another_length_is_refused(data, folder, tmp_path):
    for suffix in ("bin", "idx"):
        shutil.copy(
            data / f"valid.en-de.de.{suffix}", folder / f"train.en-de.r2l.{suffix}"
        )
    with pytest.raises(
        ValueError, match=r"train.en-de.r2l has 13 lines, but .* has 300"
    ):
        run_train(folder, tmp_path / "save", *SB, "--max-epoch", 1)


@pytest.mark.parametrize(
    "name", ["train.en-de.r2l", "train.en-de.en", "train.en-de.de"]
)
@pytest.mark.parametrize("suffix", [".bin", ".idx"])
def test_half_a_stream_is_refused(folder, tmp_path, name, suffix):
    (folder / (name + suffix)).unlink()
    with pytest.raises(ValueError, match=rf"{name} must be there as .bin and .idx"):
        run_train(folder, tmp_path / "save", *SB, "--max-epoch", 1)


@pytest.mark.parametrize("keep", [0, 20, 60, -1])
@pytest.mark.parametrize("name", ["train.en-de.r2l.idx", "train.en-de.de.bin"])
def test_a_truncated_stream_is_refused(folder, tmp_path, name, keep):
    path = folder / name
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=rf"{path.stem}.bin and .idx must be whole"):
        run_train(folder, tmp_path / "save", *SB, "--max-epoch", 1)


def test_all_parts_or_none_have_opposite_texts(folder, tmp_path):
    for path in sorted(folder.glob("train.*")):
        shutil.copy(path, folder / path.name.replace("train", "train1"))
    words = [*SB, "--upsample-primary", 1, "--max-epoch", 1]
    run_train(folder, tmp_path / "save", *words)
    for suffix in ("bin", "idx"):
        (folder / f"train.en-de.r2l.{suffix}").unlink()
    with pytest.raises(ValueError, match="only 1 of 2 are: give every part"):
        run_train(folder, tmp_path / "save", *words)


def test_opposite_texts_of_another_format_are_refused(folder, tmp_path):
    """Raw texts beside a binarised R2L stream, which was silently left out."""
    for split in ("train", "valid"):
        for language in ("en", "de"):
            put(folder / f"{split}.en-de.{language}", "w1")
    words = [*SB, "--dataset-impl", "raw", "--max-epoch", 1]
    refused = r"train.en-de.r2l must be there as its text"
    with pytest.raises(ValueError, match=refused):
        run_train(folder, tmp_path / "save", *words)
    for suffix in (".bin", ".idx"):
        (folder / f"train.en-de.r2l{suffix}").unlink()
    put(folder / "train.en-de.r2l", "w2")
    run_train(folder, tmp_path / "save", *words)


def test_a_dictionary_with_a_tag_is_refused(folder, tmp_path):
    with (folder / "dict.de.txt").open("a") as file:
        file.write("<l2r> 1\n")
    with pytest.raises(ValueError, match=r"dict.de.txt must not contain <l2r>"):
        run_train(folder, tmp_path / "save", *SB, "--max-epoch", 1)


def test_a_missing_dictionary_is_named(data, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"dict.en.txt does not exist"):
        run_train(tmp_path, tmp_path / "s", *SB, "-s", "en", "-t", "de")


# ---------------------------------------------------------------- triples


def make(tmp_path, *words, left=None, right=None):
    put(tmp_path / "g.en", "a", "b", "c")
    put(tmp_path / "g.de", "A", "B", "C")
    put(tmp_path / "l", *(left or ["0\t-1.0\tA", "1\t-1.0\tBl", "2\t-1.0\tCl"]))
    put(tmp_path / "r", *(right or ["0\t-1.0\tAr", "1\t-1.0\tBr", "2\t-1.0\tCr"]))
    command = ["--source", tmp_path / "g.en", "--target", tmp_path / "g.de"]
    command += ["--pseudo-l2r", tmp_path / "l", "--pseudo-r2l", tmp_path / "r"]
    call(make_triples, *command, "--output", tmp_path / "out" / "t", *words)
    files = [texts.read_lines(tmp_path / "out" / f"t.{s}") for s in ("en", "de", "r2l")]
    return list(zip(*files))


def test_two_triples_are_the_papers(tmp_path, capsys):
    assert make(tmp_path) == [
        ("a", "A", "A"),
        ("a", "A", "Ar"),
        ("b", "Bl", "B"),
        ("b", "B", "Br"),
        ("c", "Cl", "C"),
        ("c", "C", "Cr"),
    ]
    report = capsys.readouterr().out
    assert "1 of 6 (16.7 %) with identical texts, kept" in report
    assert report.count("source") == 5


def test_one_triple_is_of_gold_and_the_r2l_teacher(tmp_path):
    make(tmp_path)  # the files
    words = ["--source", tmp_path / "g.en", "--target", tmp_path / "g.de"]
    words += ["--output", tmp_path / "one", "--pseudo-r2l", tmp_path / "r"]
    call(make_triples, *words, "--triples", "one")
    found = [
        (tmp_path / f"one.{end}").read_text().split() for end in ("en", "de", "r2l")
    ]
    assert found == [["a", "b", "c"], ["A", "B", "C"], ["Ar", "Br", "Cr"]]
    with pytest.raises(ValueError, match="--pseudo-l2r must be given, but for --tri"):
        call(make_triples, *words, "--triples", "two")
    with pytest.raises(
        ValueError, match="--pseudo-l2r is not for --triples one, which"
    ):
        pseudo = ["--pseudo-l2r", tmp_path / "l"]
        call(make_triples, *words, *pseudo, "--triples", "one")


@pytest.mark.parametrize("symbol", RESERVED)
def test_a_reserved_symbol_gives_no_triple(tmp_path, symbol):
    with pytest.raises(ValueError, match=rf"l, line 2, must not contain {symbol}"):
        make(tmp_path, left=["0\t-1.0\tA", f"1\t-1.0\tB {symbol}"])
    found = make(tmp_path, left=["0\t-1.0\tA", "1\t-1.0\t<unk>"])
    assert ("b", "<unk>", "B") in found
    put(tmp_path / "x.de", "A", "B", f"{symbol} C")
    pair = ["--source", tmp_path / "g.en", "--target", tmp_path / "x.de"]
    pseudo = ["--pseudo-l2r", tmp_path / "l", "--pseudo-r2l", tmp_path / "r"]
    with pytest.raises(ValueError, match=rf"x.de, line 3, must not contain {symbol}"):
        call(make_triples, *pair, *pseudo, "--output", tmp_path / "t")


def test_triples_are_made_without_torch(tmp_path):
    make(tmp_path)
    words = ["--source", tmp_path / "g.en", "--target", tmp_path / "g.de"]
    words += ["--pseudo-l2r", tmp_path / "l", "--pseudo-r2l", tmp_path / "r"]
    words += ["--output", tmp_path / "again"]
    found = imported("-m", "sbnmt_plugin", "triples", *map(str, words))
    assert "sbnmt_plugin.symbols" in found
    assert not {"torch", "fairseq"} & found
    assert (tmp_path / "again.r2l").exists()


def test_six_triples_are_all_ordered_pairs(tmp_path):
    found = make(tmp_path, "--triples", "six")
    assert len(found) == 18
    assert {t[1:] for t in found if t[0] == "b"} == {
        (x, y) for x in ("B", "Bl", "Br") for y in ("B", "Bl", "Br") if x != y
    }


def test_three_triples_are_two_and_gold_text_twice(tmp_path):
    two = make(tmp_path / "two")
    three = make(tmp_path / "three", "--triples", "three")
    gold = [(text, text.upper(), text.upper()) for text in "abc"]
    assert sorted(three) == sorted([*two, *gold])
    with pytest.raises(ValueError, match="gold text twice"):
        make(tmp_path, "--triples", "three", "--drop-identical")


def test_identical_pairs_can_be_dropped(tmp_path, capsys):
    found = make(tmp_path, "--drop-identical")
    assert len(found) == 5
    assert all(l2r != r2l for _, l2r, r2l in found)
    assert "1 of 6 (16.7 %) with identical texts, left out" in capsys.readouterr().out


def test_untranslated_sentences_give_no_triple(tmp_path, capsys):
    found = make(tmp_path, left=["0\t-1.0\tA", "2\t-1.0\tCl"])
    assert {t[0] for t in found} == {"a", "c"}
    assert "3 sentences, 1 not translated" in capsys.readouterr().out


def test_shuffling_keeps_the_triples_together(tmp_path):
    plain = make(tmp_path)
    shuffled = make(tmp_path, "--shuffle", 3)
    assert shuffled != plain
    assert sorted(shuffled) == sorted(plain)


@pytest.mark.parametrize(
    ("left", "message"),
    [
        (["7\t-1.0\tA"], "id 7 is ≥ 3 lines"),
        (["0\t-1.0\tA", "0\t-1.0\tA"], "id 0 appears twice"),
        (["A B C"], "line 1, must be id<TAB>score<TAB>text"),
    ],
)
def test_foreign_pseudo_targets_are_refused(tmp_path, left, message):
    with pytest.raises(ValueError, match=message):
        make(tmp_path, left=left)
    assert not (tmp_path / "out").exists()


def test_a_killed_translation_continues(data, teacher, tmp_path, monkeypatch):
    source = data.parent / "texts" / "test.en"
    whole, broken = tmp_path / "whole.tsv", tmp_path / "broken.tsv"
    size = ["--shard-size", 5]
    call(translate, *translate_command(data, teacher, source, whole, *size))
    rows = [line.split("\t") for line in texts.read_lines(whole)]
    assert [int(row[0]) for row in rows] == list(range(21))

    write, count = jobs.write_shard, []

    def dies(*args):
        count.append(1)
        if len(count) == 3:
            raise KeyboardInterrupt
        write(*args)

    monkeypatch.setattr(jobs, "write_shard", dies)
    with pytest.raises(KeyboardInterrupt):
        call(translate, *translate_command(data, teacher, source, broken, *size))
    assert not broken.exists()
    assert len(list(Path(f"{broken}.shards").glob("*.jsonl"))) == 2
    call(translate, *translate_command(data, teacher, source, broken, *size))
    assert len(count) == 6  # two done, one killed, three after it
    assert broken.read_text() == whole.read_text()


def test_workers_divide_the_shards(data, teacher, tmp_path):
    source = data.parent / "texts" / "test.en"
    whole, parts = tmp_path / "whole.tsv", tmp_path / "parts.tsv"
    size = ["--shard-size", 5]
    call(translate, *translate_command(data, teacher, source, whole, *size))
    for worker in (1, 0):
        words = [*size, "--of", 2, "--worker", worker]
        call(translate, *translate_command(data, teacher, source, parts, *words))
        assert parts.exists() == (worker == 0)
    assert parts.read_text() == whole.read_text()


def test_another_job_of_the_same_name_is_refused(data, teacher, tmp_path, capsys):
    source = shutil.copy(data.parent / "texts" / "test.en", tmp_path / "in")
    model = shutil.copy2(teacher, tmp_path / "model.pt")
    output = tmp_path / "out.tsv"

    def refused(reason):
        return pytest.raises(ValueError, match=f"begun with {reason}: remove")

    def translated(*words, size=15):
        words = ["--shard-size", size, *words]
        call(translate, *translate_command(data, model, source, output, *words))

    translated("--of", 2)
    with refused("other options"):  # half done
        translated("--of", 2, size=10)
    translated()
    whole = output.read_bytes()
    capsys.readouterr()
    translated()
    assert "already written: nothing to do" in capsys.readouterr().err
    with refused("other options"):
        translated("--lenpen", 0.3)
    os.utime(model, (1, 1))
    with refused(f"another {model}"):
        translated()
    shutil.copystat(teacher, model)
    put(source, "w1")
    with refused("another input"):
        translated()
    job = Path(f"{output}.shards") / "job.json"
    job.write_text("{")
    with pytest.raises(ValueError, match=r"job.json is damaged: remove"):
        translated()
    job.unlink()
    with pytest.raises(ValueError, match=r"job.json, which says from what, is miss"):
        translated()
    assert output.read_bytes() == whole


@pytest.mark.parametrize(
    "words", [["--path={}"], ["--path", "{}:{}"], ["--path={}:{}"]], ids=str
)
def test_a_retrained_model_is_seen_however_it_is_given(data, teacher, tmp_path, words):
    source = data.parent / "texts" / "test.en"
    model = shutil.copy(teacher, tmp_path / "model.pt")
    named = [word.format(teacher, model) for word in words]
    if len(words) == 1 and ":" not in words[0]:
        named = [words[0].format(model)]
    command = [data, *named, "--sb-direction", "r2l", "--cpu", "--beam", 2]
    command += ["--input", source, "--output", tmp_path / "out.tsv"]
    call(translate, *command)
    call(translate, *command)
    os.utime(model, (1, 1))
    with pytest.raises(ValueError, match=f"begun with another {model}: remove"):
        call(translate, *command)


def test_the_checkpoints_that_a_command_names_are_found():
    words = ["data", "--path", "a.pt:b", "--x=c.pt", "--path=d=e:f.pt", "g.pt", "h"]
    words += ["--enat-table", "table", "--nat-teacher=i", "--input", "j"]
    found = ["a.pt", "b", "c.pt", "d=e", "f.pt", "g.pt", "table", "i"]
    assert origin.checkpoints_in(words) == found


def test_a_job_of_0_1_0_continues_or_says_why_not(tmp_path):
    """It noted when --path MODEL was written, and of --path=MODEL nothing."""
    model = put(tmp_path / "m.pt", "weights")
    now = jobs.describe_job(["a"], ["--path", str(model)])
    old = {**now, "models": {str(model): model.stat().st_mtime_ns}}
    assert origin.differences(old, now) == []
    assert origin.differences({**now, "models": {}}, now) == [
        f"a {model} of which nothing was noted"
    ]
    put(model, "other weights")
    newer = jobs.describe_job(["a"], ["--path", str(model)])
    for known in (old, now):
        assert origin.differences(known, newer) == [f"another {model}"]
    model.unlink()
    gone = jobs.describe_job(["a"], ["--path", str(model)])
    assert origin.differences(now, gone) == [f"{model}, which is missing"]


def test_a_model_of_the_same_time_and_another_size_is_another(tmp_path):
    """As a copy that keeps times makes one."""
    model = put(tmp_path / "m.pt", "weights")
    now = origin.stamps_of(["--path", str(model)])
    time = model.stat().st_mtime_ns
    put(model, "more weights")
    os.utime(model, ns=(time, time))
    newer = origin.stamps_of(["--path", str(model)])
    assert origin.differences({"models": now}, {"models": newer})


@pytest.mark.parametrize("content", ["", "{", "3", '{"id": 1}', "\xff"])
def test_a_damaged_shard_is_named(data, teacher, tmp_path, content):
    source = data.parent / "texts" / "test.en"
    output = tmp_path / "out.tsv"
    command = translate_command(data, teacher, source, output)
    call(translate, *command)
    output.unlink()
    shard = Path(f"{output}.shards") / "00000.jsonl"
    shard.write_bytes(content.encode("latin-1"))
    message = "00000.jsonl must hold a JSON rec" if content else "must hold the ids 0"
    with pytest.raises(ValueError, match=message):
        call(translate, *command)
    assert not output.exists()


def test_an_output_that_is_a_folder_is_refused(data, teacher, tmp_path):
    source = data.parent / "texts" / "test.en"
    with pytest.raises(ValueError, match=r"--output .* must be a file, but is"):
        call(translate, *translate_command(data, teacher, source, tmp_path))


@pytest.mark.parametrize(
    "options",
    [
        ["--prefix-size", 1],
        ["--nbest", 2],
        ["--print-alignment"],
        ["--sb-records", "r"],
        ["--distributed-world-size", 2],
    ],
    ids=str,
)
def test_options_that_mean_nothing_here_are_refused(data, teacher, tmp_path, options):
    source = data.parent / "texts" / "test.en"
    words = translate_command(data, teacher, source, tmp_path / "out", *options)
    with pytest.raises(ValueError, match=f"{options[0]} is not supported here"):
        call(translate, *words)


def test_settings_that_suit_no_sentence_are_an_error(data, teacher, tmp_path):
    source = data.parent / "texts" / "test.en"
    words = translate_command(data, teacher, source, tmp_path / "out", "--min-len", 300)
    with pytest.raises(ValueError, match="--min-len must be ≤"):
        call(translate, *words)
    put(tmp_path / "tag.en", "w1", "w2 <l2r>")
    words = translate_command(data, teacher, tmp_path / "tag.en", tmp_path / "out")
    with pytest.raises(ValueError, match=r"tag.en, line 2, must not contain <l2r>"):
        call(translate, *words)


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        ("--max-source-positions", ""),
        ("--max-tokens", ", as many as --max-tokens says"),
    ],
)
def test_overlong_and_failing_sources_are_listed(
    data, teacher, tmp_path, monkeypatch, flag, named
):
    source = put(tmp_path / "in.en", "w1 w2", "w3 " * 30, "", "w4 w5 w6")
    output = tmp_path / "out.tsv"
    original = translator.Translator._generate

    def fails(self, batch):
        if batch["net_input"]["src_tokens"].ne(1).sum(1).eq(4).any():
            return [(int(batch["id"]), "out of range")]
        return original(self, batch)

    monkeypatch.setattr(translator.Translator, "_generate", fails)
    words = [flag, 20, "--batch-size", 1]
    call(translate, *translate_command(data, teacher, source, output, *words))
    ids = [line.split("\t")[0] for line in texts.read_lines(output)]
    assert ids == ["0", "2"]
    skipped = texts.read_lines(f"{output}.skipped")
    reason = f"31 tokens, at most 20 are allowed{named}"
    assert skipped == [f"1\t{reason}", "3\tout of range"]


def test_a_batch_that_fails_is_translated_one_by_one(data, teacher):
    command = translate_command(data, teacher, "", "")[:-4]
    making = translator.Translator([str(word) for word in command])
    search = making.generator.generate

    def fragile(models, sample, **rest):
        if len(sample["net_input"]["src_tokens"]) > 1:
            raise FloatingPointError("no number")
        return search(models, sample, **rest)

    expected, _ = making.translate(["w1 w2", "w3", "w4 w1"])
    making.generator.generate = fragile
    found, skipped = making.translate(["w1 w2", "w3", "w4 w1"])
    assert not skipped
    assert {i: making.text(h) for i, h in found.items()} == {
        i: making.text(h) for i, h in expected.items()
    }


# ---------------------------------------------------------------- the rest


def test_averaging_is_the_mean(data, tmp_path):
    run_train(data, tmp_path, *SB, "--max-epoch", 3)
    output = tmp_path / "mean.pt"
    call(average_checkpoints, "--output", output, "--last", 2, tmp_path)
    mean = load(output)["model"]
    parts = [load(tmp_path / f"checkpoint{epoch}.pt")["model"] for epoch in (2, 3)]
    for name, value in mean.items():
        expected = (parts[0][name].double() + parts[1][name].double()) / 2
        torch.testing.assert_close(value.double(), expected, rtol=1e-6, atol=1e-8)
    assert "H-0" in run_generate(data, output)
    with pytest.raises(ValueError, match="--last 9 needs as many checkpoints"):
        call(average_checkpoints, "--output", output, "--last", 9, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"none.pt does not exist"):
        call(average_checkpoints, "--output", output, tmp_path / "none.pt")
    with pytest.raises(ValueError, match=r"is a folder: name checkpoints, or"):
        call(average_checkpoints, "--output", output, tmp_path)
    torch.save({"a": 1}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match=r"other.pt .* must be a checkpoint of fair"):
        call(average_checkpoints, "--output", output, tmp_path / "other.pt")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(IsADirectoryError):
        last = tmp_path / "checkpoint_last.pt"
        call(average_checkpoints, "--output", tmp_path, last)
    assert sorted(tmp_path.iterdir()) == before


EPOCHS = "checkpoint{0}.pt"  # fairseq's names: after an epoch,
UPDATES = "checkpoint_{0}_{0}000.pt"  # and with --save-interval-updates


def save_checkpoints(folder, names, numbers):
    """Checkpoints of one parameter each, which is their number."""
    folder.mkdir(exist_ok=True)
    for number in numbers:
        model = {"w": torch.tensor([float(number)])}
        torch.save({"model": model}, folder / names.format(number))
    for name in ("best", "last"):
        torch.save(
            {"model": {"w": torch.tensor([0.0])}}, folder / f"checkpoint_{name}.pt"
        )


def averaged(folder, *words):
    call(average_checkpoints, "--output", folder / "mean", *words, folder)
    return float(load(folder / "mean")["model"]["w"])


@pytest.mark.parametrize("names", [EPOCHS, UPDATES])
def test_the_last_checkpoints_are_found_by_either_name(tmp_path, names):
    save_checkpoints(tmp_path, names, range(8, 12))  # as text, 9 comes after 10
    assert averaged(tmp_path, "--last", 2) == 10.5
    assert averaged(tmp_path, "--last", 4) == 9.5
    with pytest.raises(ValueError, match=r"--last 5 needs as many .* has 4: keep more"):
        averaged(tmp_path, "--last", 5)
    assert averaged(tmp_path, "--last", 5, "--or-fewer") == 9.5


def test_a_mean_that_is_there_is_left_alone(tmp_path, capsys):
    """A time that changes would tell the next step that it is another model."""
    save_checkpoints(tmp_path, EPOCHS, range(8, 12))
    averaged(tmp_path, "--last", 2)
    os.utime(tmp_path / "mean", (1, 1))
    averaged(tmp_path, "--last", 2)
    assert (tmp_path / "mean").stat().st_mtime == 1
    assert "there already" in capsys.readouterr().out
    assert averaged(tmp_path, "--last", 4) == 9.5
    assert (tmp_path / "mean").stat().st_mtime > 1
    assert "there already" not in capsys.readouterr().out


def test_a_folder_without_checkpoints_has_nothing_to_average(tmp_path):
    save_checkpoints(tmp_path, EPOCHS, [])
    for words in (["--last", 1], ["--last", 1, "--or-fewer"]):
        with pytest.raises(ValueError, match=r"--last 1 needs as many .* has 0"):
            averaged(tmp_path, *words)
    with pytest.raises(ValueError, match="--or-fewer goes with --last"):
        averaged(tmp_path, "--or-fewer")


def test_one_kind_of_checkpoint_is_averaged_where_there_are_both(tmp_path):
    """Epochs, unless only of the other kind there are enough."""
    save_checkpoints(tmp_path, EPOCHS, [1, 2])
    save_checkpoints(tmp_path, UPDATES, [10, 20, 30])
    assert averaged(tmp_path, "--last", 2) == 1.5
    assert averaged(tmp_path, "--last", 3) == 20
    assert averaged(tmp_path, "--last", 9, "--or-fewer") == 20


@pytest.mark.parametrize("names", [EPOCHS, UPDATES])
def test_a_recipe_averages_as_many_as_it_says(tmp_path, monkeypatch, names):
    """The recipes of WMT save after updates: "the last 20", not one."""
    monkeypatch.setattr(runner.Runner, "run", in_process.run)
    save_checkpoints(tmp_path / "sb", names, range(1, 31))
    settings = {"environment": {}, "source": "en", "target": "de"}
    for count, mean in (20, 20.5), (40, 15.5):
        recipe = Training(
            runner.Runner(tmp_path, {}), tmp_path, {**settings, "average": count}
        )
        recipe.average("sb")
        assert float(load(tmp_path / "sb" / "model.pt")["model"]["w"]) == mean


def test_bpe_is_undone(tmp_path):
    source = put(tmp_path / "text", "lower lowest newer", "", "new low")
    call(bpe, "learn", "--merges", 8, "--codes", tmp_path / "codes", source)
    words = ["apply", "--codes", tmp_path / "codes", source, tmp_path / "split"]
    call(bpe, *words)
    split = texts.read_lines(tmp_path / "split")
    assert "@@" in split[0]
    assert [texts.remove_bpe(line) for line in split] == texts.read_lines(source)
    with mock.patch.object(bpe, "fast_bpe", lambda codes: None):
        call(bpe, *words[:-1], tmp_path / "slow")
    assert texts.read_lines(tmp_path / "slow") == split
    call(bpe, "vocabulary", tmp_path / "split", tmp_path / "vocabulary")
    call(bpe, *words[:-2], "--vocabulary", tmp_path / "vocabulary", *words[-2:-1], "x")
    Path("x").unlink()


def test_tokenising_is_undone():
    lines = ["Ein Mann, der läuft.", "“Nein!” ruft sie."]
    split = tokens.tokenise(lines, "de")
    assert split[0] == "Ein Mann , der läuft ."
    assert tokens.detokenise(split, "de")[0] == lines[0]
    assert tokens.tokenise(lines, "de", lowercase=True)[0].startswith("ein mann")


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
    with pytest.raises(ValueError, match="go together"):
        call(score, *words, *tok[:2])
    with pytest.raises(ValueError, match="--phonemes excludes"):
        call(score, *words, "--phonemes", "--tokenize", "zh")


def test_a_language_without_blanks_is_scored_by_characters(tmp_path, capsys):
    hypothesis = put(tmp_path / "h", "我喜欢读书。")
    reference = put(tmp_path / "r", "我喜欢看书。")
    found = []
    for asked in ([], ["--tokenize", "zh"]):
        words = ["--hypothesis", hypothesis, "--reference", reference, *asked]
        call(score, *words, "--json", tmp_path / "s.json")
        found.append(json.loads((tmp_path / "s.json").read_text())["BLEU"])
    assert [x["signature"].split("|")[3] for x in found] == ["tok:13a", "tok:zh"]
    assert found[0]["score"] < found[1]["score"]


def test_a_tokeniser_without_its_package_is_one_line(tmp_path, monkeypatch):
    def lacking(**_):
        raise RuntimeError("\nPlease install them.\n\n  pip install sacrebleu[ja]\n")

    monkeypatch.setattr("sbnmt_plugin.tools.scoring.BLEU", lacking)
    text = put(tmp_path / "h", "a")
    words = ["--hypothesis", text, "--reference", text, "--tokenize", "ja-mecab"]
    with pytest.raises(ValueError, match=r"ja-mecab: Please .* pip install sacrebleu"):
        call(score, *words)


SCRIPTS_OF_EXAMPLES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*/*.py")
)


@pytest.mark.parametrize("script", SCRIPTS_OF_EXAMPLES)
def test_scripts_of_examples_show_their_help(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert not stopped.value.code
    assert "usage: " in capsys.readouterr().out


def test_the_toy_language_is_what_it_says():
    toy = in_process.load(ROOT / "examples" / "toy" / "prepare.py")
    classes = [1, 2, 0, 1, 2]
    assert toy.endings(classes, "left") == [1, 0, 0, 1, 0]
    assert toy.endings(classes, "right") == toy.endings(classes[::-1], "left")[::-1]
    assert toy.endings(classes, "both") == [1, 0, 0, 0, 2]


def toys_verdict(work, monkeypatch, capsys, rescored, bleu, wins, alone, shuffled):
    """Exit status and lines of the toy's check.py, of a run with these results."""
    best = {"tokenised BLEU": {"score": rescored}}
    put(work / "results" / "sb-shift+rescored.json", json.dumps(best))
    sb = {"tokenised BLEU": {"score": bleu}, "L2R wins": {"score": wins}}
    scores = {"λ = 0": alone, "partners shuffled": shuffled}
    interaction = {name: {"score": score} for name, score in scores.items()}
    put(work / "results" / "sb-shift.json", json.dumps(sb))
    put(work / "results" / "interaction" / "sb-shift.json", json.dumps(interaction))
    monkeypatch.setattr(sys, "argv", ["check.py", "--work", str(work)])
    with pytest.raises(SystemExit) as stopped:
        in_process.load(ROOT / "examples" / "toy" / "check.py").main()
    return int(stopped.value.code), capsys.readouterr().out.split("\n")[1:-1]


GOOD_TOY = {
    "rescored": 93.0,
    "bleu": 90.0,
    "wins": 50.0,
    "alone": 89.0,
    "shuffled": 80.0,
}


def test_the_toy_passes_its_check(tmp_path, monkeypatch, capsys):
    status, lines = toys_verdict(tmp_path, monkeypatch, capsys, **GOOD_TOY)
    assert status == 0
    assert [line[:4] for line in lines] == ["ok  "] * 4


@pytest.mark.parametrize(
    ("name", "value"),
    [("rescored", 92.9), ("wins", 0.0), ("wins", 100.0), ("alone", 89.5),
     ("shuffled", 89.5)],
)  # fmt: skip
def test_a_toy_that_misses_a_mark_fails(name, value, tmp_path, monkeypatch, capsys):
    found = GOOD_TOY | {name: value}
    status, lines = toys_verdict(tmp_path, monkeypatch, capsys, **found)
    assert status == 1
    assert any(line.startswith("FAIL") and f"{value:.1f}" in line for line in lines)


def test_multi30k_is_prepared_from_raw_files(tmp_path):
    for name in ("train", "valid", "test2016"):
        put(tmp_path / f"{name}.en", "A man, running.", "Two dogs!")
        put(tmp_path / f"{name}.de", "Ein Mann, der läuft.", "Zwei Hunde!")
    script = ROOT / "examples" / "multi30k" / "prepare.py"
    words = ["--data", tmp_path, "--output", tmp_path / "text", "--lowercase"]
    subprocess.run([sys.executable, script, *words], check=True, capture_output=True)
    assert texts.read_lines(tmp_path / "text" / "test.de") == [
        "ein mann , der läuft .",
        "zwei hunde !",
    ]
    assert texts.read_lines(tmp_path / "text" / "test.ref.de")[1] == "zwei hunde!"
    english = texts.read_lines(tmp_path / "test2016.en")  # for rows that go back
    lowered = [line.lower() for line in english]
    assert texts.read_lines(tmp_path / "text" / "test.ref.en") == lowered


SIZES = {"train": 2, "valid": 3, "test2016": 4, "test2017": 1, "coco2017": 5,
         "test2018": 6}  # fmt: skip


def prepared_multi30k(tmp_path, *sets, without=None):
    """From raw files of these test sets, a line of which says whose it is."""
    raw = tmp_path / "raw"
    for name in ("train", "valid", *sets):
        for language in ("en", "de"):
            lines = [f"{name} {language} {n}." for n in range(SIZES[name])]
            put(raw / f"{name}.{language}", *lines)
    put(raw / "test2017.fr", "Deux chiens.")  # as in the repository
    if without:
        (raw / without).unlink()
    script = in_process.load(ROOT / "examples" / "multi30k" / "prepare.py")
    words = ["prepare.py", "--data", str(raw), "--output", str(tmp_path / "text")]
    with mock.patch.object(sys, "argv", words):
        script.main()
    return tmp_path / "text"


@pytest.mark.parametrize(
    "sets", [["test2016"], ["test2016", "coco2017", "test2018"], [*SIZES][2:]]
)
def test_further_test_sets_of_multi30k_follow_the_first(sets, tmp_path, capsys):
    text = prepared_multi30k(tmp_path, *sets)
    listed = [line.split("\t") for line in texts.read_lines(text / "test.sets")]
    assert listed == [[name, str(SIZES[name])] for name in sets]
    wanted = [f"{name} {n}" for name in sets for n in range(SIZES[name])]
    for language in ("en", "de"):
        raw = texts.read_lines(text / f"test.ref.{language}")
        assert raw == [line.replace(" ", f" {language} ") + "." for line in wanted]
        tokens = texts.read_lines(text / f"test.{language}")
        assert [line.replace(" .", ".") for line in tokens] == raw
    assert not (text / "valid.sets").exists()
    assert f"{sets[-1]} ({SIZES[sets[-1]]} sentences)" in capsys.readouterr().err


@pytest.mark.parametrize(("missing", "there"), [("de", "en"), ("en", "de")])
def test_half_a_further_test_set_is_an_error(missing, there, tmp_path):
    said = rf"coco2017\.{missing} must be there as .*coco2017\.{there} is: add it"
    with pytest.raises(FileNotFoundError, match=said):
        prepared_multi30k(
            tmp_path, "test2016", "coco2017", without=f"coco2017.{missing}"
        )
    assert not (tmp_path / "text").exists()


def test_writing_texts_is_seeded(tmp_path):
    first = write_texts(tmp_path / "a", {"train": 5})
    second = write_texts(tmp_path / "b", {"train": 5})
    assert (first / "train.de").read_text() == (second / "train.de").read_text()
    assert PLUGIN[0] == "--user-dir"


def test_a_reader_that_has_enough_is_no_error():
    words = [ROOT / "scripts" / "table.py", ROOT / "examples" / "toy" / "results.json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen([sys.executable, *words], **pipes)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
