"""Garbage given to readers of files: an error that names the file, or a result."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from odd_text import BLANKS

from campaign.garbage import changed, clean, flipped, odd, text, words
from campaign.readers import DataFolder, Reader, readers
from sbnmt_plugin.tools.commands import bpe
from sbnmt_plugin.tools.subwords import subwords
from sbnmt_plugin.tools.text import read_lines, write_lines
from sbnmt_plugin.tools.tokens import changed_lines, detokenise, normal_form, tokeniser

MOST = 20  # faults of a kind that are listed


@dataclass
class Count:
    """Outcomes of the cases of a target.

    Attributes:
        refused: by an error that names the file.
        read: without one.
        faults: what must not be, in words.
    """

    target: str
    refused: int = 0
    read: int = 0
    faults: list[str] = field(default_factory=list)

    def attempt(self, path: Path, read: Callable[[], Any], case: str) -> Any:
        """Read a file, and note what happens.

        Returns:
            What has been read; None where it was refused.
        """
        try:
            result = read()
        except (ValueError, OSError) as error:
            names = [path.name, *(str(p.with_suffix("")) for p in (path, path.parent))]
            if not any(name in str(error) for name in names):
                self.fault(f"{case}: {type(error).__name__} names no file: {error}")
            self.refused += 1
            return None
        except Exception as error:  # what no user should see
            self.fault(f"{case}: {type(error).__name__}: {str(error)[:200]}")
            return None
        self.read += 1
        return result

    def fault(self, what: str) -> None:
        if len(self.faults) < MOST:
            self.faults.append(what)

    def row(self) -> dict[str, Any]:
        cases = {"cases": self.refused + self.read, "refused": self.refused}
        return {
            "target": self.target,
            **cases,
            "read": self.read,
            "faults": self.faults,
        }


def rounds(folder: Path, seed: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Attack all targets, each for its share of the time.

    Args:
        folder: to work in.
        seed: of every choice.

    Yields:
        A row of the outcome for each.
    """
    logging.disable(logging.WARNING)
    folder.mkdir(parents=True, exist_ok=True)
    data = DataFolder(folder / "data", seed)
    known = readers(folder, data)
    share = seconds / (len(known) + 8)
    for summed in (True, False):
        yield every_byte(data, summed, seed, 2 * share).row()
    yield texts(folder, random.Random(seed), share).row()
    yield binarised(data, random.Random(seed), share).row()
    yield returned(folder, random.Random(seed), 2 * share).row()
    for reader in known:
        yield files(folder, reader, random.Random(seed), share).row()


def until(seconds: float) -> Iterator[int]:
    """Yield numbers until the time is over, one at least."""
    end = time.monotonic() + seconds
    for number in itertools.count():
        if number and time.monotonic() > end:
            return
        yield number


def texts(folder: Path, draw: random.Random, seconds: float) -> Count:
    """Read any bytes as text: refused, or as many lines as line feeds."""
    count, path = Count("text"), folder / "text.en"
    for number in until(seconds):
        content = text(draw)
        path.write_bytes(content)
        lines = count.attempt(path, lambda: read_lines(path), f"case {number}")
        if lines is None:
            continue
        wanted = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
        if len(lines) != wanted:
            count.fault(f"case {number}: {len(lines)} lines instead of {wanted}")
        write_lines(path, lines)
        if read_lines(path) != lines:
            count.fault(f"case {number}: reads differently when written")
    return count


def binarised(data: DataFolder, draw: random.Random, seconds: float) -> Count:
    """Binarise clean text, however strange, and read the same text back."""
    count = Count("text, binarised")
    for number in until(seconds):
        lines = clean(draw)
        found = count.attempt(
            data.prefix,
            partial(data.there_and_back, lines),
            f"case {number}",
        )
        if found is not None and found != [line.split() for line in lines]:
            count.fault(f"case {number}: {lines!r} is read back as {found!r}"[:500])
    return count


