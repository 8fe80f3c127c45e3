"""Made-up language pairs, by the name that version 0.2.0 gave a user's prepare.py."""

from sbnmt_plugin.tools.corpora.synthetic import (
    LANGUAGES,
    invented_stems,
    parser_of,
    write_corpus,
)

__all__ = ["LANGUAGES", "invented_stems", "parser_of", "write_corpus"]
