"""What a shell script runs: its programs replaced by ones that note their words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PROGRAMS = ("sbnmt", "fairseq-train", "fairseq-generate", "ln")
END = "\n--end--"  # of a command; a word after a zero byte
STUB = """\
#!/usr/bin/env bash
printf '%s\\0' "${0##*/}" "$@" >>"$NOTED"
printf '%s\\0' $'\\n--end--' >>"$NOTED"
"""


def noted(script: Path, folder: Path, *words: object) -> list[list[str]]:
    """The commands of a script, as bash has expanded them.

    Args:
        folder: a new one, for the stubs and their notes.
        words: of the script's command line.
    """
    programs = folder / "venv" / "bin"
    programs.mkdir(parents=True)
    for name in PROGRAMS:
        (programs / name).write_text(STUB)
        (programs / name).chmod(0o755)
    notes = folder / "notes"
    environment = {
        **os.environ,
        "VENV": str(programs.parent),  # for a clone's scripts
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "NOTED": str(notes),
    }
    subprocess.run(
        ["bash", str(script), *map(str, words)],
        check=True,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    found: list[list[str]] = [[]]
    for word in notes.read_text(encoding="utf-8").split("\0")[:-1]:
        if word == END:
            found.append([])
        else:
            found[-1].append(word)
    return found[:-1]


def options(words: list[str]) -> list[tuple[str, ...]]:
    """A command's options, with their values, in any order but that of repetitions."""
    found: list[list[str]] = [[]]
    for word in words:
        if word.startswith("-") and not word[1:2].isdigit():
            found.append([])
        found[-1].append(word)
    head, *others = found
    return [tuple(head), *sorted(map(tuple, others), key=lambda unit: unit[0])]
