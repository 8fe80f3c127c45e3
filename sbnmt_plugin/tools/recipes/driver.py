"""The rows of a recipe: trained with all that they need, decoded, scored, probed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.ancestry import check_row
from sbnmt_plugin.tools.recipes.corpus import exclusive
from sbnmt_plugin.tools.recipes.row_names import (
    borrows,
    has_links,
    interacts,
    is_rescored,
    side_by_side,
    split_name,
    with_seed,
)
from sbnmt_plugin.tools.recipes.settings import (
    DIRECTIONS,
    needs_pseudo,
    references,
    references_of,
    scoring_options,
    search_options,
    searching,
)
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.systems.enat import LOOKUP
from sbnmt_plugin.tools.recipes.systems.system import BOTH, TEACHER
from sbnmt_plugin.tools.recipes.systems.two_way import MULTILINGUAL
from sbnmt_plugin.tools.recipes.training import Training
from sbnmt_plugin.tools.recipes.work_folder import decoded_rows

TWO_TEACHERS = "`teachers: two` in recipe.yaml, or --teachers two"


class Recipe(Training):
    """Rows: decoded, scored, probed."""

    @exclusive
    def result(self, name: str) -> None:
        """Decode the test set with a row's model and score it."""
        output = self.work / "results" / f"{name}.json"
        if self.bench.has(output):
            return
        base, _ = split_name(name)
        records = output.with_suffix(".jsonl")
        if SYSTEMS[base].joins:
            decoded = self.rerank(name, output.with_suffix(".tsv"))
        elif base == LOOKUP:
            decoded = self.lookup(output.with_name("lookup.bpe"))
        else:
            decoded = self.generate(name, records)
        words = ["sbnmt", "evaluate", decoded, "--text", self.work / "text"]
        words += scoring_options(references_of(self.settings, name))
        if side_by_side(base):
            words += ["--records", records]
        words += ["--output", output]
        self.step(f"evaluate/{name}", f"Score {name}", output, *words)

    def searched(self, name: str) -> tuple[Path, list[str]]:
        """A row's checkpoint, and the options by which it writes in its direction."""
        base, seed = split_name(name)
        teaches = base in ("teacher-l2r", "teacher-r2l")
        if teaches and seed == 1:
            return self.teacher(base.removeprefix("teacher-"))
        path, direction = self.model(name), SYSTEMS[base].direction
        return path, [] if direction == BOTH else ["--sb-direction", direction]

    def generate(self, name: str, records: Path) -> Path:
        """The test set by fairseq-generate."""
        path, asks = self.searched(name)
        output = records.with_suffix(".generate")
        data, subset = self.test_data(split_name(name)[0])
        words: list[Any] = [data, "--path", path, *asks, *subset]
        words += [*search_options(self.settings), *self.parallel(split_name(name)[0])]
        if is_rescored(name):
            words += ["--sb-rescore", self.settings["rescore"]]
        user_dir = SYSTEMS[split_name(name)[0]].user_dir
        words += ["--user-dir", user_dir, "--task", "sb_translation"]
        words += ["--sb-records", records, "--results-path", output]
        self.bench.clear(records)
        purpose = f"Translate the test set with {name}"
        words = ["fairseq-generate", *words]
        self.step(f"generate/{name}", purpose, output, *words, gpus=self.gpus())
        return output

    def parallel(self, base: str) -> list[Any]:
        """Options of decoding that are a system's own."""
        words = [*SYSTEMS[base].decode, *self.reads(base)]
        if SYSTEMS[base].led:
            words += ["--nat-teacher", self.model("teacher-l2r")]
        return words

    def lookup(self, output: Path) -> Path:
        """What the phrase table gives for the test set."""
        words = ["sbnmt", "lookup", "--table", self.phrases(False), "--output", output]
        words += ["--input", self.bpe() / f"test.{self.source}"]
        purpose = "Look the test set up in the phrase table"
        self.step("generate/lookup", purpose, output, *words)
        return output

    def test_data(self, base: str) -> tuple[Path, list[str]]:
        """The folder of a row's test set, and the options that choose it there."""
        system, subset = SYSTEMS[base], ["--gen-subset", "test"]
        if SYSTEMS[system.decodes or base].data == MULTILINGUAL:
            if system.back:
                return self.way_back(), subset
            return self.training_data(MULTILINGUAL), subset
        languages = ["--source-lang", self.target, "--target-lang", self.source]
        return self.gold_data(), [*languages * system.back, *subset]

    def rerank(self, name: str, output: Path) -> Path:
        """The test set by both teachers together, each trained with the row's seed."""
        words = [self.gold_data(), *self.settings["decode"]]
        words += searching(self.settings)
        base, seed = split_name(name)
        for direction, teacher in zip(DIRECTIONS, SYSTEMS[base].joins):
            path, _ = self.searched(with_seed(teacher, seed))
            words += [f"--{direction}", path]
        words += [*self.settings["generate"], *self.settings["rerank"]]
        words += ["--input", self.bpe() / f"test.{self.source}", "--output", output]
        purpose = "Translate the test set with both teachers together"
        words = ["sbnmt", "rerank", *words]
        self.step(f"generate/{name}", purpose, output, *words, gpus=self.gpus())
        return output

    def probe(self, name: str) -> None:
        """Decode with the future removed, and with partners shuffled."""
        output = self.work / "results" / "interaction" / f"{name}.json"
        if not self.bench.has(output):
            words = [self.gold_data(), "--path", self.model(name)]
            words += ["--input", self.bpe() / f"test.{self.source}"]
            for path in references(self.text(), self.settings).files():
                words += ["--reference", path]
            words += [*search_options(self.settings), "--json", output]
            if self.settings["score"]["lowercase"]:
                words += ["--lowercase"]
            if self.settings["score"]["phonemes"]:
                words += ["--phonemes"]
            purpose = f"What the interaction is worth to {name} in the search"
            words = ["sbnmt", "probe-interaction", *words]
            self.step(f"interaction/{name}", purpose, output, *words, gpus=self.gpus())

    def reading(self, name: str) -> None:
        """Score gold text that gives itself away to a model that reads across."""
        output = self.work / "results" / "reading" / f"{name}.json"
        if not self.bench.has(output):
            words = [self.gold_data(), "--path", self.model(name)]
            words += [*self.settings["generate"], *self.device, "--json", output]
            purpose = f"How much the streams of {name} read of each other"
            words = ["sbnmt", "probe-reading", *words]
            self.step(f"reading/{name}", purpose, output, *words, gpus=self.gpus())

    def alignment(self, name: str) -> None:
        """Compare a row's attention with the links that are known."""
        output = self.work / "results" / "aer" / f"{name}.json"
        if not self.bench.has(output):
            path, asks = self.searched(name)
            sides = [self.bpe() / f"test.{end}" for end in (self.source, self.target)]
            words = [self.gold_data(), "--path", path, *asks]
            words += [*self.settings["generate"], *searching(self.settings)]
            words += ["--input", sides[0], "--reference", sides[1]]
            words += ["--gold", self.text() / "test.links"]
            words += ["--output", output.with_suffix(".links"), "--json", output]
            purpose = f"Compare the attention of {name} with the links that are known"
            words = ["sbnmt", "aer", *words]
            self.step(f"aer/{name}", purpose, output, *words, gpus=self.gpus())

    def table(self, options: list[str]) -> None:
        """The table of all rows; the driver builds it itself, to print it."""
        words = ["--recipe", self.folder, *options, "--work", self.work]
        makes = self.work / "table.json"
        self.step("table", "The table", makes, "sbnmt", "table", *words)

    def run(self, names: list[str], jobs: int) -> None:
        """All rows, ``jobs`` side by side, after pseudo targets if any needs them;
        rows that :meth:`check` lets through.

        Where one fails those that run go on to their end; where the user interrupts,
        all stop.
        """
        steps = [(self.pseudo, d) for d in needs_pseudo(self.settings, names)]
        # last those that would wait for another row's model
        steps += [(self.result, name) for name in sorted(names, key=borrows)]
        for name in filter(interacts, [n for n in names if not is_rescored(n)]):
            steps += [(self.probe, name)]
            if side_by_side(split_name(name)[0]):
                steps += [(self.reading, name)]
        if self.settings["links"]:
            steps += [(self.alignment, name) for name in names if has_links(name)]
        self.gold_data()
        failed = threading.Event()

        def unless_failed(step: Callable[[str], Any], word: str) -> None:
            if failed.is_set():
                return
            try:
                step(word)
            except BaseException:
                failed.set()
                raise

        with ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(unless_failed, *each) for each in steps]
            errors = []
            try:
                for future in as_completed(futures):
                    if error := future.exception():
                        errors.append(error)
                        if any(each.running() for each in futures):
                            self.bench.tell(f"{error}\nWhat runs goes on to its end.")
                if errors:
                    raise errors[0]
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                if not isinstance(error, Exception):
                    self.bench.stop()
                raise

    def check(self, names: list[str]) -> None:
        """Refuse before anything runs what would be refused at the end.

        Raises:
            ValueError: as :func:`check_row`, also of a row that only the table has; a
                row that one teacher alone cannot give.
        """
        for name in names if self.settings["teachers"] == "one" else ():
            base, seed = split_name(name)
            another = base.removeprefix(TEACHER) in DIRECTIONS and seed > 1
            if SYSTEMS[base].joins or another:
                raise ValueError(f"row {name} needs {TWO_TEACHERS}")
        for name in dict.fromkeys([*names, *decoded_rows(self.work)]):
            check_row(self.work, self.settings, name)
