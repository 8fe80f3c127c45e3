"""Data folders that training refuses: streams and dictionaries that do not fit."""

import shutil

import pytest
from commands import SB, changeable, run_train
from steps import put


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
    with pytest.raises(
        ValueError, match=r"dict.de.txt, line \d+, must not contain <l2r>"
    ):
        run_train(folder, tmp_path / "save", *SB, "--max-epoch", 1)


def test_a_missing_dictionary_is_named(data, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"dict.en.txt does not exist"):
        run_train(tmp_path, tmp_path / "s", *SB, "-s", "en", "-t", "de")
