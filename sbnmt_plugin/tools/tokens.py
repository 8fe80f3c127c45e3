"""Tokens of a text, as the Moses script makes them (sacremoses), and text of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer

from sbnmt_plugin.tools.progress import progress

CHINESE = "zh"
# ideographs, their punctuation, full-width forms
IDEOGRAPH = "[\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef]"


def tokeniser(language: str, lowercase: bool = False) -> Callable[[str], str]:
    """Return a function that separates the tokens of a line by blanks.

    Chinese is segmented into words by jieba's dictionary and model (rjieba).  Elsewhere
    punctuation is normalised; nothing is escaped for XML.
    """
    if language == CHINESE:
        import rjieba  # its dictionary takes a moment, and few need it

        def split(line: str) -> str:
            return " ".join(word for word in rjieba.cut(line) if not word.isspace())
    else:
        normaliser = MosesPunctNormalizer(lang=language)
        moses = MosesTokenizer(lang=language)

        def split(line: str) -> str:
            line = normaliser.normalize(line)
            return str(moses.tokenize(line, return_str=True, escape=False))

    return (lambda line: split(line.lower())) if lowercase else split


def tokenise(lines: list[str], language: str, lowercase: bool = False) -> list[str]:
    """Separate tokens by blanks: see :func:`tokeniser`."""
    split = tokeniser(language, lowercase)
    bar = progress(lines, desc=f"tokenise {language}", unit="line", leave=False)
    return [split(line) for line in bar]


def detokenise(lines: list[str], language: str) -> list[str]:
    """Join tokens into text."""
    if language == CHINESE:
        inner = re.compile(f"(?<={IDEOGRAPH}) | (?={IDEOGRAPH})")
        return [inner.sub("", line) for line in lines]
    detokeniser = MosesDetokenizer(lang=language)
    return [detokeniser.detokenize(line.split(), unescape=False) for line in lines]
