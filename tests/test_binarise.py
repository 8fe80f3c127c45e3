"""sbnmt binarise: from texts to a data folder, and the texts that it refuses."""

import pytest
from steps import call, put

from sbnmt_plugin.symbols import RESERVED, TAGS
from sbnmt_plugin.tools.commands import binarise

TEXT = ["-s", "en", "-t", "de", "--trainpref"]


def test_line_counts_must_agree(tmp_path):
    put(tmp_path / "train.en", "a", "b")
    put(tmp_path / "train.de", "A")
    with pytest.raises(ValueError, match=r"train.de must .* as .*train.en, .* only 1"):
        call(binarise, *TEXT, tmp_path / "train", "--destdir", tmp_path / "bin")
    put(tmp_path / "train.de", "A", "B")
    put(tmp_path / "train.r2l", "A", "B", "C")
    with pytest.raises(ValueError, match=r"train.en must .* as .*train.r2l, .* only 2"):
        call(binarise, *TEXT, tmp_path / "train", "--destdir", tmp_path / "bin")
    assert not (tmp_path / "bin").exists()


@pytest.mark.parametrize("suffix", ["en", "de", "r2l"])
@pytest.mark.parametrize("symbol", RESERVED)
def test_a_reserved_symbol_in_the_text_is_refused(tmp_path, symbol, suffix):
    for other in ("en", "de", "r2l"):
        put(tmp_path / f"train.{other}", "a", "b")
    path = put(tmp_path / f"train.{suffix}", "a", f"b {symbol} c")
    message = rf"{path.name}, line 2, must not contain {symbol}, which is reserved"
    with pytest.raises(ValueError, match=message):
        call(binarise, *TEXT, tmp_path / "train", "--destdir", tmp_path / "bin")


def test_an_unknown_word_may_stand_in_a_text(tmp_path):
    """A teacher has written it; it is binarised as what it is."""
    for suffix in ("en", "de", "r2l"):
        put(tmp_path / f"train.{suffix}", "a <unk>", "b <unk> <pad>s")
    call(binarise, *TEXT, tmp_path / "train", "--destdir", tmp_path / "bin")
    assert "<unk>" not in (tmp_path / "bin" / "dict.de.txt").read_text()


def test_the_reserved_symbols_are_fairseqs_and_the_tags():
    from fairseq.data import Dictionary

    words = Dictionary()
    assert {*words.symbols[: words.nspecial], *TAGS} == {*RESERVED, "<unk>"}


def test_one_language_is_no_pair(tmp_path):
    put(tmp_path / "train.en", "a")
    words = ["-s", "en", "-t", "en", "--trainpref", tmp_path / "train"]
    with pytest.raises(ValueError, match=r"--target-lang must be two .* are both en"):
        call(binarise, *words, "--destdir", tmp_path / "bin")


def test_a_file_is_no_prefix(tmp_path):
    for ending in "en", "de":
        put(tmp_path / f"train.{ending}", "a")
    words = [*TEXT, tmp_path / "train.de", "--destdir", tmp_path / "bin"]
    with pytest.raises(ValueError, match=r"--trainpref .*/train.de must be .* out .de"):
        call(binarise, *words)


def test_an_empty_corpus_is_refused(tmp_path):
    put(tmp_path / "train.en")
    put(tmp_path / "train.de")
    with pytest.raises(ValueError, match="must have at least one line, but is empty"):
        call(binarise, *TEXT, tmp_path / "train", "--destdir", tmp_path / "bin")


def test_an_existing_folder_is_kept(data):
    texts = data.parent / "texts" / "train"
    before = sorted(data.iterdir())
    with pytest.raises(FileExistsError, match=r"--destdir .* must be a new"):
        call(binarise, *TEXT, texts, "--destdir", data)
    assert sorted(data.iterdir()) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only-source"], "--only-source is not supported by sbnmt binarise"),
        (["--dict-only"], "--dict-only is not supported by sbnmt binarise"),
        (["--bpe", "characters"], "--bpe is not supported by .*: cut the texts into"),
        (["--tokenizer", "moses"], "--tokenizer is not supported by .*: tokenise the"),
        (["--fp16"], "--fp16 is not supported by sbnmt binarise: nothing acts on it"),
        (["--workers", 0], "--workers must be ≥ 1"),
        (["--dataset-impl", "raw"], "--dataset-impl is not supported by sbnmt bin"),
    ],
    ids=str,
)
def test_what_a_data_folder_cannot_hold_is_refused(data, tmp_path, options, message):
    texts = data.parent / "texts" / "train"
    with pytest.raises(ValueError, match=message):
        call(binarise, *TEXT, texts, "--destdir", tmp_path / "bin", *options)
    assert not list(tmp_path.iterdir())


def test_an_empty_prefix_is_not_left_out(data, tmp_path):
    words = [*TEXT, data.parent / "texts" / "train", "--validpref", ""]
    with pytest.raises(FileNotFoundError, match=r"^\.en does not exist"):
        call(binarise, *words, "--destdir", tmp_path / "bin")


def test_workers_write_the_same(data, tmp_path):
    folder = data.parent / "texts"
    words = ["-s", "en", "-t", "de"]
    for split in ("train", "valid", "test"):
        words += [f"--{split}pref", folder / split]
    call(binarise, *words, "--destdir", tmp_path / "bin", "--workers", 3)
    for path in data.glob("*.bin"):
        assert path.read_bytes() == (tmp_path / "bin" / path.name).read_bytes()


@pytest.mark.parametrize("flag", ["--srcdict", "--tgtdict"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\ufeffa 2\n", "line 1, must not begin with a byte order mark"),
        ("a 2\nb\n", "line 2, must be a word and its count, .* but is 'b': give a"),
        ("a 2\nb\t-3.1\n", "line 2, must be a word and its count"),  # SentencePiece's
        ("a 2\na 1\n", "line 2, must not contain a, as an earlier line does"),
        ("a 2\n<s> 0 #fairseq:overwrite\n", "line 2, must not contain <s>, which is"),
        ("<r2l> 1\n", "line 1, must not contain <r2l>, which is reserved"),
        ("#version: 0.2\na b</w>\n", "line 1, must be a word and its count"),
        ("", "must have at least one line, but is empty"),
    ],
)
def test_a_given_dictionary_that_is_none_is_refused(tmp_path, flag, content, message):
    for suffix in ("en", "de"):
        put(tmp_path / f"train.{suffix}", "a")
    known = tmp_path / "known"
    known.write_text(content, encoding="utf-8")
    words = [*TEXT, tmp_path / "train", "--destdir", tmp_path / "bin", flag, known]
    with pytest.raises(ValueError, match=f"known,? {message}"):
        call(binarise, *words)
    assert not (tmp_path / "bin").exists()
