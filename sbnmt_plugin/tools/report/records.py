"""Records of the search, as ``--sb-records`` writes them: who won each sentence."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.text import as_written, read_lines, remove_bpe

NAMES = ("l2r", "r2l")
SPELLS = re.compile(r"[\W_]+|unk")
SAME_SOURCES = 0.5  # of the records' sources must be lines of --source


@dataclass(frozen=True)
class Race:
    """Best hypotheses of a sentence in both directions, and the winner.

    Attributes:
        winner: ``l2r`` or ``r2l``.
        text: per direction; None where it never finished.
        score: per direction, natural logarithm, normalised by length.
    """

    winner: str
    text: dict[str, str | None]
    score: dict[str, float | None]

    @property
    def both(self) -> bool:
        return all(self.text[name] is not None for name in NAMES)

    @property
    def margin(self) -> float | None:
        """Difference of the scores, where both directions have one."""
        left, right = self.score["l2r"], self.score["r2l"]
        return None if left is None or right is None else abs(left - right)

    def answer(self, direction: str) -> str:
        """Return this direction's text, or the other's where it has none."""
        own = self.text[direction]
        other = self.text[NAMES[1 - NAMES.index(direction)]]
        return own if own is not None else other or ""


def race(record: dict[str, Any]) -> Race:
    """Read an object of ``--sb-records``."""
    entries = {name: record.get(name) or {} for name in NAMES}
    return Race(
        record["winner"],
        {n: join_subwords(e["text"]) if e else None for n, e in entries.items()},
        {n: float(e["score"]) if e else None for n, e in entries.items()},
    )


def join_subwords(line: str) -> str:
    """Join subwords: ``a@@ b`` and sentencepiece's ``▁a b`` become words."""
    if "▁" in line:
        return line.replace(" ", "").replace("▁", " ").strip()
    return remove_bpe(line)


def read_jsonl(flag: str, path: Path, needed: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read objects of a JSON-lines file that have these keys.

    Raises:
        ValueError: with the line that is something else.
    """
    found = []
    for number, line in enumerate(read_lines(path), start=1):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{flag} {path}, line {number}, must be JSON, but is not "
                f"({error.msg}): give the file that the option of that name wrote"
            ) from error
        if not isinstance(value, dict) or any(key not in value for key in needed):
            raise ValueError(
                f"{flag} {path}, line {number}, must be an object with "
                f"{', '.join(needed)}, but is not: give the file that the task wrote"
            )
        found.append(value)
    return found


def spelling(line: str) -> str:
    """Return letters and digits alone, which tokenisation does not change."""
    return SPELLS.sub("", line.lower())


def read_races(flag: str, path: Path, source: list[str]) -> list[Race]:
    """Read records of ``--sb-records`` in the order of the sources.

    They are found by ``id``, or by text where fairseq gave none (interactive mode).

    Raises:
        ValueError: they do not cover the sources, or belong to others.
    """
    with as_written(path, "decode again"):
        records = read_jsonl(flag, path, ("id", "source", "winner", *NAMES))
        count = len(source)
        places = {spelling(line): i for i, line in reversed(list(enumerate(source)))}
        by_place: dict[int, dict[str, Any]] = {}
        matching = 0
        for record in records:
            text = spelling(join_subwords(record["source"]))
            place = record["id"]
            if place is None:
                place = places.get(text)
            elif isinstance(place, int) and 0 <= place < count:
                matching += (
                    text == spelling(source[place]) or "<unk>" in record["source"]
                )
            else:
                raise ValueError(
                    f"{flag} {path} has the id {place}, but --source has the lines 0 … "
                    f"{count - 1}: give the records of this test set"
                )
            if place is not None:
                by_place[place] = record
        numbered = sum(record["id"] is not None for record in records)
        if numbered and matching < SAME_SOURCES * numbered:
            raise ValueError(
                f"{flag} {path} must belong to --source, but only {matching} of its "
                f"{numbered} sources are the line of their id: give the records of "
                "this test set"
            )
        if not numbered:  # repeated sources were translated alike
            by_place = {
                i: by_place[places[spelling(line)]]
                for i, line in enumerate(source)
                if places[spelling(line)] in by_place
            }
        if len(by_place) != count:
            missing = next(i for i in range(count) if i not in by_place)
            raise ValueError(
                f"{flag} {path} must have a record for each of the {count} sentences, "
                f"but has {len(by_place)} (none for line {missing + 1}): was the "
                "search interrupted? Decode again"
            )
        return [race(by_place[i]) for i in range(count)]
