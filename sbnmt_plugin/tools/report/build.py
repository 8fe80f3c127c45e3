"""Build a report: read, compute, draw, write."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.report import (
    accuracy,
    beams,
    inputs,
    lengths,
    scores,
    sentences,
    training,
    winners,
)
from sbnmt_plugin.tools.report.content import Section
from sbnmt_plugin.tools.report.inputs import Inputs
from sbnmt_plugin.tools.report.page import render
from sbnmt_plugin.tools.scoring import tokeniser_for
from sbnmt_plugin.tools.unfinished import new_file, new_folder

SECTIONS: tuple[Any, ...] = (
    *(scores, accuracy, lengths, beams, winners, sentences, training),
)
OWN = ("report.html", "figures", "numbers")
NOISY = ("matplotlib", "fairseq", "sacrebleu")  # once fairseq is imported


def check_output(folder: Path) -> None:
    """Refuse a folder that holds anything but a report.

    Raises:
        ValueError: see above.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output {folder} must be a folder, but is a file")
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    if strange := [name for name in there if name not in OWN]:
        raise ValueError(
            f"--output {folder} must be new, empty or an earlier report, because it is "
            f"replaced, but holds {strange[0]}: choose another folder"
        )


def compute(given: Inputs) -> list[Section]:
    """Return all sections, in order, and tell how far the work is."""
    made = []
    for number, module in enumerate(SECTIONS, start=1):
        text = f"report: {number} of {len(SECTIONS)}, {module.TITLE}"
        print(text, file=sys.stderr, flush=True)
        made.append(module.section(given))
    return made


def write_folder(folder: Path, html: str, made: list[Section]) -> None:
    """Write under a temporary name and put the whole folder in place."""
    with new_folder(folder) as new:
        for section in made:
            for figure in section.figures:
                with new_file(new / "figures" / f"{figure.name}.svg", "wb") as file:
                    file.write(figure.svg)
            for table in section.tables:
                with new_file(new / "numbers" / f"{table.name}.csv") as file:
                    file.write(table.csv())
        (new / "report.html").write_text(html, encoding="utf-8")


def facts(given: Inputs, asked: argparse.Namespace) -> list[str]:
    """Return the lines below the title."""
    references = ", ".join(path.name for path in asked.reference)
    lines = [
        f"{asked.source[0].name} → {references}: {len(given.source):,} sentences",
        "Systems: " + ", ".join(given.systems),
    ]
    right = tokeniser_for(given.references)
    if right != given.tokenize and given.tokenize in ("13a", "intl"):
        lines.append(
            "Careful: most letters of the references are of a script without blanks, "
            f"where --tokenize {given.tokenize} finds no words. Give {right} instead."
        )
    return lines


def write_report(args: argparse.Namespace) -> Path:
    """Make the report that a command line asks for.

    Returns:
        The page.

    Raises:
        ValueError, FileNotFoundError: a flag or a file is wrong.
    """
    quiet.only_warnings(*NOISY)
    asked = inputs.of_command(args)
    given = inputs.read(asked)
    folder = Path(args.output)
    check_output(folder)
    made = compute(given)
    write_folder(folder, render(args.title, facts(given, asked), made), made)
    return folder / "report.html"
