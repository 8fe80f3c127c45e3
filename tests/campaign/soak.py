"""A stream of lines through a trained model: answers, their order, memory, speed.

The lines are drawn from a pool of which each comes many times, in changing company: its
answer is to be the same every time, by whichever door, or answers have been mixed up.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from campaign.garbage import SIGNS
from campaign.processes import variables
from campaign.subjects import MODEL, TRAIN, Stage
from sbnmt_plugin.symbols import RESERVED
from sbnmt_plugin.tools.command_names import PLUGIN
from sbnmt_plugin.tools.recipes.runner import executable
from sbnmt_plugin.tools.text import read_lines, write_lines

LONGEST = 128  # tokens of a source that the model takes, </s> among them
POOL = 2000  # different lines
GROWTH = 1.05  # of memory, from a tenth of the lines to all
ENOUGH = 10_000  # lines, from which on memory is judged: caches are full by then
SAMPLES = 100
MOST = 20  # faults that are listed
WORDS = [
    *("dog", "house", "Wörter", "straße", "слово", "дом", "λόγος", "नमस्ते", "ไทย"),
    *("كلمة", "בית", "好", "世界", "ひらがな", "한국어", "😀", "e\u0301te\u0301"),
]
BLANKS = (*(10 * [" "]), "  ", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "\x1f")
CHECKPOINT = "checkpoint_last.pt"
FOLDER = "sbnmt translate"  # the door of a model folder
SEARCH = {"beam": 4, "max_len_a": 1, "max_len_b": 5}


def pool(draw: random.Random) -> list[str]:
    """Make lines of 0 … :data:`LONGEST` - 1 tokens, in several scripts at once."""
    strange = [s for s in SIGNS if s.split() == [s] and s not in RESERVED and s != "\r"]
    lengths = [0, 1, LONGEST - 1]
    short, middle, long = (1, 12), (13, 40), (41, LONGEST - 1)
    for low, high in draw.choices((short, middle, long), (80, 15, 5), k=POOL - 3):
        lengths.append(draw.randint(low, high))
    found = []
    for length in lengths:
        tokens = draw.choices(WORDS, k=length)
        if draw.random() < 0.1:
            tokens = [draw.choice((x, *strange)) for x in tokens]
        blanks = draw.choices(BLANKS, k=length)
        line = "".join(x for pair in zip(tokens, blanks) for x in pair)
        found.append(line.lstrip("\ufeff"))
    return found


def text_of(draw: random.Random, count: int) -> list[str]:
    """Draw so many lines of a pool."""
    return draw.choices(pool(draw), k=count)


@dataclass(frozen=True)
class Sample:
    """A process after so many answers.

    Attributes:
        cpu: seconds that it has computed.
        resident: bytes of memory.
    """

    answers: int
    cpu: float
    resident: int


@dataclass
class Flow:
    """Answers of a process.

    Attributes:
        ids: the numbers of the lines, as they came.
        answers: their texts.
        samples: of the process, some every hundredth of the lines.
        status: its exit status.
    """

    ids: list[int] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    status: int | None = None

    def resident(self, share: float) -> float:
        """Return MiB after a share of the samples: the median of its last few."""
        end = max(1, round(share * len(self.samples)))
        last = self.samples[max(0, end - len(self.samples) // 20 - 1) : end]
        return statistics.median(sample.resident for sample in last) / 2**20

    def speed(self, first: float, last: float) -> int | None:
        """Return lines per second of computing, between two shares of the samples.

        Too few lines take no time that the system counts, and have no speed.
        """
        places = (round(share * (len(self.samples) - 1)) for share in (first, last))
        one, other = (self.samples[place] for place in places)
        spent = other.cpu - one.cpu
        return round((other.answers - one.answers) / spent) if spent else None


def sample_of(pid: int, answers: int) -> Sample:
    """Measure a process now; one that has ended has no memory."""
    folder = Path(f"/proc/{pid}")
    pages = int((folder / "statm").read_text().split()[1])
    times = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
    cpu = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
    return Sample(answers, cpu, pages * os.sysconf("SC_PAGE_SIZE"))


def flow(words: list[str], count: int, log: Path, plain: bool = False) -> Flow:
    """Run a command that writes a line ``H-ID<TAB>…<TAB>TEXT`` for every answer.

    Args:
        count: how many answers are expected.
        log: for its standard error.
        plain: whether it writes the text alone.
    """
    made = Flow()
    every = max(1, count // SAMPLES)
    with (
        open(log, "wb") as errors,
        subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=errors, env=variables(str(log))
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if plain:
                line = b"H-%d\t\t%s" % (len(made.ids), line)
            if line.startswith(b"H-"):
                name, _, text = line.decode().rstrip("\n").split("\t", 2)
                made.ids.append(int(name[2:]))
                made.answers.append(text)
                if len(made.ids) % every == 0:
                    made.samples.append(sample_of(process.pid, len(made.ids)))
    made.samples = [sample for sample in made.samples if sample.resident]
    made.status = process.returncode
    return made


def judged(lines: list[str], found: Flow, known: dict[str, str]) -> list[str]:
    """Return the faults of a process.

    Args:
        known: the answer of every line so far, to which new ones are added.
    """
    faults = []
    if found.status:
        faults.append(f"status {found.status}")
    if len(found.ids) != len(lines):
        faults.append(f"{len(found.ids)} answers to {len(lines)} lines")
    if found.ids != list(range(len(found.ids))):
        faults.append("the answers are not in the order of the lines")
    for number, (line, answer) in enumerate(zip(lines, found.answers)):
        if known.setdefault(line, answer) != answer and len(faults) < MOST:
            other = known[line]
            faults.append(f"line {number} is {answer!r}, elsewhere {other!r}"[:500])
    growth = found.resident(1) / found.resident(0.1)
    if len(lines) >= ENOUGH and growth > GROWTH:
        faults.append(f"memory grows by {growth - 1:.1%} after a tenth of the lines")
    return faults


class Soak:
    """Doors, and a model behind them.

    Args:
        folder: to work in.
        seed: of texts and lines.
        lines: how many go through each door.
    """

    def __init__(self, folder: Path, seed: int, lines: int) -> None:
        self.folder = folder
        self.stage = Stage(folder / "stage", seed, WORDS)
        self.model = folder / "model"
        self.bundled = folder / "bundled"
        self.path = folder / "lines.txt"
        write_lines(self.path, text_of(random.Random(seed), lines))

    def prepare(self) -> None:
        """Make data and model.

        Raises:
            subprocess.CalledProcessError: it fails.
        """
        target = read_lines(self.stage.texts / "train.de")
        lines = (line.rpartition(" ")[0] + " X" for line in target)
        write_lines(self.stage.texts / "train.r2l", lines)
        words: list[str | Path] = ["fairseq-train", self.stage.data]
        words += ["--user-dir", PLUGIN, "--task", "sb_translation", *MODEL, *TRAIN]
        words += ["--arch", "sb_transformer_tiny", "--save-dir", self.model]
        words += ["--max-source-positions", str(LONGEST), "--max-epoch", "40"]
        for command in self.stage.binarise(self.stage.data), executable(words):
            with open(self.folder / "prepare.log", "ab") as log:
                subprocess.run(
                    command, check=True, stdout=log, stderr=log, env=variables("soak")
                )

    def bundle(self) -> None:
        """Make a model folder of the model.

        Raises:
            subprocess.CalledProcessError: it fails.
        """
        words: list[str | Path] = ["sbnmt", "bundle", self.stage.data]
        words += ["--path", self.model / CHECKPOINT, "--output", self.bundled]
        words += ["--tokeniser", "none"]
        subprocess.run(executable(words), check=True, env=variables("soak"))

    def doors(self) -> dict[str, list[str]]:
        """Return the commands that answer the file of lines, by name."""
        words: list[str | Path] = ["fairseq-interactive", self.stage.data]
        words += ["--user-dir", PLUGIN, "--task", "sb_translation", "--cpu"]
        words += ["--path", self.model / CHECKPOINT, "--input", self.path]
        words += ["--buffer-size", "1000", "--max-tokens", "4000"]
        words += ["--num-workers", "0"]
        for name, value in SEARCH.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        api = [sys.executable, str(Path(__file__).with_name("answering.py"))]
        api += [str(self.model), CHECKPOINT, str(self.stage.data), str(self.path)]
        return {
            "fairseq-interactive": executable(words),
            "translate() in Python": [*api, json.dumps(SEARCH)],
            FOLDER: executable(
                ["sbnmt", "translate", self.bundled, "--input", self.path]
            ),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row of the outcome for each door."""
        lines = read_lines(self.path)
        known: dict[str, str] = {}
        self.bundle()
        for number, (name, words) in enumerate(self.doors().items()):
            own = name == FOLDER
            if own:  # it normalises its lines, so that its answers are others
                known = {}
            log = self.folder / f"door-{number}.log"
            found = flow(words, len(lines), log, plain=own)
            faults = judged(lines, found, known)
            yield {
                "door": name,
                "lines": len(lines),
                "different lines": len(known),
                "different answers": len(set(known.values())),
                "MiB after 10 %": round(found.resident(0.1)),
                "MiB after 100 %": round(found.resident(1)),
                "lines per CPU second, first tenth": found.speed(0, 0.1),
                "last tenth": found.speed(0.9, 1),
                "faults": faults,
            }
