"""Symbols with a meaning of their own, and names of the directions.

No torch: tools that read text need them too.

No text may hold one as a token.  fairseq's ``<unk>`` may stand there: a teacher writes
it for a word that it does not know, and it is binarised as what it is.
"""

from __future__ import annotations

from itertools import groupby

NAMES = ("l2r", "r2l")  # of the directions
TAGS = ("<l2r>", "<r2l>")  # the first input of a stream, by direction
SPECIALS = ("<s>", "<pad>", "</s>")  # fairseq's, of every dictionary
UNKNOWN = "<unk>"
RESERVED = (*TAGS, *SPECIALS)

# sentencepiece's: a blank within a piece, and a byte of a letter that no piece has
BLANK = "▁"
BYTES = {f"<0x{byte:02X}>": byte for byte in range(256)}
NO_LINE = str.maketrans({"\n": " ", "\r": " ", "\ufeff": None})


def join_pieces(line: str) -> str:
    """Join sentencepiece's pieces, which stand between blanks, to the raw text.

    Bytes become the letters that they spell, U+FFFD where they spell none.  Whatever a
    model has written, the result is a line of a file: line breaks become blanks, and
    byte order marks are left out.
    """
    parts = []
    for spelt, pieces in groupby(line.split(), BYTES.__contains__):
        if spelt:
            data = bytes(BYTES[piece] for piece in pieces)
            parts.append(data.decode("utf-8", errors="replace"))
        else:
            parts.append("".join(pieces).replace(BLANK, " "))
    return "".join(parts).removeprefix(" ").translate(NO_LINE)
