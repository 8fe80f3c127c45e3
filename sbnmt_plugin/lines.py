"""Lines of the files that users give: one reader for texts, lists and tables.

Every line is read as it was meant, or refused with its file and number.  A line ends at
a line feed, with or without a carriage return before it.
"""

from __future__ import annotations

import codecs
import functools
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

STANDARD_INPUT = "-"
BYTE_ORDER_MARK = "\ufeff"  # no letter, and no white space
WIDE = "UTF-16", "iconv -f UTF-16 -t UTF-8"
OTHER_FORMS = {  # first bytes of a text -> what it is, and what makes UTF-8 of it
    b"\x1f\x8b": ("compressed", "zcat"),
    **dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), WIDE),
}


@functools.cache
def copied(path: str) -> Any:
    """Copy a stream, which can be read once alone, to a file that this process has."""
    copy = tempfile.NamedTemporaryFile()  # noqa: SIM115 (it lives as long as the cache)
    with sys.stdin.buffer if path == STANDARD_INPUT else open(path, "rb") as stream:
        shutil.copyfileobj(stream, copy)
    copy.flush()
    return copy


def readable(path: str | os.PathLike[str]) -> Path:
    """Return a file that can be read several times, from any of its places.

    Args:
        path: a file; or a pipe, such as ``/dev/stdin`` and the shell's ``<(…)``; or
            ``-`` for standard input.

    Raises:
        FileNotFoundError: no such file, or a folder.
    """
    path = Path(path)
    if path.is_file():
        return path
    if str(path) != STANDARD_INPUT and (path.is_dir() or not path.exists()):
        problem = "is no file" if path.exists() else "does not exist"
        raise FileNotFoundError(f"{path} {problem}")
    return Path(copied(str(path)).name)


def each_line(path: str | os.PathLike[str]) -> Iterator[str]:
    """Yield the lines of a UTF-8 file, without their ends.

    Args:
        path: see :func:`readable`.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is not UTF-8, begins with a byte order mark, or has a carriage
            return inside a line.
    """
    return checked_lines(path, readable(path))


def checked_lines(path: str | os.PathLike[str], found: Path) -> Iterator[str]:
    """Yield lines as :func:`each_line` does, which looks for the file at once."""
    with open(found, "rb") as file:
        for number, line in decoded(path, file):
            marked = line.startswith(BYTE_ORDER_MARK)
            if number == 1 and marked:  # fairseq would keep it
                raise ValueError(
                    f"{path}, line 1, must not begin with a byte order mark, which "
                    "would become part of the first word: remove it "
                    "(sed -i '1s/^\\xEF\\xBB\\xBF//')"
                )
            line = without_end(line)
            if "\r" in line:  # fairseq would begin a new line there
                raise ValueError(
                    f"{path}, line {number}, must not contain a carriage return: "
                    "replace it by a blank, or by a line feed if it ends a line"
                )
            yield line


def decoded(
    path: str | os.PathLike[str], file: Iterable[bytes]
) -> Iterator[tuple[int, str]]:
    """Yield the lines of an open file, numbered from 1.

    Raises:
        ValueError: one is not UTF-8; with the file's name.
    """
    for number, data in enumerate(file, start=1):
        try:
            yield number, data.decode("utf-8")
        except UnicodeDecodeError as error:
            whose = f"{path}, line {number},"
            if number == 1:
                refuse_other_form(whose, data[:2], f"{path} > NEW")
            raise ValueError(
                f"{whose} must be UTF-8, but has the byte 0x{data[error.start]:02x}: "
                f"iconv -f ENCODING -t UTF-8 {path} > NEW, where ENCODING is that of "
                "the text, such as LATIN1"
            ) from error


def refuse_other_form(whose: str, first: bytes, rest: str) -> None:
    """Refuse a text that is gzip or UTF-16, by its first two bytes.

    Args:
        whose: text, in words.
        rest: of the command that makes it UTF-8.

    Raises:
        ValueError: it is one of these; with the command.
    """
    form, command = OTHER_FORMS.get(first, ("", ""))
    if form:
        raise ValueError(f"{whose} must be UTF-8, but is {form}: {command} {rest}")


def without_end(line: str) -> str:
    """Remove the line feed of a line, and the carriage return before it."""
    return line.removesuffix("\n").removesuffix("\r")


def single_blanks(line: str) -> str:
    """Write one blank for white space of any kind, and none at the ends.

    Byte order marks within a text are left out: a file may not begin with one.
    """
    return " ".join(line.replace(BYTE_ORDER_MARK, "").split())


def each_entry(
    path: str | os.PathLike[str], form: re.Pattern[str], rule: str, remedy: str
) -> Iterator[re.Match[str]]:
    """Yield the lines of a list or table, each matched with the form of them all.

    Args:
        rule: the form in words, behind "must be".
        remedy: tells how to get a file of this kind.

    Raises:
        FileNotFoundError, ValueError: see :func:`each_line`; a line has another form,
            or there is none.
    """
    number = 0
    for number, line in enumerate(each_line(path), start=1):
        found = form.fullmatch(line)
        if not found:
            raise ValueError(
                f"{path}, line {number}, must be {rule}, but is {line[:80]!r}: {remedy}"
            )
        yield found
    if not number:
        raise ValueError(f"{path} must have at least one line, but is empty: {remedy}")