def returned(folder: Path, draw: random.Random, seconds: float) -> Count:
    """Cut odd text into tokens and subwords, and put it together again."""
    count, path = Count("text, back from tokens and subwords"), folder / "odd.en"
    for number in until(seconds):
        lines, language = odd(draw), draw.choice(("none", "de", "fr", "hi", "ko", "zh"))
        case = f"case {number}, {language}"
        lines.append(draw.choice(BLANKS).join(words(draw)))
        split = [*map(tokeniser(language), lines)]
        back = detokenise(split, language)
        pairs = zip(lines, back)
        missed = [i for i, (x, y) in enumerate(pairs) if normal_form(x, language) != y]
        # signs that are no words may be put together otherwise, and are told of
        for i in missed:
            if language == "none" or lines[i] == lines[-1]:
                count.fault(f"{case}: {lines[i]!r} comes back as {back[i]!r}"[:500])
        told, _ = changed_lines(lines, language)
        if told != missed:
            count.fault(f"{case}: lines {missed} do not come back, but {told} are told")
        write_lines(path, split)
        joined = count.attempt(path, partial(subwords_joined, path), case)
        found = {word for line in split for word in line.split()}
        marked = any(word.endswith("@@") for word in found)
        alone = all(len(word) == 1 for word in found)  # no codes can be learned
        if (joined is None) != (marked or alone):
            count.fault(
                f"{case}: words that end in @@: {marked}, result {joined}"[:500]
            )
        if joined not in (None, [" ".join(line.split()) for line in split]):
            count.fault(f"{case}: {split!r} comes back as {joined!r}"[:500])
    return count


def subwords_joined(path: Path) -> list[str]:
    """Split a text into subwords by codes of its own, and join them as fairseq does."""
    codes = f"{path}.codes"
    with contextlib.redirect_stderr(io.StringIO()):
        bpe.learn([str(path)] * 2, codes, 40)  # twice, so that something is learned
    split = map(subwords(Path(codes)).apply, read_lines(path))
    lines = [" ".join(line.split()) + " " for line in split]
    return [line.replace("@@ ", "").rstrip() for line in lines]


def every_byte(data: DataFolder, summed: bool, seed: int, seconds: float) -> Count:
    """Change every byte of a data folder, and cut every file off there.

    With checksums: an error or the same result.  Without: no crash.
    """
    count = Count("data folder" + ", with SHA256SUMS" * summed)
    draw = random.Random(seed)
    expected, files = data.load(summed), data.files(summed)
    cases = [
        (path, place, cut)
        for path in files
        for place in range(path.stat().st_size)
        for cut in (False, True)
    ]
    draw.shuffle(cases)
    end = time.monotonic() + seconds
    for path, place, cut in cases:
        if time.monotonic() > end:
            break
        content = path.read_bytes()
        path.write_bytes(content[:place] if cut else flipped(content, place, draw))
        case = f"{path.name}, byte {place} {'cut off' if cut else 'changed'}"
        try:
            found = data.outcome(summed)
        finally:
            path.write_bytes(content)
        if isinstance(found, Exception):
            count.refused += 1
            named = any(name.stem in str(found) for name in files)
            if summed and not named:
                count.fault(f"{case}: {type(found).__name__} names no file: {found}")
        else:
            count.read += 1
            if summed and found != expected:
                count.fault(f"{case}: another result without a word")
    return count


def files(folder: Path, reader: Reader, draw: random.Random, seconds: float) -> Count:
    """Change a file of ours at random places."""
    count = Count(reader.name)
    path = folder / reader.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(reader.content)
    expected = reader.read(path)
    for number in until(seconds):
        path.write_bytes(changed(reader.content, draw))
        found = count.attempt(path, lambda: reader.read(path), f"case {number}")
        if reader.exact and found not in (None, expected):
            count.fault(f"case {number}: another result without a word")
    return count
