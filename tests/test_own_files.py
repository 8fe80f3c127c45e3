"""No command writes over what it reads, or over what is no file."""

import pytest
from steps import call, put

from sbnmt_plugin.tools.commands import (
    aer,
    average,
    bpe,
    evaluate,
    probe_interaction,
    score,
    tokenise,
    triples,
)


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


ALIGNED = "--input", "other", "--reference", "other"
OTHERS = {  # whose output is a file "in" that they read
    "tokenise": (tokenise, "--language", "en", "in", "in"),
    "learn": (bpe, "learn", "--merges", 2, "--codes", "in", "in"),
    "apply": (bpe, "apply", "--codes", "other", "in", "in"),
    "score": (score, "--hypothesis", "in", "--reference", "other", "--json", "in"),
    **{
        f"score {flag}": (
            *(score, "--hypothesis", "other", "--reference", "other", "--json", "in"),
            *("--tokenised-hypothesis", "other", "--tokenised-reference", "other"),
            *(flag, "in"),
        )
        for flag in ("--tokenised-hypothesis", "--tokenised-reference")
    },
    "aer": (aer, *ALIGNED, "--gold", "in", "--json", "in"),
    "links": (aer, *ALIGNED, "--gold", "in", "--output", "in"),
    "probe": (probe_interaction, *ALIGNED, "--reference", "in", "--json", "in"),
    "average": (average, "--output", "in", "other", "in"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_steps_keep_what_they_read(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for path in "in", "other":
        put(tmp_path / path, "a b")
    assert_refused(tmp_path, "in", *OTHERS[name])
