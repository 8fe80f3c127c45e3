"""Subjects of the attacks: commands on a tiny corpus, which make some files each.

An undisturbed run of each takes seconds.  Compared are the files that hold results;
logs, timings and the tables of costs differ between any two runs and are not.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sbnmt_plugin.checkpoints import read_checkpoint
from sbnmt_plugin.tools.command import step_command
from sbnmt_plugin.tools.command_names import PLUGIN
from sbnmt_plugin.tools.recipes.runner import executable
from sbnmt_plugin.tools.text import write_lines

WORDS = [f"w{i}" for i in range(12)]
SIZES = {"train": 48, "valid": 6, "test": 9}
# not compared: times and paths of their run
TIMES = ("preprocess.log", "job.json", "table.json")
COSTS = (
    *("seconds", "sentences/s", "tokens/s", "ratio", "memory"),
    *("command", "commit", "date"),
)
MODEL = ["--encoder-layers", "1", "--decoder-layers", "1", "--encoder-embed-dim", "16"]
MODEL += ["--encoder-ffn-embed-dim", "16", "--encoder-attention-heads", "2"]
MODEL += ["--decoder-attention-heads", "2"]
TRAIN = ["--optimizer", "adam", "--lr", "0.01", "--max-tokens", "200", "--seed", "1"]
TRAIN += ["--num-workers", "0", "--log-format", "simple", "--cpu"]
TRAIN += ["--criterion", "sb_label_smoothed_cross_entropy"]
RECIPE: dict[str, Any] = {
    "source": "en",
    "target": "de",
    "bpe": {"kind": "joint", "merges": 20},
    "rows": ["sb"],
    "average": 2,
    "environment": {"OMP_NUM_THREADS": 1},
    "teacher_arch": "transformer_tiny",
    "sb_arch": "sb_transformer_tiny",
    "train": {
        **dict(zip(MODEL[::2], MODEL[1::2])),
        **{"--optimizer": "adam", "--lr": 0.01, "--max-tokens": 200, "--cpu": None},
        **{"--num-workers": 0, "--max-epoch": 20, "--keep-last-epochs": 2},
    },
    "decode": ["--beam", "2", "--max-len-b", "10"],
    "pseudo": ["--shard-size", "12"],
}
PREPARE = """
import argparse, pathlib, shutil
parser = argparse.ArgumentParser()
parser.add_argument("--output", type=pathlib.Path)
output = parser.parse_args().output
output.mkdir(parents=True, exist_ok=True)
for path in sorted((pathlib.Path(__file__).parent / "text").iterdir()):
    shutil.copyfile(path, output / path.name)
