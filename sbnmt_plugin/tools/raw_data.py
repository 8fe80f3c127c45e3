"""Raw files of a corpus: found, read and tokenised.

Texts are streams of rows, so that a corpus may be larger than the memory.
"""

from __future__ import annotations

import gzip
import os
import re
import signal
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from sbnmt_plugin.lines import decoded
from sbnmt_plugin.tools.text import each_parallel
from sbnmt_plugin.tools.tied import tie
from sbnmt_plugin.tools.tokens import tokeniser

Row = tuple[str, ...]  # a sentence and its translations
CHUNK = 1000  # sentences that a process tokenises at a time
GROUP = 100  # chunks that memory has to hold


@dataclass(frozen=True)
class Archive:
    """A public .tgz, which holds files of a corpus.

    Attributes:
        name: to save it by.
        url: its published address.
    """

    name: str
    url: str


@dataclass(frozen=True)
class Part:
    """A line-aligned text and its translations.

    Attributes:
        source: its path in the folder of raw data: plain, .gz or .sgm.
        targets: paths of its translations, the first one being the reference for
            validation; a training set has one.
        archive: the archive that holds these files under these paths.
        remedy: tells how to get the files, where no archive is public.
        name: a test set's.
    """

    source: str
    targets: tuple[str, ...]
    archive: Archive | None = None
    remedy: str = "put it there, plain or as .gz"
    name: str = ""

    def files(self, folder: Path) -> list[Path]:
        """Return the files of the part in a folder, as named or with .gz added.

        Raises:
            FileNotFoundError: one is missing, with the remedy.
        """
        remedy = self.remedy
        if self.archive:
            name = self.archive.name
            remedy = f"fetch {self.archive.url} as {name}, and unpack it in {folder}"
        found = []
        for name in (self.source, *self.targets):
            path = existing(folder / name)
            if path is None:
                raise FileNotFoundError(f"{folder / name} does not exist: {remedy}")
            found.append(path)
        return found


def existing(path: Path) -> Path | None:
    """Return a file as named, or with .gz added, if it exists.

    Raises:
        ValueError: both do.
    """
    found = [x for x in (path, Path(f"{path}.gz")) if x.is_file()]
    if len(found) > 1:
        raise ValueError(f"{path} must not stand beside {found[1].name}: remove one")
    return found[0] if found else None


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text, plain or .gz, or the segments of an SGML file.

    White space, line separators of other systems among it, becomes single blanks.

    Raises:
        ValueError: the file is not UTF-8, or its .gz is damaged.
    """
    packed = path.suffix == ".gz"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            for _, text in decoded(path, file):
                if path.name.removesuffix(".gz").endswith((".sgm", ".sgml")):
                    segment = re.search(r"<seg\b[^>]*>(.*)</seg>", text, re.IGNORECASE)
                    if segment is None:
                        continue
                    text = segment[1]
                yield " ".join(text.removeprefix("\ufeff").split())
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(
            f"{path} must be a whole file, but is cut off or damaged ({error}): fetch "
            "it anew"
        ) from error


def rows_of(paths: list[Path], first: int | None = None) -> Iterator[Row]:
    """Yield the lines of files side by side, or the first of them.

    Raises:
        ValueError: the files do not have the same number of lines, or none.
    """
    return islice(each_parallel(*paths, read=lines_of), first)


def tokenise_row(row: Row, languages: Row, lowercase: bool) -> Row:
    """Tokenise each text of a row in its language."""
    return tuple(tokeniser(x, lowercase)(text) for x, text in zip(languages, row))


def tokenised(
    rows: Iterable[Row], languages: Row, lowercase: bool, workers: int
) -> Iterator[Row]:
    """Tokenise a stream of rows in several processes, in order."""
    rows = iter(rows)
    work = partial(tokenise_row, languages=languages, lowercase=lowercase)
    kill = (os.getpid(), signal.SIGKILL)  # with this process, whose rows they have
    with ProcessPoolExecutor(workers, initializer=tie, initargs=kill) as pool:
        while group := [*islice(rows, GROUP * CHUNK)]:
            few = workers == 1 or len(group) <= CHUNK  # processes would start longer
            yield from (
                map(work, group) if few else pool.map(work, group, chunksize=CHUNK)
            )
