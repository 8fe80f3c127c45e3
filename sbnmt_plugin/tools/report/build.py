"""Build a report: read, compute, draw, write."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.report import (
    accuracy,
    beams,
    inputs,
    lengths,
    scores,
    sentences,
    speeds,
    traces,
    training,
    winners,
)
from sbnmt_plugin.tools.report.content import Section
from sbnmt_plugin.tools.report.files import Files, of_command
from sbnmt_plugin.tools.report.inputs import CHINESE, Inputs
from sbnmt_plugin.tools.report.page import render
from sbnmt_plugin.tools.unfinished import new_folder

OWN = ("report.html", "numbers.json", "figures", "numbers")
NOISY = ("matplotlib", "fairseq", "sacrebleu")  # once fairseq is imported


def check_output(folder: Path, files: list[Path]) -> None:
    """Refuse a folder that holds anything but a report, or an input.

    Raises:
        ValueError: see above.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output {folder} must be a folder, but is a file")
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    strange = [name for name in there if name not in OWN]
    if strange:
        raise ValueError(
            f"--output {folder} must be new, empty or an earlier report, because it is "
            f"replaced, but holds {strange[0]}: choose another folder"
        )
    for path in files:
        if folder.resolve() in path.resolve().parents:
            raise ValueError(
                f"--output {folder} must not hold an input, because it is replaced, "
                f"but holds {path.name}: choose another folder"
            )


def ends_of_groups(text: str | None) -> list[int] | None:
    """Return the upper ends of the length groups that --buckets gives, if it does.

    Raises:
        ValueError: they are no whole numbers.
    """
    if text is None:
        return None
    try:
        return [int(word) for word in text.split(",")]
    except ValueError as error:
        raise ValueError(
            f"--buckets must be whole numbers like 10,20,30, but is {text!r}"
        ) from error


def compute(
    given: Inputs, args: argparse.Namespace, uppers: list[int] | None
) -> list[Section]:
    """Return all sections, in order, and tell how far the work is."""
    steps: dict[str, Callable[[], Section]] = {
        "scores": lambda: scores.section(given, args.baseline, args.bootstrap_samples),
        "beginnings and ends": lambda: accuracy.section(given, args.n),
        "source lengths": lambda: lengths.section(given, uppers),
        "beam size": lambda: beams.section(given),
        "parameters and speed": lambda: speeds.section(given),
        "directions": lambda: winners.section(given, uppers),
        "sentences": lambda: sentences.section(given),
        "training": lambda: training.section(given),
        "traces": lambda: traces.section(given.traces),
    }
    made = []
    for number, (name, step) in enumerate(steps.items(), start=1):
        text = f"report: {number} of {len(steps)}, {name}"
        print(text, file=sys.stderr, flush=True)
        made.append(step())
    return made


def write_folder(folder: Path, html: str, made: list[Section]) -> None:
    """Write under a temporary name and put the whole folder in place."""
    with new_folder(folder) as new:
        (new / "numbers").mkdir(parents=True)
        for section in made:
            for figure in section.figures:
                figure.write(f"{new}/figures/{figure.name}")
            for table in section.tables:
                path = new / "numbers" / f"{table.name}.csv"
                path.write_text(table.csv(), encoding="utf-8")
        numbers = {
            section.key: {"left out": section.missing}
            if section.missing
            else {
                table.name: {"rows": table.json(), "notes": table.notes}
                for table in section.tables
            }
            for section in made
        }
        text = json.dumps(numbers, ensure_ascii=False, indent=1)
        (new / "numbers.json").write_text(text, encoding="utf-8")
        (new / "report.html").write_text(html, encoding="utf-8")


def facts(given: Inputs, files: Files) -> list[str]:
    """Return the lines below the title."""
    (source,), references = files.plain["source"], files.plain["reference"]
    lines = [
        f"{source.name} → {', '.join(path.name for path in references)}"
        f": {len(given.source):,} sentences",
        "Systems: " + ", ".join(given.systems),
    ]
    chinese = any(CHINESE.search(line) for text in given.references for line in text)
    if chinese and given.tokenize in ("13a", "intl"):
        lines.append(
            f"Careful: the references have Chinese characters, for which --tokenize "
            f"{given.tokenize} finds no words. Use --tokenize zh, or ja-mecab."
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
    uppers = ends_of_groups(args.buckets)
    files = of_command(args)
    given = inputs.read(files, args.tokenize)
    folder = Path(args.output)
    check_output(folder, files.read())
    made = compute(given, args, uppers)
    write_folder(folder, render(args.title, facts(given, files), made), made)
    return folder / "report.html"
