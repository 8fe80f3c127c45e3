"""Steps of the rows of the table: they are decoded, scored and measured."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.data_steps import DataSteps, Run
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.settings import (
    device,
    references,
    scoring_options,
    search_options,
    searching,
)
from sbnmt_plugin.tools.recipes.stages import Settings, direction_taught, needs_pseudo
from sbnmt_plugin.tools.recipes.step import (
    Step,
    check_records,
    in_order,
    once,
    words_of,
)
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.systems.system import BOTH, DIRECTIONS, TEACHER
from sbnmt_plugin.tools.recipes.systems.two_way import MULTILINGUAL
from sbnmt_plugin.tools.recipes.training_steps import TrainingSteps

TWO_TEACHERS = "`teachers: two` in recipe.yaml, or --teachers two"


class RowSteps:
    """Steps of a recipe's run, from raw text to results.

    Args:
        run: see :class:`Run`.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.work, self.settings = run, run.work, run.settings
        self.texts = DataSteps(run)
        self.training = TrainingSteps(self.texts)
        self.made: dict[Any, Step] = {}

    def targets(self, rows: list[Row]) -> list[Step]:
        """Return the last steps of all that some rows need, in the order of a run.

        The gold text comes first, then pseudo targets, then rows, last of them those
        that would wait for another row's model, then what measures the rows.
        """
        found = [self.texts.gold()]
        found += map(self.training.pseudo, needs_pseudo(self.settings, rows))
        found += map(self.result, sorted(rows, key=lambda row: row.borrows))
        for row in rows:
            if row.interacts and not row.rescored:
                found += [self.probe(row)]
                found += [self.reading(row)] if row.side_by_side else []
        if self.settings["links"]:
            found += [self.alignment(row) for row in rows if row.has_links]
        return found

    @once
    def result(self, row: Row) -> Step:
        """A row's scores on the test set.

        Raises:
            ValueError: one teacher of both directions cannot give the row.
        """
        another = row.base.removeprefix(TEACHER) in DIRECTIONS and row.seed > 1
        if self.settings["teachers"] == "one" and (row.system.joins or another):
            raise ValueError(f"row {row.name} needs {TWO_TEACHERS}")
        output = self.work / "results" / f"{row.name}.json"
        if row.system.joins:
            decoded = self.rerank(row, output)
        elif row.system.table and not (row.system.data or row.system.decodes):
            decoded = self.lookup(row, output)
        else:
            decoded = self.generate(row, output)
        words = ["sbnmt", "evaluate", decoded.makes, "--text", self.work / "text"]
        words += scoring_options(self.settings, row)
        if row.side_by_side:
            words += ["--records", output.with_suffix(".jsonl")]
        words += ["--output", output]
        name = f"evaluate/{row.name}"
        return Step(name, f"Score {row.name}", words_of(*words), output, (decoded,))

    def searched(self, row: Row) -> tuple[Step, list[str]]:
        """Return a row's model, and the options by which it writes in its direction."""
        if direction := direction_taught(row):
            return self.training.teacher(direction)
        model, direction = self.training.model(row), row.system.direction
        return model, [] if direction == BOTH else ["--sb-direction", direction]

    def generate(self, row: Row, result: Path) -> Step:
        """Return the step that decodes the test set by fairseq-generate."""
        records, output = (result.with_suffix(x) for x in (".jsonl", ".generate"))
        model, asks = self.searched(row)
        data, subset = self.test_data(row)
        reads, table = self.training.read_table(row)
        inputs = (model, data, *table)
        words = ["fairseq-generate", data.makes, "--path", model.makes, *asks, *subset]
        words += [*search_options(self.settings), *row.system.decode, *reads]
        if row.system.led:
            teacher = self.training.model(Row("teacher-l2r"))
            inputs += (teacher,)
            words += ["--nat-teacher", teacher.makes]
        if row.rescored:
            words += ["--sb-rescore", self.settings["rescore"]]
        words += ["--user-dir", row.system.user_dir, "--task", "sb_translation"]
        words += ["--sb-records", records, "--results-path", output]
        purpose = f"Translate the test set with {row.name}"
        step = self.on_model(f"generate/{row.name}", purpose, words, output, *inputs)
        return replace(step, done=result, clears=records)

    def test_data(self, row: Row) -> tuple[Step, list[str]]:
        """Return the folder of a row's test set, and the options that choose it."""
        system, subset = row.system, ["--gen-subset", "test"]
        if SYSTEMS[system.decodes or row.base].data == MULTILINGUAL:
            if system.back:
                return self.training.way_back(), subset
            return self.training.data(MULTILINGUAL), subset
        source, target = self.texts.languages
        languages = ["--source-lang", target, "--target-lang", source]
        return self.texts.gold(), [*languages * system.back, *subset]

    def lookup(self, row: Row, result: Path) -> Step:
        """Return the step that looks the test set up in the phrase table."""
        output, table = result.with_suffix(".bpe"), self.training.phrases("phrases")
        words = ["sbnmt", "lookup", "--table", table.makes, "--output", output]
        words += ["--input", self.texts.sides("test")[0]]
        purpose = "Look the test set up in the phrase table"
        step = self.on_model(f"generate/{row.name}", purpose, words, output, table)
        return replace(step, done=result, gpus=None)

    def rerank(self, row: Row, result: Path) -> Step:
        """Return the step by which both teachers of the row's seed decode together."""
        inputs, output = [self.texts.gold()], result.with_suffix(".tsv")
        words = ["sbnmt", "rerank", inputs[0].makes, *self.settings["decode"]]
        words += searching(self.settings)
        for direction, teacher in zip(DIRECTIONS, row.system.joins):
            model, _ = self.searched(row.beside(teacher))
            inputs += [model]
            words += [f"--{direction}", model.makes]
        words += [*self.settings["generate"], *self.settings["rerank"]]
        words += ["--input", self.texts.sides("test")[0], "--output", output]
        purpose = "Translate the test set with both teachers together"
        step = self.on_model(f"generate/{row.name}", purpose, words, output, *inputs)
        return replace(step, done=result)

    def on_model(
        self, name: str, purpose: str, words: list[Any], output: Path, *inputs: Step
    ) -> Step:
        """Return a step that runs a model once."""
        gpus = self.run.gpus()
        return Step(name, purpose, words_of(*words), output, inputs, gpus)

    def measures(self, kind: str, row: Row) -> Path:
        """Return the file of a row's measure."""
        return self.work / "results" / kind / f"{row.name}.json"

    @once
    def probe(self, row: Row) -> Step:
        """A row decoded with the future removed, and with partners shuffled."""
        gold, model = self.texts.gold(), self.training.model(row)
        output = self.measures("interaction", row)
        words = ["sbnmt", "probe-interaction", gold.makes, "--path", model.makes]
        words += ["--input", self.texts.sides("test")[0]]
        for path in references(self.work / "text", self.settings).files():
            words += ["--reference", path]
        words += [*search_options(self.settings), "--json", output]
        score = self.settings["score"]
        words += [f"--{key}" for key in ("lowercase", "phonemes") if score[key]]
        purpose = f"What the interaction is worth to {row.name} in the search"
        name = f"interaction/{row.name}"
        return self.on_model(name, purpose, words, output, gold, model)

    @once
    def reading(self, row: Row) -> Step:
        """The score of gold text, which gives itself away to a model that reads it."""
        gold, model = self.texts.gold(), self.training.model(row)
        output = self.measures("reading", row)
        words = ["sbnmt", "probe-reading", gold.makes, "--path", model.makes]
        words += [*self.settings["generate"], *device(self.settings), "--json", output]
        purpose = f"How much the streams of {row.name} read of each other"
        name = f"reading/{row.name}"
        return self.on_model(name, purpose, words, output, gold, model)

    @once
    def alignment(self, row: Row) -> Step:
        """A row's attention, compared with the links that are known."""
        gold, (model, asks) = self.texts.gold(), self.searched(row)
        output, (source, target) = self.measures("aer", row), self.texts.sides("test")
        words = ["sbnmt", "aer", gold.makes, "--path", model.makes, *asks]
        words += [*self.settings["generate"], *searching(self.settings)]
        words += ["--input", source, "--reference", target]
        words += ["--gold", self.work / "text" / "test.links"]
        words += ["--output", output.with_suffix(".links"), "--json", output]
        purpose = f"Compare the attention of {row.name} with the links that are known"
        return self.on_model(f"aer/{row.name}", purpose, words, output, gold, model)

    def table(self, options: list[str]) -> Step:
        """Return the step of the table of all rows, which a run makes by itself.

        Args:
            options: that say how the recipe is taken.
        """
        words = ["--recipe", self.run.folder, *options, "--work", self.work]
        command = words_of("sbnmt", "table", *words)
        return Step("table", "The table", command, self.work / "table.json")

    def check(self, row: Row) -> None:
        """Check that whatever a work folder holds of a row belongs to the recipe.

        Checked are the models with which it decodes, those that they start from, and
        the pseudo targets that these have learned from.

        Raises:
            ValueError: one was made with other options.
        """
        if not row.system.remedy:  # its options are not known any more
            check_records(in_order([self.result(row)], is_leaf=Step.tells_all))


def check_row(work: Path, settings: Settings, name: str) -> None:
    """Check a row by its name: see :meth:`RowSteps.check`."""
    RowSteps(Run(settings, work)).check(Row.parse(name))


def costed_steps(settings: Settings, row: Row) -> list[Step]:
    """Return the trainings and the translations of pseudo targets that a row needs."""
    steps = in_order([RowSteps(Run(settings, Path())).result(row)])
    return [step for step in steps if step.name.startswith(("train/", "pseudo/"))]
