"""No command writes over what it reads, or over what is no file."""

import pytest
from steps import call, put

from sbnmt_plugin.tools.commands import average, evaluate, triples


def there(folder):
    """Every file and what it holds."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_refused(folder, match, *command):
    """Of an output that is an input; nothing has changed."""
    before = there(folder)
    with pytest.raises(ValueError, match=rf"{match} must not be read and written"):
        call(*command)
    assert there(folder) == before


@pytest.mark.parametrize("ending", ["tok", "txt", "json"])
@pytest.mark.parametrize("read", ["input", "records"])
def test_evaluate_keeps_what_it_evaluates(tmp_path, ending, read):
    put(tmp_path / "text" / "test.de", "a b")
    files = {"input": tmp_path / "other", "records": tmp_path / "third"}
    files[read] = tmp_path / f"sb.{ending}"
    for path in files.values():
        put(path, "H-0\t-1.0\ta b")
    words = ["--text", tmp_path / "text", "--target", "de"]
    words += ["--records", files["records"], "--output", tmp_path / "sb.json"]
    match = rf"sb\.{ending}"
    assert_refused(tmp_path, match, evaluate, files["input"], *words)


@pytest.mark.parametrize("name", ["en", "de", "r2l"])
def test_triples_keep_pseudo_targets(tmp_path, name):
    """A name that the output's ending makes of it."""
    for side in "en", "de":
        put(tmp_path / f"gold.{side}", "a b")
    pseudo = [tmp_path / f"new.{name}", tmp_path / "other"]
    for path in pseudo:
        put(path, "0\t-1.0\ta b")
    words = ["--source", tmp_path / "gold.en", "--target", tmp_path / "gold.de"]
    words += ["--output", tmp_path / "new"]
    for one, other in pseudo, pseudo[::-1]:
        given = ["--pseudo-l2r", one, "--pseudo-r2l", other]
        assert_refused(tmp_path, rf"new\.{name}", triples, *words, *given)


def test_a_mean_replaces_none_of_its_checkpoints(tmp_path):
    paths = [put(tmp_path / f"checkpoint{i}.pt", "weights") for i in (1, 2)]
    words = ["--output", paths[1], *paths]
    assert_refused(tmp_path, r"checkpoint2\.pt", average, *words)
