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
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from sbnmt_plugin.lines import each_entry

logger = logging.getLogger(__name__)

SEPARATOR = "|||"
FORM = f"'source phrase {SEPARATOR} target phrase {SEPARATOR} share count'"
PHRASE = r"((?:(?!\|\|\| )\S+ )+)\|\|\|"
ENTRY = re.compile(rf"{PHRASE} {PHRASE} [01]\.[0-9]+ [1-9][0-9]*")
S = TypeVar("S", bound=Hashable)  # a source token: its text, or its id
T = TypeVar("T", bound=Hashable)  # a target token


class PhraseTable(Generic[S, T]):
    """One target phrase for each of some source phrases.

    Args:
        entries: source phrase -> target phrase, neither of them empty.
        name: for messages.
    """

    def __init__(
        self,
        entries: Mapping[tuple[S, ...], tuple[T, ...]],
        name: str = "the phrase table",
    ) -> None:
        self.entries = entries
        self.name = name
        self.longest = max(map(len, entries))  # tokens of a source phrase

    @staticmethod
    def load(path: str | os.PathLike[str]) -> PhraseTable[str, str]:
        """Read a file.

        Raises:
            FileNotFoundError, ValueError: see :func:`each_entry`; a source phrase has
                two entries.
        """
        name, remedy = os.fspath(path), "make the table with sbnmt phrase-table"
        found: dict[tuple[str, ...], tuple[str, ...]] = {}
        for number, entry in enumerate(each_entry(name, ENTRY, FORM, remedy), start=1):
            source, target = (tuple(phrase.split()) for phrase in entry.groups())
            if source in found:
                raise ValueError(
                    f"{name}, line {number}, must not have the source phrase "
                    f"{' '.join(source)!r}, which an earlier line has: keep one of them"
                )
            found[source] = target
        return PhraseTable(found, name)

    def with_ids(self, source: Any, target: Any) -> PhraseTable[int, int]:
        """Return the table over ids, without the entries that have an unknown word.

        Args:
            source, target: dictionaries.

        Raises:
            ValueError: no entry remains.
        """
        found = {}
        for words, others in self.entries.items():
            key, value = (
                tuple(map(source.index, words)),
                tuple(map(target.index, others)),
            )
            if source.unk() not in key and target.unk() not in value:
                found[key] = value
        if not found:
            raise ValueError(
                f"{self.name} must have an entry whose words are all in the "
                f"dictionaries, but none of its {len(self.entries)} has: make it from "
                "the texts that the data folder was made from"
            )
        logger.info(
            "%s: %d of %d entries have all words in the dictionaries",
            *(self.name, len(found), len(self.entries)),
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
            for end in range(min(start + self.longest, len(tokens)), start, -1):
                if target := self.entries.get(tuple(tokens[start:end])):
                    found.extend(target)
                    break
            start = end  # behind a single token where none was found
        return found


def entry_line(source: str, target: str, share: float, count: int) -> str:
    """Format an entry as a line that :data:`ENTRY` matches."""
    return f"{source} {SEPARATOR} {target} {SEPARATOR} {share:.6f} {count}"
