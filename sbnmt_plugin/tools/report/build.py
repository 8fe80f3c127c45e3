"""From a command line to a folder: read, compute, draw, write."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.report import inputs, run_sections, sections, traces
from sbnmt_plugin.tools.report.content import Section
from sbnmt_plugin.tools.report.inputs import (
    CHINESE,
    Inputs,
    named_files,
    refuse_strangers,
    tokens_of,
)
from sbnmt_plugin.tools.report.page import render
from sbnmt_plugin.tools.report.work import from_work
from sbnmt_plugin.tools.text import read_lines
from sbnmt_plugin.tools.unfinished import new_folder

OWN = ("report.html", "numbers.json", "figures", "numbers")
NOISY = ("matplotlib", "eflomal", "fairseq", "sacrebleu")  # once fairseq is imported
BITEXT = 5000  # lines of training text that help the aligner


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def check_output(folder: Path, files: list[Path]) -> None:
    """Refuse a folder that holds anything but a report, or an input.

    Raises:
        ValueError: see above.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--output {folder} must be a folder, but is a file")
    strange = sorted(
        path.name
        for path in (folder.iterdir() if folder.exists() else ())
        if path.name not in OWN
    )
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


def check_values(args: argparse.Namespace) -> list[int] | None:
    """The ends of the length groups; refuses values out of range.

    Raises:
        ValueError: with the flag.
    """
    for flag, least in (("n", 1), ("bootstrap_samples", 10), ("aligner_runs", 0)):
        value = getattr(args, flag)
        if value < least:
            name = "--" + flag.replace("_", "-")
            raise ValueError(f"{name} must be ≥ {least}, but is {value} instead")
    if args.buckets is None:
        return None
    try:
        return [int(word) for word in args.buckets.split(",")]
    except ValueError as error:
        raise ValueError(
            f"--buckets must be whole numbers like 10,20,30, but is {args.buckets!r}"
        ) from error


def read_given_texts(
    args: argparse.Namespace,
    systems: dict[str, Path],
    tokenised_systems: dict[str, Path],
) -> Inputs:
    """The texts and their tokens.

    Raises:
        ValueError, FileNotFoundError: with the flag or file that is wrong.
    """
    source, references, texts = inputs.read_texts(args.source, args.reference, systems)
    given = Inputs(source, references, texts, args.lowercase, args.tokenize)
    tokens, golds = texts, references
    if args.tokenised:
        given.tokenised = (texts, references)
    elif args.tokenised_texts and set(args.tokenised_texts) == set(texts):
        golds = [read_lines(path) for path in args.tokenised_reference]
        tokens = {name: args.tokenised_texts[name] for name in texts}
        given.tokenised = (tokens, golds)
    elif args.tokenised_reference or args.tokenised_system:
        if not args.tokenised_reference or set(tokenised_systems) != set(texts):
            raise ValueError(
                "--tokenised-reference and one --tokenised-system for every --system "
                "go together: give all of them or none"
            )
        _, golds, tokens = inputs.read_texts(
            args.source, args.tokenised_reference, tokenised_systems
        )
        tokens = {name: tokens[name] for name in texts}
        given.tokenised = (tokens, golds)
    words = given.tokenised is not None
    given.source_tokens = tokens_of(
        source, args.tokenised or args.tokenised_source, args.lowercase
    )
    given.reference_tokens = [tokens_of(x, words, args.lowercase) for x in golds]
    given.system_tokens = {
        name: tokens_of(text, words, args.lowercase) for name, text in tokens.items()
    }
    return given


