"""A text translated shard by shard, so that a killed run continues.

``sbnmt pseudo`` says how.  OUTPUT.shards/job.json holds input, options and models.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sbnmt_plugin.lines import each_line
from sbnmt_plugin.symbols import NAMES
from sbnmt_plugin.tools import command, origin
from sbnmt_plugin.tools.text import as_written, read_lines, refuse_reserved
from sbnmt_plugin.tools.unfinished import new_file, write_json

MANY = 0.1  # of a text's tokens, that are unknown

if TYPE_CHECKING:
    from sbnmt_plugin.tools.translator import Translator


def write_shard(path: Path, start: int, lines: list[str], make: Translator) -> None:
    """Translate a shard into JSON lines; the file appears when all is written."""
    found, skipped = make.translate(lines)
    with new_file(path) as file:
        for i in range(len(lines)):
            record: dict[str, Any] = {"id": start + i}
            if i in found:
                record["score"] = float(found[i]["score"])
                record["text"] = make.text(found[i])
            else:
                record["skipped"] = skipped.get(i, "fairseq left it out")
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_shard(path: Path) -> list[dict[str, Any]]:
    """Return the records of a shard.

    Raises:
        ValueError: it is not as it was written.
    """
    with as_written(path, "remove it and repeat the command"):
        records = [json.loads(line) for line in read_lines(path)]
        for record in records:  # a sentence that was left out has a reason alone
            told = record.get("skipped") or f"{record['score']:.6f}{record['text']}"
            _ = record["id"] + 0, told
    return records


def merge(shards: list[Path], count: int, output: Path) -> tuple[int, int]:
    """Join all shards, and check that every id is there exactly once, in order.

    Returns:
        How many sentences were translated, and how many skipped.

    Raises:
        ValueError: ids are missing, doubled or in another order; all were skipped.
    """
    found = {"text": 0, "skipped": 0}
    reason = ""
    records = chain.from_iterable(map(read_shard, shards))
    with new_file(output) as texts, new_file(f"{output}.skipped") as skipped:
        for number, record in zip_longest(range(count), records):
            if record is None or record["id"] != number:
                raise ValueError(
                    f"{shards[0].parent} must hold the ids 0 … {count - 1} once each, "
                    "in order, but does not: remove the folder and translate again"
                )
            if not record.get("skipped"):
                found["text"] += 1
                texts.write(f"{number}\t{record['score']:.6f}\t{record['text']}\n")
            else:
                found["skipped"] += 1
                reason = reason or record["skipped"]
                skipped.write(f"{number}\t{record['skipped']}\n")
        if not found["text"]:
            raise ValueError(
                f"none of the {count} sentences could be translated, the first because "
                f"of: {reason}; remove {shards[0].parent} and use other options"
            )
    return found["text"], found["skipped"]


def describe_job(
    lines: list[str], arguments: list[str], models: Sequence[str] = ()
) -> dict[str, Any]:
    """Return everything on which an output depends: input, options, models.

    Args:
        models: files, beside those that the arguments name.
    """
    named = [*arguments, *(f"--path={path}" for path in models)]
    return {
        "input sha256": origin.sha256_of(lines),
        "options": arguments,
        origin.MODELS: origin.stamps_of(named),
    }


def check_same_job(output: Path, folder: Path, job: dict[str, Any]) -> None:
    """Check that an output, or its shards, were begun by the same job.

    Raises:
        ValueError: they were begun with other input, options or models, or nobody can
            tell.
    """
    path = folder / "job.json"
    remedy = f"remove {output} and {folder} to translate anew"
    # in this order, since another worker writes its job before its first shard
    begun = output.exists() or any(folder.glob("*.jsonl"))
    if not path.exists():
        if begun:
            raise ValueError(
                f"{output} has been begun or written, but {path}, which says from "
                f"what, is missing: {remedy}"
            )
        return
    with as_written(path, remedy):
        known = json.loads(path.read_text(encoding="utf-8"))
        differences = origin.differences(known, job)
    if differences:
        raise ValueError(
            f"{output} was begun with {', '.join(differences)}: {remedy}, or repeat "
            "the first command, in the same folder, to continue"
        )


def check_translation(flag: str, path: str, source: str, direction: str) -> None:
    """Refuse the translation of another text, or by a teacher of another direction.

    One without the note of its job is taken as it is.

    Args:
        flag: that names ``path``.
        source: file that must have been translated.

    Raises:
        ValueError: with the flag.
    """
    note = Path(f"{path}.shards") / "job.json"
    if not note.exists():
        return
    remedy = f"remove {note.parent} where it belongs to another file"
    with as_written(note, f"translate anew, or {remedy}"):
        job = json.loads(note.read_text(encoding="utf-8"))
        same = job["input sha256"] == origin.sha256_of(each_line(source))
        given = " ".join(job["options"]).replace("=", " ").split()
    if not same:
        raise ValueError(
            f"{flag} {path} must be a translation of --source {source}, but is one of "
            f"another text, or of an earlier state: translate that file, or {remedy}"
        )
    ways = [way for name, way in pairwise(given) if name == "--sb-direction"]
    if ways and ways[-1] in NAMES and ways[-1] != direction:
        raise ValueError(
            f"{flag} {path} must be by a teacher that writes {direction}, but is by "
            f"one that writes {ways[-1]}: give the other's file, or {remedy}"
        )


def job_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command that translates shard by shard."""
    parser = command.parser(description, allow_abbrev=False)
    add, number = parser.add_argument, command.AtLeastOne
    add("--input", required=True, help="text, one sentence a line")
    add("--output", required=True, help="file to write")
    add("--shard-size", action=number, default=2000, help="lines per shard")
    add("--of", action=number, default=1, help="number of workers")
    add("--worker", type=int, default=0, help="number of this one, from 0")
    return parser


