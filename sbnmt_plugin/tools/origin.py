"""Origin of a result, by which a repeated command knows whether it is done."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

SUFFIX = ".pt"
NAMED = "--path", "--enat-table", "--nat-teacher"  # options whose files it is made from
MODELS = "models"  # key of what :func:`stamps_of` gives
NAMES = {"input sha256": "another input", "options": "other options"}


def checkpoints_in(words: list[str]) -> list[str]:
    """Return the models of a command line: values of :data:`NAMED`, and all *.pt.

    They may stand alone, as ``--flag=PATH``, or as an ensemble ``PATH:PATH``.
    """
    found = []
    before = ""
    for word in words:
        flag, equals, value = word.partition("=")
        if not (equals and flag.startswith("--")):
            flag, value = before, word
        paths = value.split(":")
        found += [p for p in paths if flag in NAMED or p.endswith(SUFFIX)]
        before = word
    return list(dict.fromkeys(found))


def sha256_of(*texts: Iterable[str]) -> str:
    """Return the checksum of line-aligned texts, one after the other."""
    found, between = hashlib.sha256(), ""
    for line in chain(*texts):
        found.update(f"{between}{line}".encode())
        between = "\n"
    return found.hexdigest()


def stamps_of(words: list[str]) -> dict[str, list[int]]:
    """Return size and time of change of each checkpoint that a command line names.

    Returns:
        path -> bytes, and nanoseconds since 1970, for those that exist.
    """
    stamps = {}
    for name in checkpoints_in(words):
        path = Path(name)
        if path.is_file():
            status = path.stat()
            stamps[name] = [status.st_size, status.st_mtime_ns]
    return stamps


def differences(known: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Say how the origin of a result differs from what would be used now.

    Args:
        known: origin as it was noted.
        now: origin of a new result; what was not noted is not compared, models
            excepted.

    Returns:
        Phrases that go on after "was made with"; none where they agree.
    """
    found = [
        NAMES.get(key, f"another {key}")
        for key in now
        if key != MODELS and known.get(key, now[key]) != now[key]
    ]
    before, after = known.get(MODELS, {}), now.get(MODELS, {})
    paths = sorted({**before, **after})
    return found + [f"another {x}" for x in paths if before.get(x) != after.get(x)]
