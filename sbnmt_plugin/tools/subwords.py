"""Subwords: one object per kind applies them to a line and undoes them.

Kinds are byte-pair encoding of tokens, ``a@@ b``, and sentencepiece's pieces of raw
text, ``▁a b``; or tokens are left whole.  Words are what stands between white space of
any kind, as for fairseq.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sbnmt_plugin.lines import BYTE_ORDER_MARK, each_entry, readable, single_blanks
from sbnmt_plugin.symbols import BLANK, BYTES, RESERVED, UNKNOWN, join_pieces
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.text import remove_bpe, write_lines

MARK = "@@"
CACHED = 2**18  # words of which subword-nmt keeps the subwords
VERSION = re.compile(r"#version: 0\.[12]")
PAIR = re.compile(r"([^ ]+) ([^ ]+)")
HEAD = b"\n\x0e\n\x05<unk>"  # a model of sentencepiece begins so
SPELT_BLANK = " ".join(f"<0x{byte:02X}>" for byte in BLANK.encode())
# of which no piece is learned: white space but blanks, at which fairseq splits, and
# signs that sentencepiece has a use for
NOT_LEARNED = re.compile(r"[^\S ]|[\0▁▅\ufeff]")


class Subwords:
    """Subwords of a line of text; these are whole tokens, between single blanks."""

    def apply(self, line: str) -> str:
        """Split a line into subwords, joined by single blanks.

        Raises:
            ValueError: the line cannot be split without loss; the message is a rule
                ("must have …"), to stand behind the place of the line.
        """
        return single_blanks(line)

    def undo(self, line: str) -> str:
        """Join subwords that stand between blanks."""
        return line

    def keeps(self, word: str) -> bool:
        """Tell whether a word without a mark, of a dictionary, may stand in texts."""
        return self.apply(word) == word


def subwords(codes: Path | None) -> Subwords:
    """Return the subwords of a file of codes, whose kind it shows itself.

    Args:
        codes: the file that ``sbnmt bpe learn`` wrote; None: tokens are left whole.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds no codes.
    """
    if codes is None:
        return Subwords()
    with open(readable(codes), "rb") as file:
        pieces = file.read(len(HEAD)) == HEAD
    return Pieces(codes) if pieces else BytePairs(codes)


def undoing(raw: str | bool) -> Callable[[str], str]:
    """Return what undoes the subwords of pieces of raw text, or of tokens."""
    return join_pieces if raw else remove_bpe


class BytePairs(Subwords):
    """Byte-pair encoding of tokens.

    fastBPE applies codes if it is installed, subword-nmt otherwise, with the same
    result.

    Args:
        codes: file that ``sbnmt bpe learn`` wrote.
    """

    def __init__(self, codes: Path) -> None:
        pairs = read_codes(codes)
        fast, self.cache = fast_bpe(pairs), {}
        if fast is not None:
            self.split = lambda line: fast.apply([line])[0]
        else:
            from subword_nmt.apply_bpe import BPE

            slow = BPE(io.StringIO("\n".join(pairs)))
            self.split, self.cache = slow.process_line, slow.cache

    def apply(self, line: str) -> str:
        """Split the tokens of a line: see :class:`Subwords`."""
        if len(self.cache) > CACHED:  # a corpus has words without end
            self.cache.clear()
        return self.split(unmarked(line))

    def undo(self, line: str) -> str:
        """Join subwords to tokens."""
        return remove_bpe(line)


class Pieces(Subwords):
    """Sentencepiece's pieces of raw text; letters that it has not learned are bytes.

    Text comes back as it was, but for byte order marks, which are left out: a file may
    not begin with one.  The sign ``▁`` of blanks stands as bytes where a text has it.

    Args:
        model: file that ``sbnmt bpe learn --kind sentencepiece`` wrote.

    Raises:
        ValueError: it is damaged or was not made so, or sentencepiece is missing.
    """

    def __init__(self, model: Path) -> None:
        remedy = "give the file that sbnmt bpe learn --kind sentencepiece wrote"
        with command.extra("sentencepiece"):
            from sentencepiece import SentencePieceProcessor
        content = readable(model).read_bytes()
        try:
            self.model = SentencePieceProcessor(model_proto=content)
            listed = self.model.id_to_piece(list(range(len(self.model))))
        except (RuntimeError, ValueError) as error:
            raise ValueError(
                f"{model} must be a model of sentencepiece, but is damaged: {remedy}"
            ) from error
        self.pieces: list[str] = listed[1:]  # in its order; the first is <unk>
        whole = all(x.split() == [x] and x not in RESERVED for x in self.pieces)
        if not whole or listed[0] != UNKNOWN or not BYTES.keys() <= set(listed):
            raise ValueError(
                f"{model} must have {UNKNOWN} as its first piece, all bytes, and no "
                f"piece with white space or reserved symbols, but has not: {remedy}"
            )

    def apply(self, line: str) -> str:
        """Split raw text into pieces: see :class:`Subwords`.

        Raises:
            ValueError: it has a line break, or does not come back from its pieces.
        """
        line = line.replace(BYTE_ORDER_MARK, "")
        if "\n" in line or "\r" in line:
            raise ValueError("must have no line break: write a blank")
        # no line has a line feed, so its byte marks the places of the sign of blanks
        found = self.model.encode(line.replace(BLANK, "\n"), out_type=str)
        split = " ".join(found).replace("<0x0A>", SPELT_BLANK)
        if join_pieces(split) != line:
            raise ValueError(
                "must come back from its pieces, but becomes "
                f"{join_pieces(split)!r}: take a model of sbnmt bpe learn"
            )
        return split

    def undo(self, line: str) -> str:
        """Join pieces to raw text."""
        return join_pieces(line)

    def keeps(self, word: str) -> bool:
        """See :class:`Subwords`: the words of its texts are its pieces."""
        return bool(self.model.piece_to_id(word))  # 0 is <unk>


def unmarked(line: str) -> str:
    """Write single blanks between the words of a line: see :func:`single_blanks`.

    Raises:
        ValueError: a word ends in the mark of subwords.
    """
    line = single_blanks(line)
    if MARK in line and any(word.endswith(MARK) for word in line.split()):
        raise ValueError(
            f"must have no word that ends in {MARK}, which marks subwords: write it in "
            "another way (sbnmt tokenise cuts it in two), or give the text before "
            "sbnmt bpe apply"
        )
    return line


def read_codes(path: str | Path) -> list[str]:
    """Return the lines of codes.

    Raises:
        ValueError: a line is no pair of subwords that are letters or that earlier lines
            have made, as in every other kind of file; or there is none.
    """
    remedy = "give the file that sbnmt bpe learn wrote"
    lines, made = [], set()
    for number, pair in enumerate(
        each_entry(path, PAIR, "two subwords, as in codes", remedy), start=1
    ):
        lines.append(pair[0])
        if number == 1 and VERSION.fullmatch(pair[0]):
            continue
        for subword in pair.groups():
            if len(subword.removesuffix("</w>")) > 1 and subword not in made:
                raise ValueError(
                    f"{path}, line {number}, must join letters or what earlier lines "
                    f"have joined, as codes do, but has {subword!r}: {remedy}"
                )
        made.add(pair[1] + pair[2])
    if not made:
        raise ValueError(f"{path} must join subwords, but has none: {remedy}")
    return lines


def fast_bpe(codes: list[str]) -> Any:
    """Return fastBPE's encoder, or None where it is missing.

    Its codes have no header line, and a third column of counts that it ignores.
    """
    try:
        import fastBPE
    except ImportError:
        return None
    pairs = codes[1:] if VERSION.fullmatch(codes[0]) else codes
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "codes")
        write_lines(plain, (f"{pair} 1" for pair in pairs))
        return fastBPE.fastBPE(str(plain), "")
