"""Raw text translated line by line: bounded memory, in order, continued if killed."""

from __future__ import annotations

import codecs
import fcntl
import json
import os
import select
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sbnmt_plugin.in_use import taken
from sbnmt_plugin.lines import refuse_other_form, without_end
from sbnmt_plugin.symbols import NAMES
from sbnmt_plugin.tools.models.engine import Hypothesis, distinct
from sbnmt_plugin.tools.models.folder import Model
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import refuse_special, rename, write_json

FIRST, MOST = 8, 1024  # lines of the first chunk, and of the largest
LONGEST = 2**18  # bytes of a line that is read; of what is longer the rest is dropped
READ = 2**16  # bytes at a time
TOGETHER = 2**22  # bytes of a chunk, about


def each_chunk(handle: int, done: int = 0) -> Iterator[list[bytes]]:
    """Yield lines of a stream that are translated together, without their ends.

    They are few at first, and no more than are there where reading on has to wait for
    whoever writes.  A line is cut off some bytes behind :data:`LONGEST`.

    Args:
        handle: file descriptor.
        done: lines at its beginning that are left out.

    Raises:
        ValueError: it has fewer lines than that, or is gzip or UTF-16.
    """
    chunk: list[bytes] = []
    first = b""
    rest, most, left_out = b"", FIRST, done
    while True:
        waits = not select.select([handle], [], [], 0)[0]
        full = sum(map(len, chunk)) > TOGETHER
        while chunk and (waits or full or len(chunk) >= most):
            yield chunk[:most]
            chunk, most = chunk[most:], min(2 * most, MOST)
        piece = os.read(handle, READ)
        if not piece:
            break
        first = (first + piece[:2])[:2]
        refuse_other_form("the input", first, "FILE | sbnmt translate …")
        *lines, rest = (rest + piece).split(b"\n")
        chunk += lines[done:]
        done = max(done - len(lines), 0)
        rest = rest[: LONGEST + 1]
    if done > bool(rest):
        raise ValueError(
            f"the input must have the {left_out} lines that are translated already, "
            "but has fewer: give the same input, or remove the output"
        )
    if rest and not done:
        chunk.append(rest)
    for start in range(0, len(chunk), most):
        yield chunk[start : start + most]


def text_of(line: bytes, first: bool) -> str:
    """Return the text of a line as it was read.

    Args:
        first: whether it is the first of its file, which a byte order mark may begin.

    Raises:
        ValueError: it is too long, or not UTF-8.
    """
    if len(line) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} bytes")
    if first:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return without_end(line.decode("utf-8")).replace("\r", " ")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise ValueError(f"byte {error.start + 1}, {byte:#x}, is no UTF-8") from error


def rows(hypotheses: list[Hypothesis], nbest: int, scores: bool) -> list[str]:
    """Return the lines that are written for an input line, always ``nbest``.

    A text stands there once.

    Args:
        hypotheses: of it; for one that is missing the line has no text.
        scores: whether a line begins with its score and a tab.
    """
    best = distinct(hypotheses, nbest)
    texts = [f"{h.score:.6f}\t{h.tokens}" if scores else h.tokens for h in best]
    missing = "\t" if scores else ""
    return [*texts, *[missing] * nbest][:nbest]


def record(number: int, source: str, hypotheses: list[Hypothesis]) -> str:
    """Return a line of records, in the form of ``--sb-records`` but with raw text.

    Args:
        number: of the input line, from 0.
        hypotheses: all of its beam, best first; a direction that has none of them has
            no best one.
    """
    best: dict[str, Any] = dict.fromkeys(NAMES)
    for h in reversed(hypotheses):
        best[h.direction] = {"text": h.tokens, "score": h.score}
    winner = hypotheses[0].direction if hypotheses else None
    made = {"id": number, "source": source, "winner": winner, **best}
    return json.dumps(made, ensure_ascii=False)


