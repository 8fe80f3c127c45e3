"""Checksums beside the files of a data folder: a changed byte is an error.

SHA256SUMS has the form of sha256sum: ``sha256sum -c SHA256SUMS`` checks a folder, too.
Folders without it, as fairseq-preprocess writes them, are taken as they are.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from sbnmt_plugin.lines import each_entry

NAME = "SHA256SUMS"
LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_sums(folder: Path) -> None:
    """Write the checksums of all files of a folder but logs."""
    paths = sorted(p for p in folder.iterdir() if p.is_file() and p.suffix != ".log")
    lines = [f"{sha256_of(path)}  {path.name}\n" for path in paths]
    (folder / NAME).write_text("".join(lines), encoding="utf-8", newline="\n")


def check_sums(*paths: str) -> None:
    """Compare files with the checksums in their folder, where there are any.

    Raises:
        ValueError: one differs or is missing; see :func:`noted_sums`.
    """
    for path in paths:
        folder, name = os.path.split(path)
        noted = noted_sums(os.path.join(folder, NAME)).get(name)
        if noted is None:
            continue
        if not os.path.isfile(path) or sha256_of(path) != noted:
            raise ValueError(
                f"{path} must be as it was written, but its SHA-256 is not that in "
                f"{NAME} beside it: it is damaged; binarise the texts again "
                f"(sbnmt binarise), or remove {NAME} if you have changed the "
                "folder yourself"
            )


def noted_sums(path: str) -> dict[str, str]:
    """Read checksums by the names of their files; none where SHA256SUMS is missing.

    Raises:
        ValueError: a line of another form.
    """
    if not os.path.isfile(path):
        return {}
    remedy = "remove it if you trust the folder, or binarise the texts again"
    entries = each_entry(path, LINE, "a SHA-256, two blanks and a name", remedy)
    return {entry[2]: entry[1] for entry in entries}
