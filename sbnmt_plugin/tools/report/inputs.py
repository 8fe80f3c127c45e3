"""Inputs of a report: texts, records, logs; read and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from sbnmt_plugin.tools.report.files import Files
from sbnmt_plugin.tools.report.records import NAMES, Race, read_races
from sbnmt_plugin.tools.report.traces import read_traces
from sbnmt_plugin.tools.text import as_written, read_lines, read_parallel

CHINESE = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


@dataclass
class Inputs:
    """Contents of the files of a report.

    Attributes:
        source, references, systems: texts as given.
        source_tokens, reference_tokens, system_tokens: tokens of the same, for
            everything that counts words.
        tokenised: systems and references as tokenised text, for tokenised BLEU.
        races: who won, for systems with records of both directions.
        train_logs, generate_logs, checkpoints: files by system.
        error_rates: word alignment error rates by system, in percent.
        sweep: the result of ``sbnmt sweep-beam``.
        traces: sentences of --sb-trace.
    """

    source: list[str]
    references: list[list[str]]
    systems: dict[str, list[str]]
    lowercase: bool = False
    tokenize: str = "13a"
    source_tokens: list[list[str]] = field(default_factory=list)
    reference_tokens: list[list[list[str]]] = field(default_factory=list)
    system_tokens: dict[str, list[list[str]]] = field(default_factory=dict)
    tokenised: tuple[dict[str, list[str]], list[list[str]]] | None = None
    races: dict[str, list[Race]] = field(default_factory=dict)
    train_logs: dict[str, Path] = field(default_factory=dict)
    generate_logs: dict[str, Path] = field(default_factory=dict)
    checkpoints: dict[str, Path] = field(default_factory=dict)
    error_rates: dict[str, float] = field(default_factory=dict)
    sweep: dict[str, Any] | None = None
    traces: list[dict[str, Any]] = field(default_factory=list)


def read_error_rate(path: Path) -> float:
    """Read the error rate that ``sbnmt aer --json`` wrote, in percent.

    Raises:
        ValueError: the file is something else.
    """
    with as_written(path, "make it by sbnmt aer --json"):
        return float(json.loads(path.read_text(encoding="utf-8"))["AER"]["score"])


def tokens_of(lines: list[str], tokenised: bool, lowercase: bool) -> list[list[str]]:
    """Split at blanks, or by sacreBLEU's tokenisers, Chinese into characters."""
    if lowercase:
        lines = [line.lower() for line in lines]
    if tokenised:
        return [line.split() for line in lines]
    plain, chinese = Tokenizer13a(), TokenizerZh()
    return [
        (chinese if CHINESE.search(line) else plain)(line).split() for line in lines
    ]


def read_sweep(path: Path) -> dict[str, Any]:
    """Read the result of ``sbnmt sweep-beam``.

    Raises:
        ValueError: something else.
    """
    remedy = "--beam-sweep must be what sbnmt sweep-beam wrote"
    with as_written(path, remedy):
        sweep = json.loads("\n".join(read_lines(path)))
        if not sweep["runs"] or not all(
            {"system", "beam", "BLEU"} <= set(row) for row in sweep["runs"]
        ):
            raise ValueError("no runs of systems with beams")
    if any("lenpen" in row for row in sweep["runs"]):
        raise ValueError(
            f"--beam-sweep {path} must be a sweep over beams, but is one over length "
            f"penalties: give one of sbnmt sweep-beam without --lenpens"
        )
    return dict(sweep)


def read_texts(
    source: Path, references: Sequence[Path], systems: dict[str, Path]
) -> tuple[list[str], list[list[str]], dict[str, list[str]]]:
    """Read the texts, which must have the same number of lines."""
    texts = read_parallel(source, *references, *systems.values())
    last = 1 + len(references)
    return texts[0], texts[1:last], dict(zip(systems, texts[last:]))


def read(files: Files, tokenize: str = "13a") -> Inputs:
    """Read everything that a report is made from.

    Args:
        tokenize: sacreBLEU's tokeniser for BLEU.

    Raises:
        ValueError, FileNotFoundError: a flag or a file is wrong.
    """
    lowercase, plain = files.lowercase, files.plain
    source, references, systems = read_texts(
        plain["source"][0], plain["reference"], files.systems
    )
    given = Inputs(source, references, systems, lowercase, tokenize)
    tokenised_systems = files.named["tokenised_system"]
    if files.tokenised:
        given.tokenised = (systems, references)
    elif plain["tokenised_reference"] or tokenised_systems:
        if not plain["tokenised_reference"] or set(tokenised_systems) != set(systems):
            raise ValueError(
                "--tokenised-reference and one --tokenised-system for every --system "
                "go together: give all of them or none"
            )
        ordered = {name: tokenised_systems[name] for name in systems}
        _, golds, tokens = read_texts(
            plain["source"][0], plain["tokenised_reference"], ordered
        )
        given.tokenised = (tokens, golds)
    split = given.tokenised is not None
    tokens, golds = given.tokenised or (systems, references)
    given.source_tokens = tokens_of(
        source, files.tokenised or files.source_tokenised, lowercase
    )
    given.reference_tokens = [tokens_of(text, split, lowercase) for text in golds]
    given.system_tokens = {
        name: tokens_of(text, split, lowercase) for name, text in tokens.items()
    }
    for name, path in files.named["records"].items():
        races = read_races(f"--records {name}", path, source)
        # teachers have one direction, and under --sb-answer one always wins
        if {race.winner for race in races} == set(NAMES):
            given.races[name] = races
    rates = files.named["aer"].items()
    given.error_rates = {name: read_error_rate(path) for name, path in rates}
    given.train_logs = files.named["train_log"]
    given.generate_logs = files.named["generate_log"]
    given.checkpoints = files.named["checkpoint"]
    for path in plain["trace"]:
        given.traces = read_traces(path)
    for path in plain["beam_sweep"]:
        given.sweep = read_sweep(path)
    return given
