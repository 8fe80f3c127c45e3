"""Steps of the rows of the table: they are decoded, scored and measured."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.settings import (
    device,
    raw_tokeniser,
    references,
    scoring_options,
    search_options,
    searching,
)
from sbnmt_plugin.tools.recipes.stages import Settings, model_row, row_records
from sbnmt_plugin.tools.recipes.step import Step, in_order
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.systems.system import DIRECTIONS, MULTILINGUAL
from sbnmt_plugin.tools.recipes.training_steps import TrainingSteps
from sbnmt_plugin.tools.recipes.work_folder import ResultRecord


class RowSteps(TrainingSteps):
    """Steps of a recipe's run, from raw text to results."""

    def targets(self, rows: list[Row]) -> list[Step]:
        """Return the last steps of all that some rows need, in the order of a run.

        The gold text comes first, then pseudo targets, then rows, last of them those
        that would wait for another row's model, then what measures the rows.
        """
        results = [self.result(row) for row in sorted(rows, key=lambda x: x.borrows)]
        pseudo = [x for x in in_order(results) if x.name.startswith("pseudo/")]
        found = [self.gold(), *sorted(pseudo, key=lambda x: x.name), *results]
        for row in rows:
            if row.interacts and not row.rescored:
                found += [self.probe(row)]
                found += [self.reading(row)] if row.side_by_side else []
        if self.settings["links"]:
            found += [self.alignment(row) for row in rows if row.has_links]
        return found

    def printed(self, rows: list[Row], options: list[str]) -> list[Step]:
        """Return the last steps that a script shows for some rows.

        Args:
            options: that say how the recipe is taken.
        """
        words = ["sbnmt", "table", "--recipe", self.run.folder, *options]
        words += ["--work", self.work]
        table = Step.of("table", "The table", words, self.work / "table.json")
        return [*self.targets(rows), table]

    @functools.cache
    def result(self, row: Row) -> Step:
        """A row's scores on the test set."""
        output = self.work / "results" / f"{row.name}.json"
        if row.system.joins:
            decoded = self.rerank(row, output)
        elif row.system.table and not (row.system.data or row.system.decodes):
            decoded = self.lookup(row, output)
        else:
            decoded = self.generate(row, output)
        words = ["sbnmt", "evaluate", decoded, "--text", self.work / "text"]
        words += scoring_options(self.settings, row)
        if row.side_by_side:
            words += ["--records", output.with_suffix(".jsonl")]
        words += ["--output", output]
        purpose, record = f"Score {row.name}", self.record(row, output)
        name = f"evaluate/{row.name}"
        return Step.of(name, purpose, words, output, record=record)

    def record(self, row: Row, results: Path) -> ResultRecord | None:
        """Return the options of the model that some results are of, if it has any."""
        if not (row.system.data or row.system.decodes):
            return None
        options = row_records(self.settings, model_row(self.settings, row))[-1]
        return ResultRecord(results, options)

    def decoding(
        self,
        row: Row,
        purpose: str,
        words: list[Any],
        result: Path,
        end: str,
        **more: Any,
    ) -> Step:
        """Return a step that decodes a row, and is done when the row is scored."""
        name, output = f"generate/{row.name}", result.with_suffix(end)
        more = {"gpus": self.run.gpus(), "done": result, **more}
        return Step.of(name, purpose, words, output, **more)

    def generate(self, row: Row, result: Path) -> Step:
        """Return the step that decodes the test set by fairseq-generate."""
        records, output = (result.with_suffix(x) for x in (".jsonl", ".generate"))
        words = self.search(row)
        words += ["--sb-records", records, "--results-path", output]
        purpose = f"Translate the test set with {row.name}"
        return self.decoding(row, purpose, words, result, ".generate", clears=records)

    def search(self, row: Row) -> list[Any]:
        """Return the command that decodes the test set, but for what it writes to."""
        model, asks = self.searched(row)
        back, data, others = row.system.back, self.gold(), []
        if SYSTEMS[row.system.decodes or row.base].data == MULTILINGUAL:
            data = self.way_back() if back else self.data(MULTILINGUAL)
        elif back:
            source, target = self.languages
            others = ["--source-lang", target, "--target-lang", source]
        words = ["fairseq-generate", data, "--path", model, *asks, *others]
        words += ["--gen-subset", "test", *search_options(self.settings)]
        words += [*row.system.decode, *self.reads(row)]
        if row.system.led:
            words += ["--nat-teacher", self.trained(Row("teacher-l2r"))]
        if row.rescored:
            words += ["--sb-rescore", self.settings["rescore"]]
        return [*words, "--user-dir", row.system.user_dir, "--task", "sb_translation"]

    def lookup(self, row: Row, result: Path) -> Step:
        """Return the step that looks the test set up in the phrase table."""
        words = ["sbnmt", "lookup", "--table", self.phrases("phrases")]
        words += ["--output", result.with_suffix(".bpe")]
        words += ["--input", self.sides("test")[0]]
        purpose = "Look the test set up in the phrase table"
        return self.decoding(row, purpose, words, result, ".bpe", gpus=None)

    def rerank(self, row: Row, result: Path) -> Step:
        """Return the step by which both teachers of the row's seed decode together."""
        words = ["sbnmt", "rerank", self.gold(), *self.settings["decode"]]
        words += searching(self.settings)
        for direction, teacher in zip(DIRECTIONS, row.system.joins):
            words += [f"--{direction}", self.searched(row.beside(teacher))[0]]
        words += [*self.settings["generate"], *self.settings["rerank"]]
        words += ["--input", self.sides("test")[0]]
        words += ["--output", result.with_suffix(".tsv")]
        purpose = "Translate the test set with both teachers together"
        return self.decoding(row, purpose, words, result, ".tsv")

    def measuring(
        self, kind: str, row: Row, purpose: str, step: str, *words: Any
    ) -> Step:
        """Return a step that measures a row's model.

        Args:
            kind: of measure, a folder of the results.
            step: of ``sbnmt`` that takes it.
            words: options beside those of its model and output.
        """
        output = self.work / "results" / kind / f"{row.name}.json"
        command = ["sbnmt", step, self.gold(), "--path", self.searched(row)[0]]
        command += [*words, "--json", output]
        gpus = self.run.gpus()
        return Step.of(f"{kind}/{row.name}", purpose, command, output, gpus=gpus)

    @functools.cache
    def probe(self, row: Row) -> Step:
        """A row decoded with the future removed, and with partners shuffled."""
        words: list[Any] = ["--input", self.sides("test")[0]]
        for path in references(self.work / "text", self.settings).files():
            words += ["--reference", path]
        words += search_options(self.settings)
        score = self.settings["score"]
        words += [f"--{key}" for key in ("lowercase", "phonemes") if score[key]]
        if raw := raw_tokeniser(self.settings):
            words += ["--raw", raw]
        purpose = f"What the interaction is worth to {row.name} in the search"
        return self.measuring("interaction", row, purpose, "probe-interaction", *words)

    @functools.cache
    def reading(self, row: Row) -> Step:
        """The score of gold text, which gives itself away to a model that reads it."""
        words = [*self.settings["generate"], *device(self.settings)]
        purpose = f"How much the streams of {row.name} read of each other"
        return self.measuring("reading", row, purpose, "probe-reading", *words)

    @functools.cache
    def alignment(self, row: Row) -> Step:
        """A row's attention, compared with the links that are known."""
        links = self.work / "results" / "aer" / f"{row.name}.links"
        source, target = self.sides("test")
        words = [*self.searched(row)[1], *self.settings["generate"]]
        words += [*searching(self.settings), "--input", source, "--reference", target]
        words += ["--gold", self.work / "text" / "test.links"]
        words += ["--output", links]
        purpose = f"Compare the attention of {row.name} with the links that are known"
        return self.measuring("aer", row, purpose, "aer", *words)


def check_row(work: Path, settings: Settings, row: Row) -> None:
    """Check that a work folder's files of a row belong to the recipe.

    Checked are the models with which it decodes, those that they start from, and the
    pseudo targets that these have learned from.

    Raises:
        ValueError: one was made with other options.
    """
    if row.system.remedy:  # its options are not known any more
        return

    def needs(step: Step) -> tuple[Step, ...]:
        """Leave out what a record tells of, too: it stays good without its files."""
        if step.record is None or not step.record.whole:
            return step.inputs
        made = step.record.path.exists() or step.complete.exists()
        return () if made else step.inputs

    for step in in_order([RowSteps(Run(settings, work)).result(row)], needs=needs):
        if step.record:
            step.record.check()
