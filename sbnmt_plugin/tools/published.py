"""Corpora as they are published: fetched, checked, unpacked, cleaned and tokenised.

A recipe's prepare.py declares a :class:`Corpus` and calls :func:`prepare`.  Texts are
read and written as streams, so that a corpus may be larger than the memory.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import math
import os
import re
import shutil
import signal
import sys
import tarfile
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from tqdm import tqdm

from sbnmt_plugin.steps import PLUGIN
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.text import decoded, read_lines, write_lines
from sbnmt_plugin.tools.tied import tie
from sbnmt_plugin.tools.tokens import tokeniser
from sbnmt_plugin.tools.unfinished import new_file

CHUNK = 5000  # sentences that a process tokenises at a time
CHECKSUMS = "SHA256SUMS"
Row = tuple[str, ...]  # a sentence and its translations


@dataclass(frozen=True)
class Archive:
    """A .tgz that is public.

    Attributes:
        name: of the file in the folder of raw data.
        url: where it is published.
    """

    name: str
    url: str


@dataclass(frozen=True)
class Part:
    """A line-aligned text and its translations.

    Attributes:
        source: its path in the folder of raw data: plain, .gz or .sgm.
        targets: of its translations, the first one being the reference for
            validation; a training set has one.
        archive: that holds these files under these paths.
        remedy: how to get the files, where no archive is public.
        name: of a test set.
    """

    source: str
    targets: tuple[str, ...]
    archive: Archive | None = None
    remedy: str = ""
    name: str = ""

    @property
    def paths(self) -> Row:
        return (self.source, *self.targets)


@dataclass(frozen=True)
class Limits:
    """What a training pair must keep to, as in Moses's clean-corpus-n.

    Attributes:
        longest: tokens of either side; an empty side is never kept.
        ratio: of the longer side to the shorter one, in tokens.
        word: characters of a token.
    """

    longest: int = 80
    ratio: float = 9.0
    word: int = 1000

    def keep(self, pair: Row) -> bool:
        """Whether a tokenised pair stays."""
        words = [side.split() for side in pair]
        least, most = sorted(map(len, words))
        return (
            least > 0
            and most <= self.longest
            and most <= self.ratio * least
            and all(len(word) <= self.word for side in words for word in side)
        )


@dataclass(frozen=True)
class Corpus:
    """What a recipe is made of."""

    source: str
    target: str
    train: tuple[Part, ...]
    valid: Part
    test: tuple[Part, ...]
    limits: Limits = Limits()


# ---------------------------------------------------------------- files


def sha256(path: Path) -> str:
    """Checksum of a file of any size."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


class Raw:
    """The folder of raw data.

    Args:
        folder: given by the user.
        checksums: file of lines "SHA-256<blank><blank>name"; a first download adds
            to it, later files must agree with it.
        download: whether archives that are missing may be fetched.
        mirror: URL of a folder to fetch them from, instead of where they are public.
    """

    def __init__(
        self, folder: Path, checksums: Path, download: bool = False, mirror: str = ""
    ) -> None:
        self.folder = folder
        self.checksums = checksums
        self.download = download
        self.mirror = mirror
        self.known: dict[str, str] = {}
        if checksums.is_file():
            lines = [line.split() for line in read_lines(checksums)]
            self.known = {name: value for value, name in lines}

    def find(self, part: Part) -> list[Path]:
        """The files of a part, unpacked if need be.

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
        """A file as named, or with .gz added."""
        for path in (self.folder / name, self.folder / f"{name}.gz"):
            if path.is_file():
                return path
        return None

    def unpack(self, archive: Archive, names: Row) -> None:
        """Unpack some files of an archive, which is checked first."""
        path = self.folder / archive.name
        if not path.is_file():
            self.fetch(archive)
        self.check(path)
        wanted = set(names)
        with tarfile.open(path, "r:*") as tar:
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
        """Download an archive; the first one sets the checksum."""
        path, url = self.folder / archive.name, archive.url
        if not self.download:
            raise FileNotFoundError(
                f"{path} does not exist: put {url} there under this name, or let "
                "--download fetch it"
            )
        if self.mirror:
            url = f"{self.mirror.rstrip('/')}/{archive.name}"
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
        if archive.name not in self.known:
            self.known[archive.name] = sha256(path)
            lines = [f"{value}  {name}" for name, value in sorted(self.known.items())]
            write_lines(self.checksums, lines)

    def check(self, path: Path) -> None:
        """Compare an archive with its known checksum.

        Raises:
            ValueError: they differ.
        """
        known = self.known.get(path.name)
        if known is not None and (found := sha256(path)) != known:
            raise ValueError(
                f"{path} must have the SHA-256 {known}, says {self.checksums}, but has "
                f"{found}: fetch it anew, or remove its line if the publisher has "
                "replaced the file"
            )


# ---------------------------------------------------------------- text


def lines_of(path: Path) -> Iterator[str]:
    """Lines of a UTF-8 text, plain or .gz, or the segments of an SGML file.

    White space, line separators of other systems among it, becomes single blanks.

    Raises:
        ValueError: the file is not UTF-8.
    """
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for _, text in decoded(path, file):
            if path.name.removesuffix(".gz").endswith((".sgm", ".sgml")):
                segment = re.search(r"<seg\b[^>]*>(.*)</seg>", text, re.IGNORECASE)
                if segment is None:
                    continue
                text = segment[1]
            yield " ".join(text.removeprefix("\ufeff").split())


def rows_of(paths: list[Path], first: int | None = None) -> Iterator[Row]:
    """The lines of files side by side, or the first of them.

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


