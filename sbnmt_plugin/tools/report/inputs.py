"""What the report is made from: texts, records, logs; read and checked."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from sbnmt_plugin.tools.report.winners import NAMES, Race, race
from sbnmt_plugin.tools.text import as_written, read_lines, read_parallel, remove_bpe

CHINESE = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
SPELLS = re.compile(r"[\W_]+|unk")
SAME_SOURCES = 0.5  # of the records' sources must be lines of --source


@dataclass
class Inputs:
    """All that was given.

    Attributes:
        source, references, systems: texts as given.
        tokens: of the same, for everything that counts words.
        tokenised: systems and references as tokenised text, for tokenised BLEU.
        races: who won, for systems with records of both directions.
        train_logs, generate_logs, checkpoints: files by system.
        error_rates: word alignment error rates by system, in percent.
        sweep: the result of ``sbnmt sweep-beam``.
        traces: sentences of --sb-trace.
        bitext: further pairs of tokens for the aligner.
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
    bitext: tuple[list[list[str]], list[list[str]]] = ((), ())  # type: ignore[assignment]


def read_error_rate(path: Path) -> float:
    """What ``sbnmt aer --json`` wrote, in percent.

    Raises:
        ValueError: the file is something else.
    """
    with as_written(path, "make it by sbnmt aer --json"):
        return float(json.loads(path.read_text(encoding="utf-8"))["AER"]["score"])


def join_subwords(line: str) -> str:
    """Words of subwords: ``a@@ b`` and sentencepiece's ``▁a b`` become words."""
    if "▁" in line:
        return line.replace(" ", "").replace("▁", " ").strip()
    return remove_bpe(line)


def named_files(flag: str, values: list[str]) -> dict[str, Path]:
    """``NAME=FILE`` pairs.

    Raises:
        ValueError: another form, or a name twice.
        FileNotFoundError: no such file.
    """
    found: dict[str, Path] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not (name and equals and path):
            raise ValueError(f"{flag} must be NAME=FILE, but is {value!r} instead")
        if name in found:
            raise ValueError(
                f"{flag} {name} must be given once, but comes twice: rename one"
            )
        if not Path(path).is_file():
            raise FileNotFoundError(f"{flag} {value}: {path} does not exist")
        found[name] = Path(path)
    return found


def refuse_strangers(flag: str, names: dict[str, Any], systems: dict[str, Any]) -> None:
    """Refuse files of a system that was not given.

    Raises:
        ValueError: with the name.
    """
    for name in names:
        if name not in systems:
            raise ValueError(
                f"{flag} {name}=… must name one of the systems "
                f"({', '.join(systems)}), but names none: give --system {name}=FILE too"
            )


def tokens_of(lines: list[str], tokenised: bool, lowercase: bool) -> list[list[str]]:
    """Tokens: as given, or by sacreBLEU's tokenisers (Chinese by characters)."""
    if lowercase:
        lines = [line.lower() for line in lines]
    if tokenised:
        return [line.split() for line in lines]
    plain, chinese = Tokenizer13a(), TokenizerZh()
    return [
        (chinese if CHINESE.search(line) else plain)(line).split() for line in lines
    ]


def read_jsonl(flag: str, path: Path, needed: tuple[str, ...]) -> list[dict[str, Any]]:
    """Objects of a JSON-lines file that have these keys.

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
    """Letters and digits alone: what tokenisation does not change."""
    return SPELLS.sub("", line.lower())


def read_races(flag: str, path: Path, source: list[str]) -> list[Race]:
    """Records of ``--sb-records`` in the order of the sources.

    By ``id``; where fairseq gave none (interactive mode), by source text.

    Raises:
        ValueError: they do not cover the sources, or belong to others.
    """
    with as_written(path, "decode again"):
        return races_of(flag, path, source)


def races_of(flag: str, path: Path, source: list[str]) -> list[Race]:
    """
    Raises:
        ValueError: see :func:`read_races`.
    """
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
            matching += text == spelling(source[place]) or "<unk>" in record["source"]
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
            f"{numbered} sources are the line of their id: give the records of this "
            "test set"
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
            f"{flag} {path} must have a record for each of the {count} sentences, but "
            f"has {len(by_place)} (none for line {missing + 1}): was the search "
            "interrupted? Decode again"
        )
    return [race(by_place[i], join_subwords) for i in range(count)]


def read_sweep(path: Path) -> dict[str, Any]:
    """The result of ``sbnmt sweep-beam``.

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
    source: str, references: list[str], systems: dict[str, Path]
) -> tuple[list[str], list[list[str]], dict[str, list[str]]]:
    """The texts, which must have the same number of lines."""
    texts = read_parallel(source, *references, *systems.values())
    last = 1 + len(references)
    return texts[0], texts[1:last], dict(zip(systems, texts[last:]))
