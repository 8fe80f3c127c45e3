"""Cost of the steps that handle texts, from thousands of lines to a million.

The texts are synthetic: words drawn by Zipf's law, the target the same words in upper
case, and what a teacher made of it the same with another last word.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign.processes import variables
from sbnmt_plugin.lines import each_line
from sbnmt_plugin.tools.command import step_command
from sbnmt_plugin.tools.text import write_lines

# runs a command, and writes what it has used; a process of its own, because a child
# begins with the peak memory of the process that started it, here torch's
MEASURE = """
import json, resource, subprocess, sys, time
output, *words = sys.argv[1:]
begun = time.monotonic()
status = subprocess.run(words).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
found = {
    "seconds": round(time.monotonic() - begun, 1),
    "CPU seconds": round(used.ru_utime + used.ru_stime, 1),
    "peak MiB": round(used.ru_maxrss / 2**10),
}
with open(output, "w") as file:
    json.dump(found, file)
sys.exit(status)
"""

WORDS, LENGTH, SHARD, MERGES = 20_000, 12, 2000, 2000
MERGE = """
import sys
from pathlib import Path
from sbnmt_plugin.tools.jobs import merge
folder, count, output = sys.argv[1:]
merge(sorted(Path(folder).iterdir()), int(count), Path(output))
"""


def words_of(draw: random.Random) -> list[str]:
    """Make a vocabulary of made-up words, the frequent ones short."""
    found = (
        "".join(draw.choices("abcdefghijklmnoprstuvwz", k=2 + i.bit_length() // 2))
        for i in itertools.count(1)
    )
    return list(itertools.islice(found, WORDS))


def write_corpus(folder: Path, draw: random.Random, count: int) -> None:
    """Write a bitext, two teachers' translations, and the shards of one of them."""
    vocabulary = words_of(draw)
    weights = list(itertools.accumulate(1 / (i + 1) for i in range(WORDS)))
    rows = (
        draw.choices(vocabulary, cum_weights=weights, k=LENGTH) for _ in range(count)
    )
    write_lines(folder / "train.en", map(" ".join, rows))

    def target(last: str = "") -> Iterator[str]:
        for line in each_line(folder / "train.en"):
            yield line.upper() + last

    write_lines(folder / "train.de", target())
    for name in ("l2r", "r2l"):
        lines = (f"{i}\t-1.5\t{text}" for i, text in enumerate(target(f" {name}")))
        write_lines(folder / f"{name}.tsv", lines)
    records = (
        json.dumps({"id": i, "score": -1.5, "text": text})
        for i, text in enumerate(target(" l2r"))
    )
    for number in range(0, count, SHARD):
        shard = itertools.islice(records, SHARD)
        write_lines(folder / "shards" / f"{number // SHARD:08}.jsonl", shard)


def commands(folder: Path, count: int) -> dict[str, tuple[list[str], list[str]]]:
    """Return the command of every step, and patterns of the files that it writes."""
    source, target = folder / "train.en", folder / "train.de"
    apply = ["bpe", "apply", "--codes", folder / "codes", source, folder / "bpe.en"]
    learn = ["bpe", "learn", "--merges", MERGES, "--codes", folder / "codes", source]
    triples = ["triples", "--source", source, "--target", target]
    triples += ["--pseudo-l2r", folder / "l2r.tsv", "--pseudo-r2l", folder / "r2l.tsv"]
    triples += ["--output", folder / "triples"]
    binarise = ["binarise", "-s", "en", "-t", "de", "--trainpref", folder / "train"]
    binarise += ["--destdir", folder / "data"]
    merge = [sys.executable, "-c", MERGE, folder / "shards", count, folder / "all.tsv"]
    return {
        "bpe learn": (step_command(*map(str, learn)), ["codes"]),
        "bpe apply": (step_command(*map(str, apply)), ["bpe.en"]),
        "binarise": (step_command(*map(str, binarise)), ["data/*"]),
        "triples": (step_command(*map(str, triples)), ["triples.*"]),
        "merge": (list(map(str, merge)), ["all.tsv*"]),
    }


def measured(words: list[str], log: Path) -> dict[str, Any]:
    """Run a command.

    Returns:
        Seconds by the clock and of computing, and the most memory.

    Raises:
        ValueError: it fails; with what it says.
    """
    used = log.with_suffix(".json")
    with open(log, "wb") as file:
        measure = [sys.executable, "-c", MEASURE, str(used), *words]
        done = subprocess.run(
            measure, stdout=file, stderr=file, env=variables(str(log))
        )
    if done.returncode:
        said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise ValueError(f"{' '.join(words)} fails:\n{said}")
    return json.loads(used.read_text(encoding="utf-8"))


def rows(folder: Path, seed: int, largest: int) -> Iterator[dict[str, Any]]:
    """Yield a row for every step, at a hundredth of the lines, a tenth, all.

    Args:
        folder: to work in.
    """
    for count in (largest // 100, largest // 10, largest):
        place = folder / str(count)
        write_corpus(place, random.Random(seed), count)
        for name, (words, patterns) in commands(place, count).items():
            row = {"step": name, "lines": count}
            row |= measured(words, folder / f"{count}-{name}.log")
            written = (path for pattern in patterns for path in place.glob(pattern))
            row["MB written"] = round(sum(p.stat().st_size for p in written) / 1e6, 2)
            yield {**row, "faults": []}
