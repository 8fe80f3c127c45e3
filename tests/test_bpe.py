"""sbnmt bpe: learning, applying and undoing subwords."""

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
    call(bpe, "vocabulary", tmp_path / "split", tmp_path / "vocabulary")
    known = "--vocabulary", tmp_path / "vocabulary", source, tmp_path / "again"
    call(bpe, *words[:-2], *known)
    assert texts.read_lines(tmp_path / "again") == split