def count_lines(file: IO[bytes]) -> tuple[int, int]:
    """Count lines with an end, and those without, 0 or 1; none is held in memory."""
    count, last = 0, b"\n"
    while block := file.read(READ):
        count, last = count + block.count(b"\n"), block[-1:]
    return count, int(last != b"\n")


class Growing:
    """A file that gets lines for each input line, and its name when all have theirs.

    Until then it is NAME.part, with which the same command goes on if it is killed;
    NAME.part.json says of which command it is.

    Args:
        path: of the whole file.
        rows: lines for each input line.
        how: the command that writes it: what must be the same for it to go on.

    Attributes:
        done: input lines that have all their rows.

    Raises:
        OSError: it is no regular file, or cannot be written.
        ValueError: another command writes it, or has begun it.
    """

    def __init__(self, path: Path, rows: int, how: dict[str, Any]) -> None:
        self.path, self.rows = path, rows
        self.part, self.note = (Path(f"{path}{x}") for x in (".part", ".part.json"))
        for file in path, self.part:
            refuse_special(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(self.part, "a+b")  # noqa: SIM115 (see close)
        if not taken(self.file.fileno(), fcntl.flock):
            raise ValueError(
                f"{path} must have one writer, but another command is at work on it: "
                "wait for it, or choose another name"
            )
        self.file.seek(0)
        ended, cut = count_lines(self.file)
        self.done = ended // rows
        if ended or cut:
            self.check(how)
        write_json(self.note, how)

    def check(self, how: dict[str, Any]) -> None:
        """Check that the same command has begun the file.

        Raises:
            ValueError: it was another one.
        """
        begun: dict[str, Any] = {}
        if self.note.exists():
            with as_written(self.note, f"remove {self.part} and it"):
                begun = dict(json.loads(self.note.read_text("utf-8")))
        for name, now in how.items():
            if (before := begun.get(name)) != now:
                what = f"with {name} {before}, not {now}"
                what = what if name == "options" else f"with another {name}"
                raise ValueError(
                    f"{self.part} must be what this command has begun, but was begun "
                    f"{what}: remove it to translate anew, or give the same"
                )

    def go_on(self, done: int) -> None:
        """Cut off all but the rows of the first input lines."""
        self.file.seek(0)
        for _ in range(done * self.rows):
            self.file.readline()
        self.file.truncate()

    def finish(self) -> None:
        """Give the file its name."""
        rename(self.part, self.path)
        self.note.unlink()

    def close(self) -> None:
        """Let others write it."""
        self.file.close()


def translate_stream(
    model: Model,
    source: int,
    output: IO[bytes],
    nbest: int = 1,
    scores: bool = False,
    records: IO[bytes] | None = None,
    done: int = 0,
) -> Iterator[tuple[int, list[str]]]:
    """Translate a stream of raw text, and write what it gives chunk by chunk.

    Args:
        source: file descriptor.
        output: gets ``nbest`` lines for each input line: see :func:`rows`.
        records: gets one: see :func:`record`.
        done: input lines that are left out, since they are translated.

    Yields:
        After each chunk the number of its lines, and why some have no translation,
        with their numbers from 1.
    """
    number = done
    for chunk in each_chunk(source, done):
        reasons: dict[int, str] = {}
        texts = []
        for place, line in enumerate(chunk):
            try:
                texts.append(text_of(line, number + place == 0))
            except ValueError as error:
                texts.append("")
                reasons[place] = str(error)
        found, kept = [], []
        for place, answer in enumerate(model.hypotheses(texts)):
            if isinstance(answer, str):
                reasons[place], answer = answer, []
            found += rows(answer, nbest, scores)
            if records is not None:
                kept.append(record(number + place, texts[place], answer))
        for file, written in (output, found), (records, kept):
            if file is not None:
                file.write("".join(f"{row}\n" for row in written).encode())
                file.flush()
        problems = sorted(reasons.items())
        yield (
            len(chunk),
            [f"line {number + i + 1} stays empty: {why}" for i, why in problems],
        )
        number += len(chunk)
