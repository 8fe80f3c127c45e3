"""sbnmt bpe: learning, applying and undoing subwords."""

from pathlib import Path
from unittest import mock

from steps import call, put

from sbnmt_plugin.tools import text as texts
from sbnmt_plugin.tools.commands import bpe


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
