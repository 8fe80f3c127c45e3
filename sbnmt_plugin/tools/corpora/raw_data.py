"""Raw files of a corpus: fetched, unpacked, read and tokenised.

Texts are streams of rows, so that a corpus may be larger than the memory.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import shutil
import signal
import sys
import tarfile
import urllib.request
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path

from sbnmt_plugin.lines import decoded
from sbnmt_plugin.tools.tied import tie
from sbnmt_plugin.tools.tokens import tokeniser
from sbnmt_plugin.tools.unfinished import new_file

Row = tuple[str, ...]  # a sentence and its translations
CHUNK = 5000  # sentences that a process tokenises at a time
# errors of reading a packed file that is cut off or damaged
DAMAGES = (tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError)


@contextmanager
def damage_is_named(path: Path) -> Iterator[None]:
    """Raise ValueError with the file's name where a packed file is damaged."""
    try:
        yield
    except DAMAGES as error:
        raise ValueError(
            f"{path} must be a whole file, but is cut off or "
            f"damaged ({error}): fetch it anew"
        ) from error


@dataclass(frozen=True)
class Archive:
    """A .tgz that is public.

    Attributes:
        name: the file's, in the folder of raw data.
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
    remedy: str = ""
    name: str = ""

    @property
    def paths(self) -> Row:
        return (self.source, *self.targets)


@dataclass
class Raw:
    """The folder of raw data.

    Attributes:
        folder: given by the user.
        download: allows archives that are missing to be fetched.
    """

    folder: Path
    download: bool = False

    def find(self, part: Part) -> list[Path]:
        """Return the files of a part, unpacked if need be.

        Raises:
            FileNotFoundError: one is missing, with the remedy.
        """
        missing = tuple(name for name in part.paths if self.existing(name) is None)
        if missing and part.archive is not None:
            self.unpack(part.archive, missing)
        found = []
        for name in part.paths:
            path = self.existing(name)
            if path is None:
                archive = part.archive
                where = f" ({archive.name} has no such file)" if archive else ""
                remedy = part.remedy or "put it there, plain or as .gz"
                raise FileNotFoundError(
                    f"{self.folder / name} does not exist{where}: {remedy}"
                )
            found.append(path)
        return found

    def existing(self, name: str) -> Path | None:
        """Return a file as named, or with .gz added, if it exists."""
        paths = self.folder / name, self.folder / f"{name}.gz"
        return next((path for path in paths if path.is_file()), None)

    def unpack(self, archive: Archive, names: Row) -> None:
        """Unpack some files of an archive, which is fetched if it is missing.

        Raises:
            ValueError: it is damaged; files that were whole before the damage stay.
        """
        path = self.folder / archive.name
        if not path.is_file():
            self.fetch(archive)
        wanted = set(names)
        with damage_is_named(path), tarfile.open(path, "r:*") as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                if name in wanted and member.isfile():
                    content = tar.extractfile(member)
                    assert content is not None
                    with new_file(self.folder / name, "wb") as file:
                        shutil.copyfileobj(content, file)
                    wanted.remove(name)
                if not wanted:
                    break

    def fetch(self, archive: Archive) -> None:
        """Download an archive, if that is allowed.

        Raises:
            FileNotFoundError: it is not.
            ValueError: the download fails, or is cut short.
        """
        path, url = self.folder / archive.name, archive.url
        if not self.download:
            raise FileNotFoundError(
                f"{path} does not exist: put {url} there under this name, or let "
                "--download fetch it"
            )
        print(f"downloading {url}", file=sys.stderr)
        try:
            with urllib.request.urlopen(url) as response, new_file(path, "wb") as file:
                shutil.copyfileobj(response, file)
                size = response.headers.get("Content-Length")
                if size is not None and file.tell() != int(size):
                    raise OSError(f"{file.tell()} of {size} bytes came")
        except OSError as error:
            raise ValueError(
                f"{url} cannot be fetched ({error}): try again, or put the file at "
                f"{path}"
            ) from error


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
