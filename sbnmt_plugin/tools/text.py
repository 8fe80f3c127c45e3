"""Line-aligned text files: read and written so that nothing is lost or half-done."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from sbnmt_plugin.symbols import RESERVED
from sbnmt_plugin.tools.unfinished import new_file


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """All lines of a UTF-8 file, without their ends.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is not UTF-8, begins with a byte order mark, or has a carriage
            return inside a line.
    """
    path = Path(path)
    if not path.is_file():
        problem = "is no file" if path.exists() else "does not exist"
        raise FileNotFoundError(f"{path} {problem}")
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = data[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path}, line {number}, must be UTF-8, but has the byte "
            f"0x{data[error.start]:02x}: convert the file (iconv -t utf-8)"
        ) from error
    if text.startswith("\ufeff"):  # fairseq, which reads the same files, keeps it
        raise ValueError(
            f"{path}, line 1, must not begin with a byte order mark, which would "
            "become part of the first word: remove it (sed -i '1s/^\\xEF\\xBB\\xBF//')"
        )
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    for number, line in enumerate(lines, start=1):
        if "\r" in line:  # fairseq would begin a new line there
            raise ValueError(
                f"{path}, line {number}, must not contain a carriage return: replace "
                "it by a blank, or by a line feed if it ends a line"
            )
    return lines


def read_parallel(*paths: str | os.PathLike[str]) -> list[list[str]]:
    """Files that must have the same number of lines, at least one.

    Raises:
        ValueError: one is empty, or has another number of lines than the first.
    """
    texts = [read_lines(path) for path in paths]
    if not texts[0]:
        raise ValueError(f"{paths[0]} must have at least one line, but is empty")
    for path, text in zip(paths, texts):
        if len(text) != len(texts[0]):
            raise ValueError(
                f"{path} must have as many lines as {paths[0]}, but has {len(text)} "
                f"instead of {len(texts[0])}"
            )
    return texts


# what reading a damaged file raises, somewhere in the middle
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)


@contextlib.contextmanager
def as_written(path: str | os.PathLike[str], remedy: str) -> Iterator[None]:
    """Make one error of whatever goes wrong while a file is read.

    Args:
        path: the file, which a step of ours, or of fairseq's, has written.
        remedy: what to do where it is damaged.

    Raises:
        ValueError: with path and remedy; one that names the path is passed on.
    """
    try:
        yield
    except (*DAMAGE, RecursionError) as error:
        if isinstance(error, ValueError) and str(path) in str(error):
            raise
        reason = f"{type(error).__name__}: {str(error)[:200]}"
        raise ValueError(
            f"{path} must be as it was written, but is damaged ({reason}): {remedy}"
        ) from error


def refuse_reserved(path: str | os.PathLike[str], lines: Iterable[str]) -> None:
    """Refuse text in which a reserved symbol stands as a token: see :mod:`symbols`.

    Raises:
        ValueError: with the first line that has one.
    """
    for number, line in enumerate(lines, start=1):
        found = set(RESERVED).intersection(line.split())
        if found:
            raise ValueError(
                f"{path}, line {number}, must not contain {sorted(found)[0]}, which "
                "is reserved: remove it or write it in another way"
            )


def refuse_overwriting(output: str | None, *inputs: str | None) -> None:
    """Refuse an output that is one of the inputs.

    Raises:
        ValueError: with the file.
    """
    for path in inputs:
        if output and path and os.path.abspath(output) == os.path.abspath(path):
            raise ValueError(
                f"{output} must not be read and written by one command: choose another "
                "name for the output"
            )


def write_lines(path: str | os.PathLike[str], lines: Iterable[str]) -> None:
    """Write lines; the file appears when all are written."""
    with new_file(path) as file:
        for line in lines:
            file.write(line + "\n")


def remove_bpe(line: str) -> str:
    """Join subwords: ``a@@ b`` becomes ``ab``."""
    return re.sub(r"@@( |$)", "", line)
