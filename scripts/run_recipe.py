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
import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from comparison.corpus import SCRIPTS, exclusive
from comparison.recipes import load_recipe, search_options
from comparison.results import build_table, reference_files, score_row
from comparison.systems import BOTH, GROUPS, SYSTEMS, interacts, rows, split_name
from comparison.training import DIRECTIONS, PLUGIN, Training
from table import render
from texts import new_file, read_lines, remove_bpe, run, write_lines

# what every row depends on; a work folder keeps one value of each
SHARED = (
    *("source", "target", "prepare", "bpe", "preprocess", "teachers", "decode"),
    *("pseudo", "make_triples", "average", "generate", "rerank", "detokenise", "score"),
)


class Recipe(Training):
    """Rows: decoded, scored, probed."""

    @exclusive
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
        teaches = base in ("teacher-l2r", "teacher-r2l")
        if teaches and seed == 1:
            path, asks = self.teacher(base.removeprefix("teacher-"))
        elif teaches and self.settings["teachers"] == "one":
            raise ValueError(f"row {name} needs `teachers: two` in recipe.yaml")
        else:
            path, direction = self.model(name), SYSTEMS[base].direction
            asks = [] if direction == BOTH else ["--sb-direction", direction]
        records.unlink(missing_ok=True)
        out = records.with_suffix(".generate")
        words: list[Any] = [self.gold_data(), "--path", path, *asks]
        words += ["--gen-subset", "test"]
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
            for path in reference_files(self.text(), self.settings):
                words += ["--reference", path]
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
        """All rows, ``jobs`` side by side, after pseudo targets if any needs them.

        Where one fails those that run go on to their end; where the user interrupts,
        all stop.
        """
        needed = {SYSTEMS[split_name(name)[0]].data for name in names} - {"", "gold"}
        steps = [(self.pseudo, d) for d in DIRECTIONS if needed]
        steps += [(self.result, name) for name in names]
        for name in filter(interacts, names):
            steps += [(self.probe, name), (self.reading, name)]
        self.gold_data()
        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(step, word) for step, word in steps]
            try:
                for future in futures:
                    future.result()
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                if not isinstance(error, Exception):
                    self.stop()
                raise


@contextlib.contextmanager
def claim(work: Path) -> Iterator[int]:
    """Hold the work folder; a step that outlives its driver goes on holding it.

    Yields:
        A file descriptor for the steps to inherit.

    Raises:
        ValueError: somebody else holds it.
    """
    lock = os.open(work / ".lock", os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"--work {work} must not be in use, but another run, or a step that it "
                "began, is still at work there: wait for it or end it"
            ) from error
        yield lock
    finally:
        os.close(lock)


def same_recipe(work: Path, settings: dict[str, Any]) -> None:
    """A work folder belongs to one setting of one recipe.

    Raises:
        ValueError: what all rows share has changed.
    """
    path = work / "recipe.json"
    if path.exists():
        known = json.loads(path.read_text("utf-8"))
        changed = [key for key in SHARED if known.get(key) != settings[key]]
        if changed:
            raise ValueError(
                f"--work {work} was begun with another recipe, or with --small or "
                f"without it ({', '.join(changed)} differ): choose another folder"
            )
    with new_file(path) as file:  # sweep_beam.py reads it, too
        json.dump(settings, file, indent=1, ensure_ascii=False)


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
        help=f"systems ({', '.join(SYSTEMS)}), each also with a seed as in sb@2 "
        "(teachers and pseudo targets stay), or groups "
        f"({', '.join(GROUPS)}); default: the recipe's",
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
    jobs = args.jobs
    if args.launcher:
        if args.processes > 1:
            raise ValueError("--processes and --launcher exclude each other")
        if jobs and jobs > 1:
            raise ValueError(
                "--jobs must be 1 with --launcher: one rendezvous at a time"
            )
        jobs = 1
    folder, work = Path(args.recipe).resolve(), Path(args.work).resolve()
    settings = load_recipe(folder, args.small)
    names = rows(args.rows or settings["rows"])
    work.mkdir(parents=True, exist_ok=True)
    with claim(work) as lock:
        same_recipe(work, settings)
        recipe = Recipe(
            *(folder, work, settings, args.data),
            processes=args.processes,
            launcher=args.launcher,
        )
        recipe.inherited = (lock,)
        if args.pseudo:
            recipe.start_from(Path(args.pseudo))
        recipe.run(names, jobs or settings["jobs"])
    command = f"scripts/run_recipe.py examples/{folder.name}" + " --small" * args.small
    table = build_table(work, settings, command)
    with new_file(work / "table.json") as file:
        json.dump(table, file, indent=1, ensure_ascii=False)
    print("\n" + render(table), end="", flush=True)


if __name__ == "__main__":
    run(main)
