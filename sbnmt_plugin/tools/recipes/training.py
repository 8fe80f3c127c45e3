"""Teachers, pseudo targets, training sets and models."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.command_names import PLUGIN
from sbnmt_plugin.tools.launch import alone
from sbnmt_plugin.tools.recipes.ancestry import (
    own_books,
    pseudo_targets,
    starting_row,
    teacher_book,
)
from sbnmt_plugin.tools.recipes.corpus import Corpus, exclusive
from sbnmt_plugin.tools.recipes.row_names import (
    describe,
    reads_table,
    split_name,
)
from sbnmt_plugin.tools.recipes.settings import (
    DIRECTIONS,
    PSEUDO,
    Stage,
    flags,
    same_training,
    searching,
    teacher_row,
    training_stages,
)
from sbnmt_plugin.tools.recipes.step import Step, words_of
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.systems.two_way import MULTILINGUAL
from sbnmt_plugin.tools.recipes.work_folder import writer_of
from sbnmt_plugin.tools.text import read_lines, write_lines

TRIPLES = ("one", "two", "three", "six")
EXAMPLES = {
    "kd": "y_pl alone, a pair a sentence",
    "pl": "y_g and y_pl, a pair each",
    "pr": "y_g and y_pr, a pair each",
    "pl-pr": "y_g, y_pl and y_pr, a pair each",
    "one": "y_g and y_pr, a triple a sentence",
    "two": "two triples a sentence",
    "three": "two triples a sentence, and gold text twice",
    "six": "six triples a sentence",
}


class Training(Corpus):
    """All that happens before a row can be decoded.

    Args:
        processes: trainings and translations of pseudo targets are spread over.
        launcher: command before train.py, where torchrun needs more than a number.
        others: as for :class:`Corpus`.
    """

    def __init__(
        self,
        *others: Any,
        processes: int = 1,
        launcher: str | None = None,
    ) -> None:
        super().__init__(*others)
        self.processes = processes
        self.launcher = shlex.split(launcher or "")
        if processes > 1 and not launcher:
            torchrun = ["torchrun", "--standalone"]
            self.launcher = [*torchrun, "--nproc-per-node", str(processes)]

    @exclusive
    def training_data(self, kind: str) -> Path:
        """Binarised training set, a name of :data:`recipe_file.TRAINING_SETS`."""
        gold = self.gold_data()
        if kind == "gold":
            return gold
        folder = self.work / f"data-{kind}"
        if kind == MULTILINGUAL and not self.bench.has(folder):
            text = self.both_ways()
            texts = {split: text / split for split in ("train", "valid", "test")}
            purpose = "Binarise them, with one dictionary, which has the tags"
            self.binarise(folder, purpose, texts, "--joined-dictionary")
        elif not self.bench.has(folder):
            words = ["--srcdict", gold / f"dict.{self.source}.txt"]
            if "--joined-dictionary" in self.settings["preprocess"]:
                words += ["--joined-dictionary"]
            else:
                words += ["--tgtdict", gold / f"dict.{self.target}.txt"]
            purpose = "Binarise them, with the gold text's dictionaries"
            texts = {"train": self.examples(kind), **self.held_out()}
            self.binarise(folder, purpose, texts, *words)
        return folder

    @exclusive
    def examples(self, kind: str) -> Path:
        """Gold text joined with pseudo targets."""
        output, gold = self.work / "examples" / kind / "train", self.bpe()
        triples = kind in TRIPLES
        last = output.with_suffix(f".{'r2l' if triples else self.target}")
        if not self.bench.has(last):
            words = ["--source", gold / f"train.{self.source}"]
            words += ["--target", gold / f"train.{self.target}"]
            for direction in PSEUDO[kind]:
                words += [f"--pseudo-{direction}", self.pseudo(direction)]
            option = "--triples" if triples else "--pairs"
            words += ["--output", output, option, kind]
            if triples:
                words += self.settings["make_triples"]
            purpose = f"Join gold text and pseudo targets: {EXAMPLES[kind]}"
            words = ["sbnmt", "triples", *words]
            self.step(f"examples/{kind}", purpose, last, *words)
        return output

    @exclusive
    def both_ways(self) -> Path:
        """The gold text in both translation directions, tagged."""
        folder = self.work / "examples" / MULTILINGUAL
        if not self.bench.has(folder):
            words = ["--text", self.bpe(), "-s", self.source, "-t", self.target]
            purpose = "Write every pair both ways, a tag before the source"
            words = ["sbnmt", "both-ways", *words, "--output", folder]
            self.step("examples/both-ways", purpose, folder, *words)
        return folder

    @exclusive
    def phrases(self, words: bool) -> Path:
        """The phrase table of the gold text, or the one of its words."""
        name = "words" if words else "phrases"
        output = self.work / "phrases" / name
        if not self.bench.has(output):
            command: list[Any] = ["sbnmt", "phrase-table", "--output", output]
            for side, end in ("source", self.source), ("target", self.target):
                command += [f"--{side}", self.bpe() / f"train.{end}"]
                command += [f"--held-out-{side}", self.bpe() / f"valid.{end}"]
            command += ["--keep-alignments", output.with_suffix(".links")]
            command += ["--words"] if words else self.settings["phrase_table"]
            purpose = f"The table of {name} that the gold text has"
            self.step(f"phrases/{name}", purpose, output, *command)
        return output

    def reads(self, base: str) -> list[Any]:
        """Options by which a system's batches hold what its model reads."""
        if not reads_table(base):
            return []
        return ["--enat-table", self.phrases(SYSTEMS[base].table == "words")]

    @exclusive
    def way_back(self) -> Path:
        """The test set the other way round, for a model of :meth:`both_ways`."""
        folder = self.work / f"data-{MULTILINGUAL}-back"
        if not self.bench.has(folder):
            known = self.training_data(MULTILINGUAL) / f"dict.{self.source}.txt"
            words = ["--srcdict", known, "--joined-dictionary"]
            purpose = "Binarise the test set the other way round, by its dictionary"
            self.binarise(folder, purpose, {"test": self.both_ways() / "back"}, *words)
        return folder

    def model(self, name: str) -> Path:
        """Train a row, or continue where it was interrupted; its checkpoint, or that of
        the row with whose it decodes."""
        name = SYSTEMS[split_name(name)[0]].decodes or name
        return self.trained(same_training(self.settings, name))

    @exclusive
    def trained(self, name: str) -> Path:
        base, _ = split_name(name)
        folder = self.work / name
        stages = training_stages(self.settings, name)
        before: list[Any] = []
        if start := starting_row(self.settings, name):
            before = ["--finetune-from-model", self.model(start)]
        kept_books = own_books(self.settings, name)
        for place, (stage, kept) in enumerate(zip(stages, kept_books)):
            own = self.work / stage.name
            if self.bench.begin(own, kept):
                words = [self.training_data(stage.data), "--user-dir"]
                words += [SYSTEMS[base].user_dir]
                words += ["--save-dir", own, *before, *self.reads(base)]
                self.train(stage, *words, *flags(stage.options))
                if own == folder:
                    self.average(name)
                self.bench.finish(own)
            if place + 1 < len(stages):
                going_on = stages[place + 1].continues
                flag = "--continue-once" if going_on else "--finetune-from-model"
                before = [flag, own / "checkpoint_last.pt"]
        return folder / "model.pt"

    def train(self, stage: Stage, *words: Any) -> None:
        """fairseq-train, by torchrun if several processes are wanted."""
        command = [*self.launcher, "-m", PLUGIN.name, "train"]
        if not self.launcher:
            command, words = ["fairseq-train"], tuple(alone(words_of(*words)))
        row, _, part = stage.name.partition("/")
        purpose = f"Train {row}: {describe(row, stage.options)}"
        if part:
            purpose += f"; {part.replace('-', ' ')}, {stage.data}"
        makes = self.work / stage.name / "checkpoint_last.pt"
        gpus = self.gpus(self.processes)
        self.step(f"train/{stage.name}", purpose, makes, *command, *words, gpus=gpus)

    def average(self, name: str) -> None:
        """Average the last checkpoints, as many as there are, or take the best one."""
        folder, count = self.work / name, self.settings["average"]
        output = folder / "model.pt"
        words = ["ln", "-sf", "checkpoint_best.pt", output]
        purpose = "Its best checkpoint is the model"
        if count:
            words = ["sbnmt", "average", "--output", output, "--last", count]
            words += ["--or-fewer", folder]
            purpose = f"The average of its last {count} checkpoints is the model"
        self.step(f"average/{name}", purpose, output, *words)

    def teacher(self, direction: str) -> tuple[Path, list[str]]:
        """Checkpoint of a teacher, and the options by which it takes a direction."""
        asks = "--sb-answer" if self.settings["teachers"] == "one" else "--sb-direction"
        return self.model(teacher_row(self.settings, direction)), [asks, direction]

    @exclusive
    def pseudo(self, direction: str) -> Path:
        """A teacher's translation of the training source."""
        output = pseudo_targets(self.work, direction)
        source = self.bpe() / f"train.{self.source}"
        if not self.bench.has(output):
            path, asks = self.teacher(direction)
            self.bench.note_teacher(output, teacher_book(self.settings, direction))
            words: list[Any] = [self.gold_data(), "--path", path, *asks]
            words += searching(self.settings)
            words += [*self.settings["decode"], *self.settings["pseudo"]]
            words += ["--input", source, "--output", output]
            workers = range(self.processes)
            self.bench.run_all([self.share(direction, i, words) for i in workers])
        self.bench.keep(source, output.parent / source.name)  # for start_from()
        return output

    def share(self, direction: str, worker: int, words: list[Any]) -> Step:
        """One worker's share of the pseudo targets; each has a GPU of its own."""
        name, place = f"pseudo/{direction}", None
        if self.processes > 1:
            name, place = f"{name}/{worker}", worker
            words = [*words, "--of", self.processes, "--worker", worker]
        purpose = f"Pseudo targets: the {direction.upper()} teacher's translations"
        words = words_of("sbnmt", "translate", *words)
        makes = pseudo_targets(self.work, direction)
        return Step(name, purpose, words, makes, self.gpus(), place)

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
            lines, own = read_lines(path), self.work / "pseudo" / path.name
            if own.exists() and read_lines(own) != lines:
                raise ValueError(
                    f"--pseudo {folder} must not differ from what {self.work} has "
                    f"already, but {path.name} does: leave the option out, or choose "
                    "another --work"
                )
            if not own.exists():
                writer_of(own).unlink(missing_ok=True)  # who would have written it
                write_lines(own, lines)