# ---------------------------------------------------------------- a recipe's text


class Preparation:
    """Writes what ``sbnmt recipe`` expects.

    Args:
        corpus: the recipe's.
        raw: where to read.
        args: the command line.
    """

    def __init__(self, corpus: Corpus, raw: Raw, args: argparse.Namespace) -> None:
        self.corpus = corpus
        self.raw = raw
        self.output = Path(args.output)
        self.first = args.first
        self.words = args.words
        self.lowercase = args.lowercase
        self.workers = args.workers

    def wanted(self, row: Row) -> bool:
        """Whether a tokenised row's first target is as long as is asked for."""
        least, most = self.words or (0, math.inf)
        return least <= len(row[1].split()) <= most

    def tokenised(self, rows: Iterable[Row], references: int = 1) -> Iterator[Row]:
        languages = (self.corpus.source, *[self.corpus.target] * references)
        return tokenised(rows, languages, self.lowercase, self.workers)

    def train(self) -> None:
        """Clean pairs of all parts."""
        found = [self.raw.find(part) for part in self.corpus.train]
        rows = chain.from_iterable(rows_of(paths, self.first) for paths in found)
        read = kept = 0
        prefix = self.output / "train"
        with (
            new_file(f"{prefix}.{self.corpus.source}") as source,
            new_file(f"{prefix}.{self.corpus.target}") as target,
        ):
            for pair in tqdm(self.tokenised(rows), unit="pair", leave=False):
                read += 1
                if self.wanted(pair) and self.corpus.limits.keep(pair):
                    kept += 1
                    source.write(pair[0] + "\n")
                    target.write(pair[1] + "\n")
        print(f"train: {kept} of {read} sentence pairs kept", file=sys.stderr)

    def held_out(self, split: str, parts: tuple[Part, ...]) -> None:
        """Write a validation or test set; the file that tells it is done comes last."""
        raw: list[Row] = []
        tokens: list[Row] = []
        sizes = []
        for part in parts:
            rows = [*rows_of(self.raw.find(part), self.first)]
            both = zip(rows, self.tokenised(rows, len(rows[0]) - 1))
            kept = [pair for pair in both if self.wanted(pair[1])]
            raw += [row for row, _ in kept]
            tokens += [row for _, row in kept]
            sizes.append(f"{part.name or split}\t{len(kept)}")
        if not raw:
            raise ValueError(
                f"--words {self.words[0]} {self.words[1]} must leave sentences, but "
                f"{split} has none of such a length"
            )
        print(f"{split}: {len(raw)} sentences", file=sys.stderr)
        if len(parts) > 1:
            write_lines(self.output / f"{split}.sets", sizes)
        target = self.corpus.target
        for place in reversed(range(1, len(raw[0]))):
            number = f".{place}" if place > 1 else ""
            reference = self.output / f"{split}.ref.{target}{number}"
            write_lines(reference, (row[place] for row in raw))
            path = self.output / f"{split}.{target}{number}"
            if place == 1:
                source = self.output / f"{split}.{self.corpus.source}"
                write_lines(source, (row[0] for row in tokens))
            write_lines(path, (row[place] for row in tokens))


def parse(description: str, licensed: bool) -> argparse.Namespace:
    """The command line of every prepare.py."""
    parser = command.parser(description)
    parser.add_argument("--data", required=True, help="folder of the raw files")
    parser.add_argument("--output", required=True, help="folder to write")
    parser.add_argument("--lowercase", action="store_true")
    parser.add_argument("--first", type=int, help="read so many lines of each file")
    parser.add_argument(
        "--words",
        type=int,
        nargs=2,
        metavar=("MIN", "MAX"),
        help="of all sets, keep sentences whose target (the first) has so many tokens",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    if not licensed:
        parser.add_argument(
            "--download", action="store_true", help="fetch archives that are missing"
        )
        parser.add_argument("--mirror", default="", help="URL of a folder of them")
        parser.add_argument(
            "--checksums",
            help="default: SHA256SUMS beside prepare.py, in --data where that is "
            "installed",
        )
    args = parser.parse_args()
    for name in ("first", "workers"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise ValueError(f"--{name} must be ≥ 1, but is {value} instead")
    least, most = args.words or (1, 1)
    if not 1 <= least <= most:
        raise ValueError(
            f"--words must be 1 ≤ MIN ≤ MAX, but are {least} {most} instead"
        )
    return args


def checksums_of(script: Path, data: Path) -> Path:
    """Where the list of checksums is kept: with the recipe, if that is the user's.

    Args:
        script: the recipe's prepare.py.
        data: the folder of raw files.
    """
    installed = PLUGIN in script.resolve().parents
    return (data if installed else script.parent) / CHECKSUMS


def prepare(description: str, script: str, corpus: Corpus) -> None:
    """A recipe's prepare.py.

    Args:
        description: for --help.
        script: prepare.py's path.
        corpus: what to prepare.
    """
    parts = (*corpus.train, corpus.valid, *corpus.test)
    public = any(part.archive for part in parts)
    args = parse(description, licensed=not public)
    options: dict[str, Any] = {}
    checksums = checksums_of(Path(script), Path(args.data))
    if public:
        checksums = Path(args.checksums or checksums)
        options = {"download": args.download, "mirror": args.mirror}
    raw = Raw(Path(args.data), checksums, **options)
    for part in parts:  # what is missing is told before hours of work
        raw.find(part)
    preparation = Preparation(corpus, raw, args)
    preparation.train()
    preparation.held_out("valid", (corpus.valid,))
    preparation.held_out("test", corpus.test)
