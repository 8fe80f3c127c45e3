"""sbnmt tokenise: splitting into words, and undoing it."""

from sbnmt_plugin.tools import tokens


def test_tokenising_is_undone():
    lines = ["Ein Mann, der läuft.", "“Nein!” ruft sie."]
    split = tokens.tokenise(lines, "de")
    assert split[0] == "Ein Mann , der läuft ."
    assert tokens.detokenise(split, "de")[0] == lines[0]
    assert tokens.tokenise(lines, "de", lowercase=True)[0].startswith("ein mann")
