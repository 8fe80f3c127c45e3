"""Records of the search, as ``--sb-records`` writes them: who won each sentence."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

from sbnmt_plugin.symbols import NAMES
from sbnmt_plugin.tools.subwords import undoing
from sbnmt_plugin.tools.text import as_written, read_lines

SPELLS = re.compile(r"[\W_]+|unk")
SAME = 0.5  # of the records' texts must be lines of --source, and of --system


def read_jsonl(flag: str, path: Path, needed: tuple[str, ...]) -> list[dict[str, Any]]:
    """Read objects of a JSON-lines file that have these keys.

    Raises:
        ValueError: with the line that is something else.
    """
    found = []
    for number, line in enumerate(read_lines(path), start=1):
        value = None
        with contextlib.suppress(json.JSONDecodeError):
            value = json.loads(line)
        if not isinstance(value, dict) or any(key not in value for key in needed):
            raise ValueError(
                f"{flag} {path}, line {number}, must be a JSON object with "
                f"{', '.join(needed)}, but is not: give the file that the option of "
                "that name wrote"
            )
        found.append(value)
    return found


def spelling(line: str) -> str:
    """Return letters and digits alone, which tokenisation does not change."""
    return SPELLS.sub("", line.lower())


def is_line(text: str | None, line: str) -> bool:
    """Tell whether a text of a record, if it has one, is a line of a file."""
    if text is None:
        return True
    pieces = "▁" in text or "<0x" in text
    text = undoing(pieces)(text).strip()
    return spelling(text) == spelling(line) or "<unk>" in text


def read_winners(
    flag: str, path: Path, source: list[str], written: list[str]
) -> list[str]:
    """Read who won each sentence, ``l2r`` or ``r2l``, in the order of the sources.

    Args:
        path: written by ``--sb-records``, whose ids are the sources' numbers.
        written: the system's translation of each source.

    Raises:
        ValueError: they do not cover the sources, or belong to others or to another
            system.
    """
    with as_written(path, "decode again"):
        found: dict[int, str] = {}
        matching, count = {"source": 0, "system": 0}, len(source)
        for record in read_jsonl(flag, path, ("id", "source", "winner")):
            place = record["id"]
            if not isinstance(place, int) or not 0 <= place < count:
                raise ValueError(
                    f"{flag} {path} has the id {place}, but --source has the lines "
                    f"0 … {count - 1}: give fairseq-generate's records of this test set"
                )
            if (winner := record["winner"]) not in NAMES:
                raise ValueError(f"a winner must be l2r or r2l, but is {winner}")
            found[place] = winner
            text = (record.get(winner) or {}).get("text")
            matching["source"] += is_line(record["source"], source[place])
            matching["system"] += is_line(text, written[place])
        for name, number in matching.items():
            if number < SAME * len(found):
                raise ValueError(
                    f"{flag} {path} must belong to --{name}, but only {number} of its "
                    f"{len(found)} texts are the line of their id: give the records of "
                    "this system and test set"
                )
        if missing := [i + 1 for i in range(count) if i not in found]:
            raise ValueError(
                f"{flag} {path} must have a record for each of the {count} sentences, "
                f"but has {len(found)} (none for line {missing[0]}): was the search "
                "interrupted? Decode again"
            )
        return [found[place] for place in range(count)]
