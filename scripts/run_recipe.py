#!/usr/bin/env python3
"""Run a recipe from raw text to a table of scores, skipping what is done.

    run_recipe.py examples/toy --work work/toy
    run_recipe.py examples/toy --work work/toy --rows paper sweep
    run_recipe.py examples/multi30k --work work/multi30k --data FOLDER [--small]

A recipe is a folder with recipe.yaml and prepare.py.  A row of the table is a system:
it is trained, with all that it needs (texts, BPE, teachers, pseudo targets, triples),
decoded and scored, each in a sub-folder of --work.  Interrupt and repeat the command
at will, and add rows later; work/table.json has the numbers, logs/ what they cost.
"""

from __future__ import annotations

import argparse
import functools
import json
import shlex
import shutil
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from comparison.recipes import (
    device,
    flags,
    load_recipe,
    same_training,
    search_options,
    training_options,
)
from comparison.results import build_table, score_row
from comparison.runner import ROOT, Runner
from comparison.systems import BOTH, GROUPS, SYSTEMS, interacts, rows, split_name
from table import render
from texts import new_file, read_lines, remove_bpe, run, write_lines

SCRIPTS = ROOT / "scripts"
PLUGIN = ROOT / "sbnmt_plugin"
DIRECTIONS = ("l2r", "r2l")


