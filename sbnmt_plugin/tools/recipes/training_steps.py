"""Steps to models: teachers, pseudo targets, training sets, trainings."""

from __future__ import annotations

import shlex
from typing import Any

from sbnmt_plugin.tools.command_names import PLUGIN
from sbnmt_plugin.tools.launch import alone
from sbnmt_plugin.tools.recipes.data_steps import SPLITS, DataSteps
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.settings import flags, searching
from sbnmt_plugin.tools.recipes.stages import (
    Stage,
    row_records,
    same_training,
    starting_row,
    teacher_row,
    training_stages,
)
from sbnmt_plugin.tools.recipes.step import Step, Word, once, words_of
from sbnmt_plugin.tools.recipes.systems.system import Options
from sbnmt_plugin.tools.recipes.systems.two_way import MULTILINGUAL
from sbnmt_plugin.tools.recipes.training_sets import TRAINING_SETS
from sbnmt_plugin.tools.recipes.work_folder import (
    DONE,
    ModelRecord,
    TeacherRecord,
    pseudo_targets,
)


class TrainingSteps:
    """Steps of a run that come before a row can be decoded.

    Args:
        texts: of the same run.
    """

    def __init__(self, texts: DataSteps) -> None:
        self.texts, self.run = texts, texts.run
        self.work, self.settings = self.run.work, self.run.settings
        self.made: dict[Any, Any] = {}

    @once
    def data(self, kind: str) -> Step:
        """A training set, binarised."""
        gold = self.texts.gold()
        if kind == "gold":
            return gold
        folder, (source, target) = self.work / f"data-{kind}", self.texts.languages
        if kind == MULTILINGUAL:
            text = self.both_ways()
            texts = {split: text.makes / split for split in SPLITS}
            purpose = "Binarise them, with one dictionary, which has the tags"
            inputs, words = (gold, text), ["--joined-dictionary"]
            return self.texts.binarise(folder, purpose, texts, inputs, *words)
        words = ["--srcdict", gold.makes / f"dict.{source}.txt"]
        if "--joined-dictionary" in self.settings["preprocess"]:
            words += ["--joined-dictionary"]
        else:
            words += ["--tgtdict", gold.makes / f"dict.{target}.txt"]
        examples = self.examples(kind)
        texts = {split: self.texts.pieces / split for split in SPLITS}
        texts["train"] = examples.makes.with_name("train")
        purpose = "Binarise them, with the gold text's dictionaries"
        return self.texts.binarise(folder, purpose, texts, (gold, examples), *words)

    @once
    def examples(self, kind: str) -> Step:
        """Gold text joined with pseudo targets."""
        known = TRAINING_SETS[kind]
        output = self.work / "examples" / kind / "train"
        source, target = self.texts.sides("train")
        words: list[Any] = ["sbnmt", "triples", "--source", source, "--target", target]
        pseudo = [self.pseudo(direction) for direction in known.teachers]
        for direction, step in zip(known.teachers, pseudo):
            words += [f"--pseudo-{direction}", step.makes]
        words += ["--output", output, "--triples" if known.triples else "--pairs", kind]
        words += self.settings["make_triples"] if known.triples else []
        end = "r2l" if known.triples else self.texts.languages[1]
        return Step(
            f"examples/{kind}",
            f"Join gold text and pseudo targets: {known.holds}",
            words_of(*words),
            output.with_suffix(f".{end}"),  # written last
            (*self.texts.bpe(), *pseudo),
        )

    @once
    def both_ways(self) -> Step:
        """The gold text in both translation directions, tagged."""
        folder = self.work / "examples" / MULTILINGUAL
        source, target = self.texts.languages
        words: list[Word] = ["sbnmt", "both-ways", "--text", self.texts.pieces]
        words += ["-s", source, "-t", target, "--output", folder]
        purpose = "Write every pair both ways, a tag before the source"
        return Step("examples/both-ways", purpose, words, folder, self.texts.bpe())

    @once
    def way_back(self) -> Step:
        """The test set the other way round, for a model of :meth:`both_ways`."""
        folder, text = self.work / f"data-{MULTILINGUAL}-back", self.both_ways()
        data = self.data(MULTILINGUAL)
        known = data.makes / f"dict.{self.texts.languages[0]}.txt"
        purpose = "Binarise the test set the other way round, by its dictionary"
        texts, inputs = {"test": text.makes / "back"}, (data, text)
        words = ["--srcdict", known, "--joined-dictionary"]
        return self.texts.binarise(folder, purpose, texts, inputs, *words)

    @once
    def phrases(self, name: str) -> Step:
        """The table of the gold text's phrases, or of its words."""
        output = self.work / "phrases" / name
        words: list[Any] = ["sbnmt", "phrase-table", "--output", output]
        train, valid = self.texts.sides("train"), self.texts.sides("valid")
        for side, text, held_out in zip(("source", "target"), train, valid):
            words += [f"--{side}", text, f"--held-out-{side}", held_out]
        words += ["--keep-alignments", output.with_suffix(".links")]
        words += ["--words"] if name == "words" else self.settings["phrase_table"]
        purpose = f"The table of {name} that the gold text has"
        inputs = self.texts.bpe()
        return Step(f"phrases/{name}", purpose, words_of(*words), output, inputs)

    def read_table(self, row: Row) -> tuple[list[Any], tuple[Step, ...]]:
        """Return the option by which a row's batches hold phrases, and its step."""
        if not row.system.table:
            return [], ()
        table = self.phrases(row.system.table)
        return ["--enat-table", table.makes], (table,)

    def model(self, row: Row) -> Step:
        """Return the step that ends with the model by which a row is decoded."""
        row = row.beside(row.system.decodes) if row.system.decodes else row
        return self.trained(same_training(self.settings, row))

    @once
    def trained(self, row: Row) -> Step:
        """The model of a row that has one, all stages trained."""
        before: list[Any] = []
        inputs: tuple[Step, ...] = ()
        if start := starting_row(self.settings, row):
            model = self.trained(start)
            before, inputs = ["--finetune-from-model", model.makes], (model,)
        stages = training_stages(self.settings, row)
        for stage, record in zip(stages, row_records(self.settings, row)):
            if stage is not stages[0]:
                flag = "--continue-once" if stage.continues else "--finetune-from-model"
                before = [flag, inputs[0].makes]
            inputs = (self.train(row, stage, before, inputs, record),)
        return self.average(row, *inputs)

    def train(
        self,
        row: Row,
        stage: Stage,
        before: list[Any],
        inputs: tuple[Step, ...],
        record: Options,
    ) -> Step:
        """Return a stage's training, by torchrun if several processes are wanted.

        Args:
            before: option that names the weights it starts from, if any.
            inputs: the step that makes these.
            record: see :func:`stages.records`.
        """
        run, own, data = self.run, self.work / stage.name, self.data(stage.data)
        asks, table = self.read_table(row)
        words = words_of(
            *(data.makes, "--user-dir", row.system.user_dir, "--save-dir", own),
            *(*before, *asks, *flags(stage.options)),
        )
        launcher = shlex.split(run.launcher)
        if run.processes > 1 and not launcher:
            launcher = ["torchrun", "--standalone"]
            launcher += ["--nproc-per-node", str(run.processes)]
        if launcher:
            words = [*launcher, "-m", PLUGIN.name, "train", *words]
        else:
            words = ["fairseq-train", *alone(words)]
        purpose = f"Train {row.name}: {row.title(stage.options)}"
        _, _, part = stage.name.partition("/")
        if part:
            purpose += f"; {part.replace('-', ' ')}, {stage.data}"
        return Step(
            f"train/{stage.name}",
            purpose,
            words,
            own / "checkpoint_last.pt",
            (*inputs, data, *table),
            run.gpus(run.processes),
            done=own / DONE,
            marks=bool(part),  # the last stage is done when its model is
            record=ModelRecord(own, record),
        )

    def average(self, row: Row, trained: Step) -> Step:
        """Return the step that averages the last checkpoints, or takes the best one."""
        folder, count = self.work / row.name, self.settings["average"]
        output = folder / "model.pt"
        words = ["ln", "-sf", "checkpoint_best.pt", output]
        purpose = "Its best checkpoint is the model"
        if count:
            words = ["sbnmt", "average", "--output", output, "--last", count]
            words += ["--or-fewer", folder]
            purpose = f"The average of its last {count} checkpoints is the model"
        return Step(
            f"average/{row.name}",
            purpose,
            words_of(*words),
            output,
            (trained,),
            done=folder / DONE,
            marks=True,
        )

    def teacher(self, direction: str) -> tuple[Step, list[str]]:
        """Return a teacher's model, and the options by which it takes a direction."""
        asks = "--sb-answer" if self.settings["teachers"] == "one" else "--sb-direction"
        return self.model(teacher_row(self.settings, direction)), [asks, direction]

    @once
    def pseudo(self, direction: str) -> Step:
        """A teacher's translation of the training source."""
        output = pseudo_targets(self.work, direction)
        source, _ = self.texts.sides("train")
        model, asks = self.teacher(direction)
        gold, row = self.texts.gold(), teacher_row(self.settings, direction)
        words = ["sbnmt", "translate", gold.makes, "--path", model.makes, *asks]
        words += searching(self.settings)
        words += [*self.settings["decode"], *self.settings["pseudo"]]
        words += ["--input", source, "--output", output]
        record = row_records(self.settings, same_training(self.settings, row))[-1]
        return Step(
            f"pseudo/{direction}",
            f"Pseudo targets: the {direction.upper()} teacher's translations",
            words_of(*words),
            output,
            (*self.texts.bpe(), model, gold),
            self.run.gpus(),
            workers=self.run.processes,
            record=TeacherRecord(output, record, source),
        )
