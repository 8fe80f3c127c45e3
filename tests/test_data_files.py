"""Data folders that training refuses: streams and dictionaries that do not fit."""

import shutil

import pytest
from commands import SB, binarise, changeable, run_train, write_texts
from steps import call, put

from sbnmt_plugin.tools.commands import binarise as steps


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


def test_a_second_part_is_refused(folder, tmp_path):
    for path in sorted(folder.glob("train.*.en.*")):
        shutil.copy(path, folder / path.name.replace("train", "train1"))
    with pytest.raises(ValueError, match=r"train must be in one part, but there is"):
        run_train(folder, tmp_path / "save", *SB, "--max-epoch", 1)


def test_a_second_validation_set_is_no_second_part(folder, tmp_path):
    """Of fairseq-preprocess --validpref a,b, each of which is read by its own name."""
    for path in sorted(folder.glob("valid.*")):
        shutil.copy(path, folder / path.name.replace("valid", "valid1"))
    words = [*SB, "--max-update", 1, "--valid-subset", "valid,valid1"]
    words.append("--ignore-unused-valid-subsets")  # which fairseq asks for, wrongly
    assert run_train(folder, tmp_path / "save", *words).exists()


def test_a_dictionary_with_a_tag_is_refused(folder, tmp_path):
    with (folder / "dict.de.txt").open("a") as file:
        file.write("<l2r> 1\n")
    with pytest.raises(
        ValueError, match=r"dict.de.txt, line \d+, must not contain <l2r>"
    ):
        run_train(folder, tmp_path / "save", *SB, "--max-epoch", 1)


def test_a_missing_dictionary_is_named(data, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"dict.en.txt does not exist"):
        run_train(tmp_path, tmp_path / "s", *SB, "-s", "en", "-t", "de")


def test_a_folder_of_texts_is_no_data_folder(data, tmp_path):
    texts = data.parent / "texts"
    for folder in texts, tmp_path / "gone":
        with pytest.raises(ValueError, match=rf"^{folder} must be a folder that sbnmt"):
            run_train(folder, tmp_path / "s", *SB)


def test_a_set_that_is_not_there_is_named(data, tmp_path):
    message = r"must have the set nope \(.*\), but has test, train, valid: binarise"
    with pytest.raises(FileNotFoundError, match=message):
        run_train(data, tmp_path / "s", *SB, "--valid-subset", "nope")


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Texts of a few sentences."""
    sizes = {"train": 12, "valid": 3, "test": 2}
    return write_texts(tmp_path_factory.mktemp("few"), sizes, opposite=False)


@pytest.mark.parametrize("kind", ["lazy", "cached"])
def test_fairseqs_older_formats_are_refused(few, tmp_path, kind, monkeypatch):
    monkeypatch.setattr(steps, "refuse_typed", lambda *_: None)
    folder = binarise(few, tmp_path / "bin", "--dataset-impl", kind)
    with pytest.raises(ValueError, match="must be in format mmap, but is in cached: b"):
        run_train(folder, tmp_path / "save", *SB, "--max-update", 1)


def test_texts_beside_a_stream_are_refused(folder, tmp_path):
    """fairseq would read them instead."""
    put(folder / "train.en-de.en", "w1")
    with pytest.raises(ValueError, match="must be in format mmap, but is in raw: bin"):
        run_train(folder, tmp_path / "save", *SB, "--max-update", 1)


NO_DICTIONARIES = [
    (["--task", "sb_translation"], "--task is not supported by sbnmt binarise"),
    (["--joined-dictionary", "--srcdict", "a", "--tgtdict", "b"], "makes one dict"),
    (["--only-valid"], "--trainpref must be set if --srcdict"),
    (["--only-valid", "--srcdict", "a"], "--trainpref must be set if --tgtdict"),
]


@pytest.mark.parametrize(("words", "message"), NO_DICTIONARIES, ids=str)
def test_dictionaries_of_nothing_are_refused(few, tmp_path, words, message):
    known = {"a": few / "known", "b": few / "known"}
    known["a"].write_text("w1 1\n")
    prefix = "valid" if words[0] == "--only-valid" else "train"
    words = [known.get(word, word) for word in words if word != "--only-valid"]
    words = ["-s", "en", "-t", "de", f"--{prefix}pref", few / prefix, *words]
    with pytest.raises(ValueError, match=message):
        call(steps, *words, "--destdir", tmp_path / "bin")
    assert not (tmp_path / "bin").exists()
