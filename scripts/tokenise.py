#!/usr/bin/env python3
"""Tokenise a text as the Moses script would (sacremoses), or undo it.

tokenise.py --language de [--lowercase] INPUT OUTPUT
tokenise.py --language de --undo INPUT OUTPUT
"""

from __future__ import annotations

import argparse

from sacremoses import MosesDetokenizer, MosesPunctNormalizer, MosesTokenizer
from texts import read_lines, refuse_overwriting, run, write_lines
from tqdm import tqdm


def tokenise(lines: list[str], language: str, lowercase: bool = False) -> list[str]:
    """Normalise punctuation and split tokens, without escaping for XML."""
    normaliser = MosesPunctNormalizer(lang=language)
    tokeniser = MosesTokenizer(lang=language)
    tokenised = []
    for line in tqdm(lines, desc=f"tokenise {language}", unit="line", leave=False):
        line = normaliser.normalize(line.lower() if lowercase else line)
        tokenised.append(tokeniser.tokenize(line, return_str=True, escape=False))
    return tokenised


def detokenise(lines: list[str], language: str) -> list[str]:
    """Join tokens into text."""
    detokeniser = MosesDetokenizer(lang=language)
    return [detokeniser.detokenize(line.split(), unescape=False) for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--language", required=True, help="two-letter code")
    parser.add_argument("--lowercase", action="store_true")
    parser.add_argument("--undo", action="store_true", help="detokenise")
    parser.add_argument("input")
    parser.add_argument("output")
    args = parser.parse_args()
    if args.undo and args.lowercase:
        raise ValueError("--lowercase cannot be undone: leave it out with --undo")
    refuse_overwriting(args.output, args.input)
    lines = read_lines(args.input)
    if args.undo:
        write_lines(args.output, detokenise(lines, args.language))
    else:
        write_lines(args.output, tokenise(lines, args.language, args.lowercase))


if __name__ == "__main__":
    run(main)
