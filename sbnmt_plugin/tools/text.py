"""Line-aligned text files: read and written whole, or refused."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sbnmt_plugin.lines import each_line
from sbnmt_plugin.symbols import RESERVED
from sbnmt_plugin.tools.unfinished import new_file


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Return all lines of a file: see :func:`each_line`."""
    return list(each_line(path))


def each_parallel(
    *paths: str | os.PathLike[str], read: Callable[[Any], Iterator[str]] = each_line
) -> Iterator[tuple[str, ...]]:
    """Yield the lines of one number of files that must have equally many, not none.

    Args:
        read: yields the lines of a file.

    Raises:
        ValueError: one has fewer lines than another; all are empty.
    """
    number = 0
    for number, row in enumerate(itertools.zip_longest(*map(read, paths)), start=1):
        if None in row:
            longer = next(path for path, line in zip(paths, row) if line is not None)
            raise ValueError(
                f"{paths[row.index(None)]} must have as many lines as {longer}, but "
                f"has only {number - 1}"
            )
        yield row
    if not number:
        raise ValueError(f"{paths[0]} must have at least one line, but is empty")


def read_parallel(*paths: str | os.PathLike[str]) -> list[list[str]]:
    """Return all lines of each file: see :func:`each_parallel`."""
    return [list(lines) for lines in zip(*each_parallel(*paths))]


def check_parallel(*paths: str | os.PathLike[str]) -> int:
    """Check texts to be binarised: parallel, and without reserved symbols.

    Returns:
        The number of their lines.

    Raises:
        ValueError: see :func:`each_parallel` and :func:`refuse_reserved`.
    """
    for number, row in enumerate(each_parallel(*paths), start=1):
        for path, line in zip(paths, row):
            refuse_reserved(path, [line], number)
    return number


# errors that reading a damaged file raises, somewhere in the middle
DAMAGE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)


@contextlib.contextmanager
def as_written(path: str | os.PathLike[str], remedy: str) -> Iterator[None]:
    """Turn any error of reading a file into one that says how to go on.

    Args:
        path: the file, which a step of ours, or of fairseq's, has written.
        remedy: tells a user how to go on where it is damaged.

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


def refuse_reserved(
    path: str | os.PathLike[str], lines: Iterable[str], start: int = 1
) -> None:
    """Refuse text with a reserved symbol as a token: see :mod:`symbols`.

    Args:
        start: number of the first of the lines.

    Raises:
        ValueError: with the first line that has one.
    """
    for number, line in enumerate(lines, start=start):
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
        if output and path and os.path.realpath(output) == os.path.realpath(path):
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
