"""Published corpora, under the name that version 0.2.0 gave a user's prepare.py."""

from sbnmt_plugin.tools.corpora.published import Archive, Corpus, Part, prepare

__all__ = ["Archive", "Corpus", "Part", "prepare"]
