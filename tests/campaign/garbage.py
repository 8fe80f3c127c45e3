"""Garbage: texts, and files with a change, drawn from a seed."""

from __future__ import annotations

import random

from odd_text import BLANKS, IDEOGRAPHS, JOINERS, LETTERS
from odd_text import SIGNS as SIGNS_OF_TEXTS

from sbnmt_plugin.symbols import RESERVED

# what text processing trips over
SIGNS = (
    *("a", "B", "é", "e\u0301", "ß", "İ", "好", "ع", "\U0001f600", "\U0010ffff"),
    *(" ", "  ", "\t", "\u00a0", "\u3000", "\u2028", "\u2029", "\u0085", "\v", "\f"),
    *("\x1c", "\x1d", "\x1e", "\x1f", "\0", "\x1b", "\x7f", "\ufffe", "\ufeff"),
    *("\u200b", "\u200d", "\u200e", "\u200f", "\u202e", "\u2066", "\u0300"),
    *("@@", "@@ ", "@-@", "&amp;", "<unk>", "<unk>>", "madeupword0000", "#fairseq:"),
    *("|", "'", '"', "\\", "%s", "{}", "${oc.env:HOME}", "</script>", "-", "--"),
    *("7", "1e999", "NaN", *RESERVED),
)
ENDS = (b"\n", b"\n", b"\n", b"\r\n", b"\r", b"")
BYTES = (b"\xff", b"\xed\xa0\x80", b"\xc3", b"\xf8\x88\x80\x80\x80", b"\xef\xbb\xbf")


def text(draw: random.Random) -> bytes:
    """Make a file of any text, an empty or a huge line included."""
    lines = []
    for _ in range(draw.choice((0, 1, 2, 5, 20))):
        size = draw.choice((0, 1, 3, 8, 8, 8, 200))
        if draw.random() < 0.02:
            size = 300_000  # a megabyte
        line = "".join(draw.choices(SIGNS, k=size)).encode()
        if draw.random() < 0.1:
            line += draw.choice(BYTES)
        lines.append(line + draw.choice(ENDS if draw.random() < 0.3 else ENDS[:1]))
    return b"".join(lines)


def clean(draw: random.Random) -> list[str]:
    """Make lines that no reader may refuse: no reserved symbol, no line end within."""
    signs = [sign for sign in SIGNS if sign not in RESERVED]
    found = []
    for _ in range(draw.choice((1, 2, 5, 20))):
        line = "".join(draw.choices(signs, k=draw.choice((0, 1, 3, 8, 8, 40))))
        found.append("" if set(line.split()) & set(RESERVED) else line)
    found[0] = found[0].lstrip("\ufeff")  # it would be a byte order mark
    return found


def words(draw: random.Random) -> list[str]:
    """Make words of letters, marks and joiners, each of one script."""
    found = []
    for _ in range(draw.choice((1, 2, 5))):
        letters = draw.choice(LETTERS)
        first = draw.choice([sign for sign in letters if sign.isalpha()])
        rest = draw.choices([*letters, *letters, *JOINERS], k=draw.choice((0, 1, 3, 7)))
        found.append(first + "".join(rest))
    return found


def odd(draw: random.Random) -> list[str]:
    """Make lines that no reader may refuse, of words of many scripts and of signs."""
    lines = []
    for line in clean(draw):
        signs = draw.choices((*SIGNS_OF_TEXTS, *BLANKS, *"".join(IDEOGRAPHS)), k=3)
        pieces = [*words(draw), *signs, line]
        draw.shuffle(pieces)
        lines.append(draw.choice(("", " ")).join(pieces))
    return ["x" + lines[0], *lines]  # the first with no byte order mark


def changed(content: bytes, draw: random.Random) -> bytes:
    """Change a byte, a piece or the end of a file."""
    place = draw.randrange(len(content) + 1)
    other = draw.randrange(place, min(len(content), place + 40) + 1)
    kind = draw.randrange(6)
    if kind == 0:
        return content[:place]
    if kind == 1:
        return content[:place] + content[other:]
    if kind == 2:
        return content[:other] + content[place:]
    if kind == 3:
        return content[:place] + draw.randbytes(draw.randint(1, 8)) + content[place:]
    if kind == 4:
        piece = draw.choice((b"null", b"[]", b"{}", b"-1", b"1e999", b'"x"', b"true"))
        return content[:place] + piece + content[other:]
    return flipped(content, min(place, len(content) - 1), draw)


def flipped(content: bytes, place: int, draw: random.Random) -> bytes:
    """Change one byte of a file."""
    value = content[place] ^ draw.randint(1, 255)
    return content[:place] + bytes([value]) + content[place + 1 :]