def once(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step runs once at a time for the same arguments; others wait for its result."""

    @functools.wraps(step)
    def locked(self: Recipe, *words: str) -> Any:
        with self.guard:
            lock = self.locks[step.__name__, words]
        with lock:
            return step(self, *words)

    return locked


class Recipe(Runner):
    """The steps of a recipe.  Each calls those it needs, and leaves a file when done.

    Args:
        folder: of the recipe.
        work: where to write.
        settings: recipe.yaml's.
        data: the user's raw files, where the recipe wants any.
        processes: trainings and translations of pseudo targets are spread over.
        launcher: command before train.py, where torchrun needs more than a number.
    """

    def __init__(
        self,
        folder: Path,
        work: Path,
        settings: dict[str, Any],
        data: str | None = None,
        processes: int = 1,
        launcher: str | None = None,
    ) -> None:
        super().__init__(work, settings["environment"])
        self.folder = folder
        self.settings = settings
        self.data = data
        self.processes = processes
        self.launcher = shlex.split(launcher or "")
        if processes > 1 and not launcher:
            torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
            self.launcher = [*torchrun, "--nproc-per-node", str(processes)]
        self.source, self.target = settings["source"], settings["target"]
        self.guard = threading.Lock()
        self.locks: dict[Any, threading.RLock] = defaultdict(threading.RLock)

    @property
    def device(self) -> list[str]:
        return device(self.settings)

    # ------------------------------------------------------------ texts

    @once
    def text(self) -> Path:
        """Tokenised text, and the test set's references as published."""
        folder = self.work / "text"
        if not (folder / f"test.{self.target}").exists():
            words = ["--output", folder, *self.settings["prepare"]]
            if self.data is not None:
                words += ["--data", self.data]
            self.python("text", self.folder / "prepare.py", *words)
        return folder

    @once
    def bpe(self) -> Path:
        """Learn codes on the training text and split all texts."""
        text, out, bpe = self.text(), self.work / "bpe", self.settings["bpe"]
        languages = self.source, self.target
        script = SCRIPTS / "bpe.py"
        for language in languages:
            joint = bpe["kind"] == "joint"
            codes = out / ("codes" if joint else f"codes.{language}")
            if not codes.exists():
                names = languages if joint else [language]
                words = ["learn", "--merges", bpe["merges"], "--codes", codes]
                words += [text / f"train.{name}" for name in names]
                self.python(f"bpe/{codes.name}", script, *words)
            for split in ("train", "valid", "test"):
                name = f"{split}.{language}"
                if not (out / name).exists():
                    words = ["apply", "--codes", codes, text / name, out / name]
                    self.python(f"bpe/{name}", script, *words)
        return out

    def binarise(self, folder: Path, train: Path, *words: Any) -> None:
        if folder.exists():
            return
        prefixes = ["--trainpref", train]
        for split in ("valid", "test"):
            prefixes += [f"--{split}pref", self.work / "bpe" / split]
        pair = ["-s", self.source, "-t", self.target, "--destdir", folder]
        script = SCRIPTS / "binarise.py"
        self.python(folder.name, script, *pair, *prefixes, "--workers", 2, *words)

    @once
    def gold_data(self) -> Path:
        """The gold text, binarised; its dictionaries are everyone's."""
        folder = self.work / "data"
        self.binarise(folder, self.bpe() / "train", *self.settings["preprocess"])
        return folder

    @once
    def training_data(self, kind: str) -> Path:
        """Binarised training set: gold, pl, pl-pr, two or six."""
        gold = self.gold_data()
        if kind == "gold":
            return gold
        words = ["--srcdict", gold / f"dict.{self.source}.txt"]
        if "--joined-dictionary" in self.settings["preprocess"]:
            words += ["--joined-dictionary"]
        else:
            words += ["--tgtdict", gold / f"dict.{self.target}.txt"]
        folder = self.work / f"data-{kind}"
        if not folder.exists():
            self.binarise(folder, self.examples(kind), *words)
        return folder

    @once
    def examples(self, kind: str) -> Path:
        """Gold text joined with pseudo targets."""
        output, gold = self.work / "examples" / kind / "train", self.bpe()
        if not output.with_suffix(f".{self.target}").exists():
            words = ["--source", gold / f"train.{self.source}"]
            words += ["--target", gold / f"train.{self.target}"]
            for direction in DIRECTIONS:
                words += [f"--pseudo-{direction}", self.pseudo(direction)]
            option = "--triples" if kind in ("two", "six") else "--pairs"
            words += ["--output", output, option, kind]
            if option == "--triples":
                words += self.settings["make_triples"]
            self.python(f"examples/{kind}", SCRIPTS / "make_triples.py", *words)
        return output

    # ------------------------------------------------------------ models

    @once
    def model(self, name: str) -> Path:
        """Train a row, or continue where it was interrupted; its checkpoint."""
        name = same_training(self.settings, name)
        folder, system = self.work / name, SYSTEMS[split_name(name)[0]]
        if not (folder / "done").exists():
            data = self.training_data(system.data)
            options = training_options(self.settings, name)
            paths = {"--user-dir": PLUGIN, "--save-dir": folder}
            if system.starts_from:
                teacher, _ = self.teacher(system.starts_from.removeprefix("teacher-"))
                paths["--finetune-from-model"] = teacher
            launcher = self.launcher or [sys.executable]
            words = [
                *launcher,
                SCRIPTS / "train.py",
                data,
                *flags({**paths, **options}),
            ]
            self.command(f"train/{name}", [str(word) for word in words])
            self.average(name)
            (folder / "done").touch()
        return folder / "model.pt"

    def average(self, name: str) -> None:
        """Average the last checkpoints, or point at the best one."""
        folder, count = self.work / name, self.settings["average"]
        if count:
            words = ["--output", folder / "model.pt", "--last", count, folder]
            self.python(f"average/{name}", SCRIPTS / "average_checkpoints.py", *words)
        else:
            (folder / "model.pt").unlink(missing_ok=True)
            (folder / "model.pt").symlink_to("checkpoint_best.pt")

    def teacher(self, direction: str) -> tuple[Path, list[str]]:
        """Checkpoint of a teacher, and the options by which it takes a direction."""
        if self.settings["teachers"] == "one":
            return self.model("teacher-both"), ["--sb-answer", direction]
        return self.model(f"teacher-{direction}"), ["--sb-direction", direction]

    @once
    def pseudo(self, direction: str) -> Path:
        """A teacher's translation of the training source."""
        output = self.work / "pseudo" / f"{direction}.tsv"
        source = self.bpe() / f"train.{self.source}"
        if not output.exists():
            path, words = self.teacher(direction)
            words = [self.gold_data(), "--path", path, *words, *self.device]
            words += [*self.settings["decode"], *self.settings["pseudo"]]
            words += ["--input", source, "--output", output]
            with ThreadPoolExecutor(self.processes) as pool:
                workers = range(self.processes)
                list(pool.map(lambda i: self.translate(direction, i, words), workers))
        if not (output.parent / source.name).exists():
            shutil.copy(source, output.parent)  # for start_from()
        return output

    def translate(self, direction: str, worker: int, words: list[Any]) -> None:
        """One worker's share of the pseudo targets; each has a GPU of its own."""
        step, variables = f"pseudo/{direction}", {}
        if self.processes > 1:
            step += f"/{worker}"
            words = [*words, "--of", self.processes, "--worker", worker]
            variables = {"CUDA_VISIBLE_DEVICES": str(worker)}
        self.python(step, SCRIPTS / "translate.py", *words, **variables)

    def start_from(self, folder: Path) -> None:
        """Take over the pseudo targets of an earlier run.

        Raises:
            FileNotFoundError, ValueError: they are not those of this text.
        """
        name = f"train.{self.source}"
        files = [folder / f"{direction}.tsv" for direction in DIRECTIONS]
        for path in [*files, folder / name]:
            if not path.is_file():
                raise FileNotFoundError(
                    f"--pseudo {folder} must hold {', '.join(p.name for p in files)} "
                    f"and {name}, as another run's folder pseudo does, but has no "
                    f"{path.name}"
                )
        if read_lines(folder / name) != read_lines(self.bpe() / name):
            raise ValueError(
                f"--pseudo {folder} must translate this recipe's training source, but "
                f"its {name} is another text: leave the option out to translate anew"
            )
        for path in [*files, folder / name]:
            if not (self.work / "pseudo" / path.name).exists():
                (self.work / "pseudo").mkdir(exist_ok=True)
                shutil.copy(path, self.work / "pseudo")

    # ------------------------------------------------------------ results

    @once
    def result(self, name: str) -> None:
        """Decode the test set with a row's model and score it."""
        result = self.work / "results" / f"{name}.json"
        if not result.exists():
            result.parent.mkdir(exist_ok=True)
            self.make_result(name, result)

    def make_result(self, name: str, result: Path) -> None:
        """Hypotheses of a row, tokenised; scored into ``result``."""
        base, _ = split_name(name)
        records = result.with_suffix(".jsonl")
        if base == "rerank":
            hypotheses = self.rerank(result.with_suffix(".tsv"))
        else:
            hypotheses = self.generate(name, records)
        tokens = [remove_bpe(line) for line in hypotheses]
        scored, plain = score_row(tokens, self.work / "text", self.settings)
        both = SYSTEMS[base].direction == BOTH
        if both:
            winners = [json.loads(line)["winner"] for line in read_lines(records)]
            share = 100 * winners.count("l2r") / len(winners)
            scored["L2R wins"] = {"score": round(share, 1)}
        write_lines(result.with_suffix(".tok"), tokens)
        write_lines(result.with_suffix(".txt"), plain)
        with new_file(result) as file:
            json.dump(scored, file, indent=1)

    def generate(self, name: str, records: Path) -> list[str]:
        """The test set by fairseq-generate."""
        base, seed = split_name(name)
        if base in ("teacher-l2r", "teacher-r2l") and seed == 1:
            path, words = self.teacher(base.removeprefix("teacher-"))
        else:
            path, direction = self.model(name), SYSTEMS[base].direction
            words = [] if direction == BOTH else ["--sb-direction", direction]
        records.unlink(missing_ok=True)
        out = records.with_suffix(".generate")
        words = [self.gold_data(), "--path", path, *words, "--gen-subset", "test"]
        words += search_options(self.settings)
        words += ["--user-dir", PLUGIN, "--task", "sb_translation"]
        words += ["--sb-records", records, "--results-path", out]
        self.python(f"generate/{name}", "fairseq_cli.generate", *words)
        return read_hypotheses(out / "generate-test.txt")

    def rerank(self, output: Path) -> list[str]:
        """The test set by both teachers together."""
        if self.settings["teachers"] == "one":
            raise ValueError("row rerank needs `teachers: two` in recipe.yaml")
        words = [self.gold_data(), *self.settings["decode"], *self.device]
        for direction in DIRECTIONS:
            path, _ = self.teacher(direction)
            words += [f"--{direction}", path]
        words += [*self.settings["generate"], *self.settings["rerank"]]
        words += ["--input", self.bpe() / f"test.{self.source}", "--output", output]
        self.python("generate/rerank", SCRIPTS / "rerank.py", *words)
        found = {}
        for line in read_lines(output):
            index, _, text = line.split("\t")
            found[int(index)] = text
        # a source that is over-long has no translation
        count = len(read_lines(self.bpe() / f"test.{self.source}"))
        return [found.get(i, "") for i in range(count)]

    def probe(self, name: str) -> None:
        """Decode with the future removed, and with partners shuffled."""
        output = self.work / "results" / "interaction" / f"{name}.json"
        if not output.exists():
            words = [self.gold_data(), "--path", self.model(name)]
            words += ["--input", self.bpe() / f"test.{self.source}"]
            words += ["--reference", self.text() / f"test.{self.target}"]
            words += [*search_options(self.settings), "--json", output]
            if self.settings["score"]["lowercase"]:
                words += ["--lowercase"]
            script = SCRIPTS / "probe_interaction.py"
            self.python(f"interaction/{name}", script, *words)

    def reading(self, name: str) -> None:
        """Score gold text that gives itself away to a model that reads across."""
        output = self.work / "results" / "reading" / f"{name}.json"
        if not output.exists():
            words = [self.gold_data(), "--path", self.model(name)]
            words += [*self.settings["generate"], *self.device, "--json", output]
            self.python(f"reading/{name}", SCRIPTS / "probe_reading.py", *words)

    def run(self, names: list[str], jobs: int) -> None:
        """All rows, ``jobs`` side by side, after pseudo targets if any needs them."""
        needed = {SYSTEMS[split_name(name)[0]].data for name in names} - {"", "gold"}
        steps = [(self.pseudo, d) for d in DIRECTIONS if needed]
        steps += [(self.result, name) for name in names]
        for name in filter(interacts, names):
            steps += [(self.probe, name), (self.reading, name)]
        self.gold_data()
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda step: step[0](step[1]), steps))


