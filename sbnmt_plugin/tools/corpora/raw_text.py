"""Texts as they are published, read line by line and tokenised in several processes.

They are streams, so that a corpus may be larger than the memory.
"""

from __future__ import annotations

import gzip
import os
import re
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path

from sbnmt_plugin.tools.corpora.raw_data import Row, damage_is_named
from sbnmt_plugin.tools.text import decoded
from sbnmt_plugin.tools.tied import tie
from sbnmt_plugin.tools.tokens import tokeniser

CHUNK = 5000  # sentences that a process tokenises at a time


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text, plain or .gz, or the segments of an SGML file.

    White space, line separators of other systems among it, becomes single blanks.

    Raises:
        ValueError: the file is not UTF-8, or its .gz is damaged.
    """
    packed = path.suffix == ".gz"
    with damage_is_named(path), gzip.open(path) if packed else path.open("rb") as file:
        for _, text in decoded(path, file):
            if path.name.removesuffix(".gz").endswith((".sgm", ".sgml")):
                segment = re.search(r"<seg\b[^>]*>(.*)</seg>", text, re.IGNORECASE)
                if segment is None:
                    continue
                text = segment[1]
            yield " ".join(text.removeprefix("\ufeff").split())


def rows_of(paths: list[Path], first: int | None = None) -> Iterator[Row]:
    """Yield the lines of files side by side, or the first of them.

    Raises:
        ValueError: the files do not have the same number of lines, or none.
    """
    count = 0
    for row in islice(zip_longest(*map(lines_of, paths)), first):
        if None in row:
            ended = ", ".join(str(p) for p, line in zip(paths, row) if line is None)
            raise ValueError(
                f"{', '.join(map(str, paths))} must have the same number of lines, but "
                f"{ended} ends after {count}: one of the files is damaged or unaligned"
            )
        count += 1
        yield row
    if not count:
        raise ValueError(f"{paths[0]} must have at least one line, but has none")


def tokenise_rows(rows: list[Row], languages: Row, lowercase: bool) -> list[Row]:
    """Tokenise each column in its language."""
    columns = []
    for language, column in zip(languages, zip(*rows)):
        columns.append([*map(tokeniser(language, lowercase), column)])
    return [*zip(*columns)]


def tokenised(
    rows: Iterable[Row], languages: Row, lowercase: bool, workers: int
) -> Iterator[Row]:
    """Tokenise a stream of rows in several processes, in order."""
    rows = iter(rows)
    work = partial(tokenise_rows, languages=languages, lowercase=lowercase)
    chunks = iter(lambda: [*islice(rows, CHUNK)], [])
    beginning = [*islice(chunks, 2)]
    if workers == 1 or len(beginning) < 2:  # processes would take longer to start
        for chunk in chain(beginning, chunks):
            yield from work(chunk)
        return
    chunks = chain(beginning, chunks)
    kill = (os.getpid(), signal.SIGKILL)  # with this process, whose chunks they have
    with ProcessPoolExecutor(workers, initializer=tie, initargs=kill) as pool:
        while group := [*islice(chunks, 4 * workers)]:  # what memory has to hold
            for done in pool.map(work, group):
                yield from done
