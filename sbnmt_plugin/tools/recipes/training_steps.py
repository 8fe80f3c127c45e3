"""Steps to models: teachers, pseudo targets, training sets, trainings."""

from __future__ import annotations

import functools
from typing import Any

from sbnmt_plugin.tools.command_names import ENGINES, PLUGIN
from sbnmt_plugin.tools.launch import alone
from sbnmt_plugin.tools.recipes.data_steps import SPLITS, DataSteps
from sbnmt_plugin.tools.recipes.parsed import PROCESSES
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.settings import flags, searching
from sbnmt_plugin.tools.recipes.stages import (
    Stage,
    model_row,
    row_records,
    starting_row,
    training_stages,
)
from sbnmt_plugin.tools.recipes.step import Step
from sbnmt_plugin.tools.recipes.systems.system import (
    BOTH,
    MULTILINGUAL,
    TEACHER,
    TRAINING_SETS,
    TRIPLES,
    Options,
    teachers_of,
)
from sbnmt_plugin.tools.recipes.work_folder import DONE, ModelRecord, TeacherRecord


class TrainingSteps(DataSteps):
    """Steps of a run that come before a row can be decoded."""

    @functools.cache
    def data(self, kind: str) -> Step:
        """A training set, binarised."""
        gold, (source, target) = self.gold(), self.languages
        if kind == "gold":
            return gold
        if kind == MULTILINGUAL:
            text = self.both_ways()
            texts = {split: text.makes / split for split in SPLITS}
            purpose = "Binarise them, with one dictionary, which has the tags"
            options: list[Any] = ["--joined-dictionary"]
        else:
            text = self.examples(kind)
            texts = {split: self.pieces / split for split in SPLITS}
            texts["train"] = text.makes.with_name("train")
            purpose = "Binarise them, with the gold text's dictionaries"
            options = ["--srcdict", gold.makes / f"dict.{source}.txt"]
            joined = "--joined-dictionary" in self.settings["preprocess"]
            alone: list[Any] = ["--tgtdict", gold.makes / f"dict.{target}.txt"]
            options += ["--joined-dictionary"] if joined else alone
        name = f"data-{kind}"
        return self.binarise(name, purpose, texts, options, gold, text)

    @functools.cache
    def examples(self, kind: str) -> Step:
        """Gold text joined with pseudo targets."""
        triples = kind in TRIPLES
        output = self.work / "examples" / kind / "train"
        source, target = self.sides("train")
        words: list[Any] = ["sbnmt", "triples", "--source", source, "--target", target]
        for direction in teachers_of(kind):
            words += [f"--pseudo-{direction}", self.pseudo(direction)]
        words += ["--output", output, "--triples" if triples else "--pairs", kind]
        purpose = f"Join gold text and pseudo targets: {TRAINING_SETS[kind]}"
        end = "r2l" if triples else self.languages[1]
        last = output.with_suffix(f".{end}")  # written last
        return Step.of(f"examples/{kind}", purpose, words, last, *self.bpe())

    @functools.cache
    def both_ways(self) -> Step:
        """The gold text in both translation directions, tagged."""
        folder = self.work / "examples" / MULTILINGUAL
        source, target = self.languages
        words = ["sbnmt", "both-ways", "--text", self.pieces]
        words += ["-s", source, "-t", target, "--output", folder]
        purpose = "Write every pair both ways, a tag before the source"
        name = f"examples/{MULTILINGUAL}"
        return Step.of(name, purpose, words, folder, *self.bpe())

    @functools.cache
    def way_back(self) -> Step:
        """The test set the other way round, for a model of :meth:`both_ways`."""
        data, text = self.data(MULTILINGUAL), self.both_ways()
        known = data.makes / f"dict.{self.languages[0]}.txt"
        purpose = "Binarise the test set the other way round, by its dictionary"
        options = ["--srcdict", known, "--joined-dictionary"]
        texts = {"test": text.makes / "back"}
        name = f"data-{MULTILINGUAL}-back"
        return self.binarise(name, purpose, texts, options, data, text)

    @functools.cache
    def phrases(self, name: str) -> Step:
        """The table of the gold text's phrases, or of its words."""
        output = self.work / "phrases" / name
        source, target = self.sides("train")
        words: list[Any] = ["sbnmt", "phrase-table", "--output", output]
        words += ["--source", source, "--target", target]
        words += ["--keep-alignments", output.with_suffix(".links")]
        words += ["--words"] if name == "words" else self.settings["phrase_table"]
        purpose = f"The table of {name} that the gold text has"
        return Step.of(f"phrases/{name}", purpose, words, output, *self.bpe())

    def reads(self, row: Row) -> list[Any]:
        """Return the option by which a row's batches hold phrases, if they do."""
        table = row.system.table
        return ["--enat-table", self.phrases(table)] if table else []

    def model(self, row: Row) -> Step:
        """Return the step that ends with the model by which a row is decoded."""
        return self.trained(model_row(self.settings, row))

    @functools.cache
    def trained(self, row: Row) -> Step:
        """The model of a row that has one, all stages trained.

        Raises:
            ValueError: its last training would leave none.
        """
        start = starting_row(self.settings, row)
        before = self.trained(start) if start else None
        stages = training_stages(self.settings, row)
        for stage, record in zip(stages, row_records(self.settings, row)):
            before = self.train(row, stage, record, before)
        for flag in row.system.needs:
            if flag not in stages[-1].options:
                raise ValueError(
                    f"row {row.name} needs {flag} in recipe.yaml (train), which that "
                    "has not: leave out the row, or take another recipe"
                )
        folder, count = self.work / row.name, self.settings["average"]
        if not count and "--disable-validation" in stages[-1].options:
            raise ValueError(
                "recipe.yaml must have average ≥ 1 with --disable-validation, by which "
                f"{row.name} has no best checkpoint: leave that out"
            )
        output = folder / "model.pt"
        words = ["ln", "-sf", "checkpoint_best.pt", output]
        purpose = "Its best checkpoint is the model"
        if count:
            words = ["sbnmt", "average", "--output", output, "--last", count]
            words += ["--or-fewer", folder]
            purpose = f"The average of its last {count} checkpoints is the model"
        assert before
        done, name = folder / DONE, f"average/{row.name}"
        return Step.of(name, purpose, words, output, before, done=done, marks=True)

    def train(
        self, row: Row, stage: Stage, record: Options, before: Step | None
    ) -> Step:
        """Return a stage's training, by torchrun if several processes are wanted.

        Args:
            record: see :func:`stages.records`.
            before: the step that makes the weights it starts from, if any.
        """
        own, part = self.work / stage.name, stage.name.partition("/")[2]
        words = [self.data(stage.data), "--user-dir", row.system.user_dir]
        words += ["--save-dir", own]
        if before:
            flag = "--continue-once" if stage.continues else "--finetune-from-model"
            words += [flag, before]
        words += [*self.reads(row), *flags(stage.options)]
        if (count := self.run.processes) > 1:
            trainer = ["torchrun", "--standalone", PROCESSES, count]
            words = [*trainer, "-m", PLUGIN.name, "train", *words]
        else:
            words = ["fairseq-train", *alone(words)]
        purpose = f"Train {row.name}: {row.title(stage.options)}"
        purpose += f"; {part.replace('-', ' ')}, {stage.data}" if part else ""
        return Step.of(
            *(f"train/{stage.name}", purpose, words, own / "checkpoint_last.pt"),
            *([before] if before else []),
            gpus=self.run.gpus(self.run.processes),
            done=own / DONE,
            marks=bool(part),  # the last stage is done when its model is
            record=ModelRecord(own, record),
        )

    def searched(self, row: Row) -> tuple[Step, list[str]]:
        """Return a row's model, and the options by which it writes in its direction."""
        direction = row.system.direction
        asks = [] if direction == BOTH else ["--sb-direction", direction]
        return self.model(row), asks

    @functools.cache
    def pseudo(self, direction: str) -> Step:
        """A teacher's translation of the training source."""
        output = self.work / "pseudo" / f"{direction}.tsv"
        source, _ = self.sides("train")
        teacher = Row(TEACHER + direction)
        model, asks = self.searched(teacher)
        words = ["sbnmt", "pseudo", self.gold(), "--path", model, *asks]
        words += searching(self.settings)
        words += [*self.settings["decode"], *self.settings["pseudo"]]
        engine = self.settings["pseudo_engine"]
        words += ["--engine", engine] if engine != ENGINES[0] else []
        words += ["--input", source, "--output", output]
        record = row_records(self.settings, model_row(self.settings, teacher))[-1]
        return Step.of(
            f"pseudo/{direction}",
            f"Pseudo targets: the {direction.upper()} teacher's translations",
            words,
            output,
            *self.bpe(),
            gpus=self.run.gpus(),
            workers=self.run.processes,
            record=TeacherRecord(output, record),
        )
