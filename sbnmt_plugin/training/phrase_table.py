"""Phrase table, and rough translation by it (Guo et al., AAAI 2019, §3.1).

The file has a line an entry, sorted by the source phrase, every source phrase once::

    source phrase ||| target phrase ||| φ(e|f) count

φ(e|f) is the share of this target phrase among all that were counted for the source
phrase, count how often the two were counted together.  Lookup needs neither; they are
there to be read.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

SEPARATOR = "|||"
NUMBERS = re.compile(r"[01]\.[0-9]+ [1-9][0-9]*")
S = TypeVar("S", bound=Hashable)  # a source token: its text, or its id
T = TypeVar("T", bound=Hashable)  # a target token


class PhraseTable(Generic[S, T]):
    """One target phrase for each of some source phrases; immutable.

    Args:
        entries: source phrase -> target phrase, neither of them empty.
        name: for messages.

    Raises:
        ValueError: there is no entry.
    """

    def __init__(
        self,
        entries: Mapping[tuple[S, ...], tuple[T, ...]],
        name: str = "the phrase table",
    ) -> None:
        if not entries:
            raise ValueError(
                f"{name} must have at least one entry, but has none: make it from "
                "another text, or with a lower count"
            )
        self._entries = dict(entries)
        self.name = name
        self.longest = max(map(len, self._entries))  # tokens of a source phrase

    @property
    def entries(self) -> Mapping[tuple[S, ...], tuple[T, ...]]:
        """Source phrase -> target phrase; read-only."""
        return MappingProxyType(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> PhraseTable[str, str]:
        """Read a file.

        Raises:
            FileNotFoundError: no such file.
            ValueError: it is not UTF-8, a line is no entry, a source phrase has two, or
                there is none; with file and line.
        """
        name = os.fspath(path)
        if not os.path.isfile(name):
            raise FileNotFoundError(
                f"{name} must be a phrase table, but there is no such file: make it "
                "with sbnmt phrase-table"
            )
        found: dict[tuple[str, ...], tuple[str, ...]] = {}
        for number, line in numbered_lines(name):
            source, target = parse_entry(line, f"{name}, line {number},")
            if source in found:
                raise ValueError(
                    f"{name}, line {number}, must not have the source phrase "
                    f"{' '.join(source)!r}, which an earlier line has: keep one of them"
                )
            found[source] = target
        return PhraseTable(found, name)

    def with_ids(
        self,
        source_index: Callable[[S], int],
        target_index: Callable[[T], int],
        source_unknown: int,
        target_unknown: int,
    ) -> PhraseTable[int, int]:
        """Return the table over ids, without the entries that have an unknown word.

        Args:
            source_index, target_index: a token's id, as a dictionary's ``index``.
            source_unknown, target_unknown: its id where the dictionary lacks it.

        Raises:
            ValueError: no entry remains.
        """
        found = {}
        for source, target in self._entries.items():
            key = tuple(map(source_index, source))
            value = tuple(map(target_index, target))
            if source_unknown not in key and target_unknown not in value:
                found[key] = value
        if not found:
            raise ValueError(
                f"{self.name} must have an entry whose words are all in the "
                f"dictionaries, but none of its {len(self)} has: make it from the "
                "texts that the data folder was made from"
            )
        logger.info(
            "%s: %d of %d entries have all words in the dictionaries",
            *(self.name, len(found), len(self)),
        )
        return PhraseTable(found, self.name)

    def lookup(self, tokens: Sequence[S]) -> list[T]:
        """Translate from the left, always by the longest phrase there is.

        A token that begins none is skipped, so the list may be empty.  The caller
        handles ``</s>``.
        """
        found: list[T] = []
        start = 0
        while start < len(tokens):
            end, target = self._longest_at(tokens, start)
            found.extend(target)
            start = end
        return found

    def _longest_at(self, tokens: Sequence[S], start: int) -> tuple[int, tuple[T, ...]]:
        """Return the place behind the longest phrase at ``start``, its translation."""
        for end in range(min(start + self.longest, len(tokens)), start, -1):
            target = self._entries.get(tuple(tokens[start:end]))
            if target is not None:
                return end, target
        return start + 1, ()


def numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file without their line feeds, numbered from 1.

    Raises:
        ValueError: one is not UTF-8.
    """
    with open(path, "rb") as file:
        for number, data in enumerate(file, start=1):
            try:
                yield number, data.decode("utf-8").removesuffix("\n")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}, line {number}, must be UTF-8, but has the byte "
                    f"0x{data[error.start]:02x}: convert the file (iconv -t utf-8)"
                ) from error


def parse_entry(line: str, place: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Parse a line into source phrase and target phrase.

    Args:
        place: the file and the line, for messages.

    Raises:
        ValueError: it is no entry, or a phrase is empty.
    """
    fields = f" {line} ".split(f" {SEPARATOR} ")
    if len(fields) != 3 or not NUMBERS.fullmatch(fields[2].strip()):
        raise ValueError(
            f"{place} must be 'source phrase {SEPARATOR} target phrase {SEPARATOR} "
            f"share count', but is {line[:80]!r}: make the table with sbnmt "
            "phrase-table"
        )
    source, target = (tuple(field.split()) for field in fields[:2])
    for side, phrase in ("source", source), ("target", target):
        if not phrase:
            raise ValueError(
                f"{place} must have a {side} phrase, but it is empty: remove the line"
            )
    return source, target


def entry_line(source: str, target: str, share: float, count: int) -> str:
    """Format an entry as the line that :func:`parse_entry` reads."""
    return f"{source} {SEPARATOR} {target} {SEPARATOR} {share:.6f} {count}"