def read_hypotheses(path: Path) -> list[str]:
    """The H- lines of fairseq-generate's output, in order of their ids."""
    found: dict[int, str] = {}
    for line in read_lines(path):
        if line.startswith("H-"):
            name, _, text = line.split("\t", 2)
            found.setdefault(int(name[2:]), text)
    return [found[i] for i in sorted(found)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", help="folder under examples/")
    parser.add_argument("--work", required=True, help="folder to write to")
    parser.add_argument("--data", help="folder of raw files, where the recipe asks")
    parser.add_argument("--small", action="store_true", help="the small setting")
    parser.add_argument(
        "--rows",
        nargs="+",
        metavar="ROW",
        help=f"systems ({', '.join(SYSTEMS)}), each also with a seed as in sb@2, or "
        f"groups ({', '.join(GROUPS)}); default: the recipe's",
    )
    parser.add_argument("--jobs", type=int, help="rows side by side on one device")
    parser.add_argument(
        "--processes", type=int, default=1, help="GPUs, or CPU processes, of a training"
    )
    parser.add_argument(
        "--launcher",
        help="instead: torchrun with its options; for several machines run the recipe "
        "on one, and on the others the train commands that it prints",
    )
    parser.add_argument("--pseudo", help="folder of another run's pseudo targets")
    args = parser.parse_args()
    for flag, value in ("--jobs", args.jobs), ("--processes", args.processes):
        if value is not None and value < 1:
            raise ValueError(f"{flag} must be ≥ 1, but is {value}")
    folder, work = Path(args.recipe).resolve(), Path(args.work).resolve()
    settings = load_recipe(folder, args.small)
    names = rows(args.rows or settings["rows"])
    work.mkdir(parents=True, exist_ok=True)
    with new_file(work / "recipe.json") as file:  # for sweep_beam.py
        json.dump(settings, file, indent=1, ensure_ascii=False)
    recipe = Recipe(folder, work, settings, args.data, args.processes, args.launcher)
    if args.pseudo:
        recipe.start_from(Path(args.pseudo))
    recipe.run(names, args.jobs or settings["jobs"])
    command = f"scripts/run_recipe.py examples/{folder.name}" + " --small" * args.small
    table = build_table(work, settings, command)
    with new_file(work / "table.json") as file:
        json.dump(table, file, indent=1, ensure_ascii=False)
    print("\n" + render(table), end="", flush=True)


if __name__ == "__main__":
    run(main)