def read_inputs(args: argparse.Namespace) -> tuple[Inputs, list[Path]]:
    """Everything the command names, checked; and the files that were read.

    Raises:
        ValueError, FileNotFoundError: with the flag or file that is wrong.
    """
    for flag in ("source", "reference", "system"):
        if not getattr(args, flag):
            raise ValueError(f"--{flag} must be given, or --work with a recipe's run")
    named = {
        flag: named_files("--" + flag.replace("_", "-"), getattr(args, flag))
        for flag in (
            "system",
            "tokenised_system",
            "records",
            "train_log",
            "generate_log",
            "checkpoint",
            "aer",
        )
    }
    systems = named["system"]
    for flag, files in named.items():
        refuse_strangers("--" + flag.replace("_", "-"), files, systems)
    if args.baseline is not None:
        refuse_strangers("--baseline", {args.baseline: None}, systems)
    given = read_given_texts(args, systems, named["tokenised_system"])
    for name, path in named["records"].items():
        races = inputs.read_races(f"--records {name}", path, given.source)
        # teachers have one direction, and under --sb-answer one always wins
        if len({race.winner for race in races}) == 2:
            given.races[name] = races
    given.error_rates = {
        name: inputs.read_error_rate(path) for name, path in named["aer"].items()
    }
    given.train_logs = named["train_log"]
    given.generate_logs = named["generate_log"]
    given.checkpoints = named["checkpoint"]
    read = [Path(args.source), *map(Path, args.reference)]
    read += [path for found in named.values() for path in found.values()]
    if args.trace is not None:
        read.append(Path(args.trace))
        given.traces = traces.read_traces(read[-1])
    if args.beam_sweep is not None:
        read.append(Path(args.beam_sweep))
        given.sweep = inputs.read_sweep(read[-1])
    return given, read


def compute(
    given: Inputs, args: argparse.Namespace, uppers: list[int] | None
) -> tuple[list[Section], dict[str, Any]]:
    """All sections, in order, and the data of the list of sentences."""
    baseline = args.baseline or next(iter(given.systems))
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("scores", lambda: sections.scoring(given, baseline, args.bootstrap_samples)),
        ("beginnings and ends", lambda: sections.beginnings_and_ends(given, args.n)),
        ("source lengths", lambda: sections.source_lengths(given, uppers)),
        ("beam size", lambda: run_sections.beams(given)),
        ("parameters and speed", lambda: run_sections.speeds(given)),
        ("directions", lambda: run_sections.directions(given, uppers)),
        (
            "word alignment",
            lambda: sections.translation_errors(given, args.aligner_runs),
        ),
        ("sentences", lambda: sections.browser(given)),
        ("training", lambda: run_sections.curves(given)),
        ("traces", lambda: traces.section(given.traces)),
    ]
    made = []
    for number, (name, step) in enumerate(steps, start=1):
        say(f"report: {number} of {len(steps)}, {name}")
        made.append(step())
    data = made[7][1]
    made[7] = made[7][0]
    return made, data


def write_folder(folder: Path, html: str, made: list[Section]) -> None:
    """Write under a temporary name and put the whole folder in place."""
    with new_folder(folder) as new:
        for name in ("figures", "numbers"):
            (new / name).mkdir(parents=True)
        for section in made:
            for figure in section.figures:
                (new / "figures" / f"{figure.name}.svg").write_bytes(figure.svg)
                (new / "figures" / f"{figure.name}.png").write_bytes(figure.png)
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


def facts(given: Inputs, args: argparse.Namespace) -> list[str]:
    """What stands below the title."""
    lines = [
        f"{Path(args.source).name} → {', '.join(Path(r).name for r in args.reference)}"
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
    """Do what the command line asks for.

    Returns:
        The page.

    Raises:
        ValueError, FileNotFoundError: a user's mistake.
    """
    quiet.only_warnings(*NOISY)
    uppers = check_values(args)
    bitext = from_work(args) if args.work is not None else ()
    given, files = read_inputs(args)
    given.bitext = (
        tuple(  # type: ignore[assignment]
            tokens_of(read_lines(path)[:BITEXT], True, args.lowercase)
            for path in bitext
        )
        or ([], [])
    )
    folder = Path(args.output)
    check_output(folder, files)
    made, data = compute(given, args, uppers)
    html = render(args.title, facts(given, args), made, data, given.traces)
    write_folder(folder, html, made)
    return folder / "report.html"