def tell_unknown(name: str, lines: list[str], translator: Translator) -> None:
    """Tell of a text that is not split into subwords as the model's training was."""
    known = translator.task.source_dictionary
    words = " ".join(lines).split()
    unknown = sum(known.index(word) == known.unk() for word in words)
    if unknown > MANY * len(words):
        print(
            f"{unknown / len(words):.0%} of the first tokens of --input {name} are "
            "unknown to the model: split it by the codes of its training",
            file=sys.stderr,
        )


def run_job(
    args: argparse.Namespace,
    words: list[str],
    make: Callable[[], Translator],
    models: Sequence[str] = (),
) -> None:
    """Translate the missing shards of the input; join all if none is missing any more.

    Args:
        args: the command line, see :func:`job_parser`.
        words: everything but the input on which the result depends; it must be the same
            when the command is repeated.
        make: loads the models; it is called only if there is something to do.
        models: files of models that no option of ``words`` names.
    """
    if not 0 <= args.worker < args.of:
        raise ValueError(f"--worker must be in 0 … {args.of - 1}, but is {args.worker}")
    lines = read_lines(args.input)
    if not lines:
        raise ValueError(f"--input {args.input} must have lines, but is empty")
    refuse_reserved(args.input, lines)
    output = Path(args.output)
    if output.is_dir():
        raise ValueError(f"--output {output} must be a file, but is a folder")
    folder = Path(f"{output}.shards")
    job = describe_job(lines, [*words, f"--shard-size={args.shard_size}"], models)
    check_same_job(output, folder, job)
    if output.exists():
        print(f"{output} is already written: nothing to do", file=sys.stderr)
        return
    starts = list(range(0, len(lines), args.shard_size))
    shards = [folder / f"{number:05d}.jsonl" for number in range(len(starts))]
    mine = [
        n for n in range(args.worker, len(starts), args.of) if not shards[n].exists()
    ]
    if mine:
        translator = make()  # first: it refuses bad options
        tell_unknown(args.input, lines[: args.shard_size], translator)
        write_json(folder / "job.json", job)
        for done, n in enumerate(mine, start=1):
            piece = lines[starts[n] : starts[n] + args.shard_size]
            write_shard(shards[n], starts[n], piece, translator)
            print(f"{output.name}: {done} of {len(mine)} shards", file=sys.stderr)
    if all(shard.exists() for shard in shards):
        done, skipped = merge(shards, len(lines), output)
        print(f"{output}: {done} translated, {skipped} skipped", file=sys.stderr)
    else:
        print(f"{output}: this worker is done, others are not yet", file=sys.stderr)
