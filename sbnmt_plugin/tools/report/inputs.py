"""Inputs of a report: texts, records, logs; read and checked."""

from __future__ import annotations

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
from sbnmt_plugin.tools.results.bootstrap import SAMPLES
from sbnmt_plugin.tools.results.sweep import Sweep
from sbnmt_plugin.tools.text import read_parallel

CHINESE = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


@dataclass
class Inputs:
    """Contents of the files of a report, and what is asked of it.

    Attributes:
        source, references, systems: texts as given.
        tokenize: sacreBLEU's tokeniser for BLEU.
        files: further files: flag -> system -> file.
        source_tokens, reference_tokens, system_tokens: tokens of the texts, for
            everything that counts words.
        tokenised: systems and references as tokenised text, for tokenised BLEU.
        races: who won, for systems with records of both directions.
        sweep: the runs of ``sbnmt sweep-beam``.
        traces: sentences of --sb-trace.
        baseline: system that the others are tested against; by default the first.
        samples: of the bootstrap.
        n: tokens of a beginning and of an end.
        uppers: upper ends of the groups of source lengths, if they were chosen.
    """

    source: list[str]
    references: list[list[str]]
    systems: dict[str, list[str]]
    lowercase: bool = False
    tokenize: str = "13a"
    files: dict[str, dict[str, Path]] = field(default_factory=dict)
    source_tokens: list[list[str]] = field(default_factory=list)
    reference_tokens: list[list[list[str]]] = field(default_factory=list)
    system_tokens: dict[str, list[list[str]]] = field(default_factory=dict)
    tokenised: tuple[dict[str, list[str]], list[list[str]]] | None = None
    races: dict[str, list[Race]] = field(default_factory=dict)
    sweep: list[dict[str, Any]] = field(default_factory=list)
    traces: list[dict[str, Any]] = field(default_factory=list)
    baseline: str = ""
    samples: int = SAMPLES
    n: int = 4
    uppers: list[int] | None = None

    def __post_init__(self) -> None:
        self.baseline = self.baseline or next(iter(self.systems))


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


def read_sweep(path: Path) -> list[dict[str, Any]]:
    """Read the runs of ``sbnmt sweep-beam``, in their order.

    Raises:
        ValueError: something else.
    """
    sweep = Sweep.of_file(path)
    if sweep.of_lenpens:
        raise ValueError(
            f"--beam-sweep {path} must be a sweep over beams, but is one over length "
            f"penalties: give one of sbnmt sweep-beam without --lenpens"
        )
    return sweep.all


def read_texts(
    source: Path, references: Sequence[Path], systems: dict[str, Path]
) -> tuple[list[str], list[list[str]], dict[str, list[str]]]:
    """Read the texts, which must have the same number of lines."""
    texts = read_parallel(source, *references, *systems.values())
    last = 1 + len(references)
    return texts[0], texts[1:last], dict(zip(systems, texts[last:]))


def read_tokenised(
    files: Files, texts: dict[str, list[str]], references: list[list[str]]
) -> tuple[dict[str, list[str]], list[list[str]]] | None:
    """Return systems and references as tokenised text, if there is any.

    Raises:
        ValueError: some of it is missing.
    """
    if files.tokenised:
        return texts, references
    golds, systems = files.plain["tokenised_reference"], files.named["tokenised_system"]
    if not golds and not systems:
        return None
    if not golds or set(systems) != set(texts):
        raise ValueError(
            "--tokenised-reference and one --tokenised-system for every --system "
            "go together: give all of them or none"
        )
    ordered = {name: systems[name] for name in texts}
    _, found, tokens = read_texts(files.plain["source"][0], golds, ordered)
    return tokens, found


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
    given = Inputs(source, references, systems, lowercase, tokenize, files.named)
    given.tokenised = read_tokenised(files, systems, references)
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
    for path in plain["trace"]:
        given.traces = read_traces(path)
    for path in plain["beam_sweep"]:
        given.sweep = read_sweep(path)
    return given