"""


def write_texts(folder: Path, seed: int, words: list[str]) -> None:
    """Write a tiny bitext: words, and the same words in upper case."""
    draw = random.Random(seed)
    for split, size in SIZES.items():
        rows = [draw.choices(words, k=draw.randint(2, 6)) for _ in range(size)]
        write_lines(folder / f"{split}.en", (" ".join(row) for row in rows))
        upper = [" ".join(row).upper() for row in rows]
        write_lines(folder / f"{split}.de", upper)
        if split == "test":
            write_lines(folder / f"{split}.ref.de", upper)


@dataclass(frozen=True)
class Subject:
    """Commands that belong together, run side by side in a folder of their own.

    Attributes:
        name: in tables.
        commands: from the folder of results to command lines.
        results: patterns of the files that are to be the same whatever happens.
        span: seconds within which a running command is killed; None: its whole time.
        makes: is there when all is done, and refused by a repeated command.
        alone: one command that makes the same without the others.
    """

    name: str
    commands: Callable[[Path], list[list[str]]]
    results: tuple[str, ...]
    span: float | None = None
    makes: str | None = None
    alone: Callable[[Path], list[str]] | None = None

    def undisturbed(self, folder: Path) -> list[list[str]]:
        """Return the commands that make the files of reference."""
        return [self.alone(folder)] if self.alone else self.commands(folder)

    def done(self, folder: Path) -> bool:
        """Return whether the command has nothing left to do, and says so."""
        return self.makes is not None and (folder / self.makes).exists()


class Stage:
    """The corpus, and a teacher to translate with.

    Args:
        folder: to write to.
        seed: of the texts.
        words: of the source.
    """

    def __init__(self, folder: Path, seed: int, words: list[str] = WORDS) -> None:
        self.texts = folder / "texts"
        self.data, self.teacher = folder / "data", folder / "teacher"
        self.recipe = folder / "recipe"
        self.direction = "l2r"  # the teacher's
        write_texts(self.texts, seed, words)
        write_texts(self.recipe / "text", seed, words)
        (self.recipe / "recipe.yaml").write_text(json.dumps(RECIPE))  # is yaml, too
        (self.recipe / "prepare.py").write_text(PREPARE)

    def binarise(self, folder: Path) -> list[str]:
        words: list[str | Path] = [
            "binarise",
            "-s",
            "en",
            "-t",
            "de",
            "--destdir",
            folder,
        ]
        for split in SIZES:
            words += [f"--{split}pref", self.texts / split]
        return step_command(*map(str, words), "--workers", "2")

    def train(self, folder: Path, epochs: int = 20) -> list[str]:
        words: list[str | Path] = ["fairseq-train", self.data, "--user-dir", PLUGIN]
        words += ["--save-dir", folder]
        words += [
            "--task",
            "sb_translation",
            "--sb-direction",
            self.direction,
            *MODEL,
            *TRAIN,
        ]
        words += ["--arch", "transformer_tiny", "--max-epoch", str(epochs)]
        return executable(words)

    def pseudo(self, output: Path, worker: int = 0, of: int = 1) -> list[str]:
        words: list[str | Path] = [
            "pseudo",
            self.data,
            "--path",
            self.teacher / "checkpoint_last.pt",
        ]
        words += [
            "--sb-direction",
            self.direction,
            "--cpu",
            "--beam",
            "2",
            "--max-len-b",
            "10",
        ]
        words += ["--input", self.texts / "train.en", "--output", output]
        words += ["--shard-size", "4", "--of", str(of), "--worker", str(worker)]
        return step_command(*map(str, words))

    def drive(self, work: Path) -> list[str]:
        return step_command("recipe", str(self.recipe), "--work", str(work))

    def benchmark(self, folder: Path) -> list[str]:
        words = [
            "--output",
            str(folder),
            "--size",
            "tiny",
            "--vocabulary",
            "50",
            "--rounds",
            "1",
        ]
        words += ["--threads", "1", "--systems", "SB-NMT"]
        return step_command("benchmark", *words)

    def subjects(self) -> dict[str, Subject]:
        """Return all subjects, by name."""
        made = [
            Subject(
                "recipe",
                lambda at: [self.drive(at)],
                (
                    *("text/*", "bpe/*", "data*/*", "examples/*/*", "pseudo/*"),
                    *("pseudo/*.shards/*", "*/model.pt", "results/*", "results/*/*"),
                ),
                span=12,
            ),
            Subject(
                "pseudo",
                lambda at: [self.pseudo(at / "l2r.tsv", i, 2) for i in range(2)],
                ("*", "*.shards/*"),
                alone=lambda at: self.pseudo(at / "l2r.tsv"),
            ),
            Subject(
                "binarise",
                lambda at: [self.binarise(at / "bin")],
                ("bin/*",),
                makes="bin",
            ),
            Subject(
                "training",
                lambda at: [self.train(at)],
                ("checkpoint_last.pt", "checkpoint_best.pt", "checkpoint20.pt"),
            ),
            Subject("benchmark", lambda at: [self.benchmark(at)], ("benchmark.json",)),
        ]
        return {subject.name: subject for subject in made}


def results_of(subject: Subject, folder: Path) -> dict[str, str]:
    """Return a checksum of every file of a subject, without its times."""
    found = {}
    for pattern in subject.results:
        for path in sorted(folder.glob(pattern)):
            if path.is_file() and path.name not in TIMES:
                found[str(path.relative_to(folder))] = digest(path)
    return found


def digest(path: Path) -> str:
    """Return a checksum: of a checkpoint's parameters, of JSON without its times."""
    made = hashlib.sha256()
    if path.suffix == ".pt":
        for name, value in sorted(read_checkpoint(str(path))["model"].items()):
            made.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            made.update(value.contiguous().numpy().tobytes())
    elif path.suffix == ".json":
        timeless = without_times(json.loads(path.read_text(encoding="utf-8")))
        made.update(json.dumps(timeless, sort_keys=True).encode())
    else:
        made.update(path.read_bytes())
    return made.hexdigest()


def without_times(value: Any) -> Any:
    """Return JSON without the values that depend on a clock or the machine's load."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if not k.startswith(COSTS)}
        return {k: without_times(v) for k, v in kept.items()}
    if isinstance(value, list):
        return [without_times(item) for item in value]
    return value
