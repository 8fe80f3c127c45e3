"""The rows of a recipe: trained with all that they need, decoded, scored, probed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sbnmt_plugin.steps import PLUGIN
from sbnmt_plugin.tools.recipes.corpus import exclusive
from sbnmt_plugin.tools.recipes.results import reference_files, score_row
from sbnmt_plugin.tools.recipes.settings import SCORE, search_options
from sbnmt_plugin.tools.recipes.systems import (
    BOTH,
    SYSTEMS,
    interacts,
    split_name,
)
from sbnmt_plugin.tools.recipes.training import DIRECTIONS, Training
from sbnmt_plugin.tools.text import new_file, read_lines, remove_bpe, write_lines

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
        self.fairseq(f"generate/{name}", "generate", *words)
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
        self.own("generate/rerank", "rerank", *words)
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
            if self.settings["score"]["phonemes"]:
                words += ["--phonemes"]
            self.own(f"interaction/{name}", "probe-interaction", *words)

    def reading(self, name: str) -> None:
        """Score gold text that gives itself away to a model that reads across."""
        output = self.work / "results" / "reading" / f"{name}.json"
        if not output.exists():
            words = [self.gold_data(), "--path", self.model(name)]
            words += [*self.settings["generate"], *self.device, "--json", output]
            self.own(f"reading/{name}", "probe-reading", *words)

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
        known["score"] = {**SCORE, **known["score"]}  # where a key is newer than that
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
