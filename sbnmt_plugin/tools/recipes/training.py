"""Teachers, pseudo targets, training sets and models."""

from __future__ import annotations

import json
import os
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sbnmt_plugin.steps import PLUGIN
from sbnmt_plugin.tools.command import step_command
from sbnmt_plugin.tools.launch import distributed
from sbnmt_plugin.tools.recipes.corpus import Corpus, exclusive
from sbnmt_plugin.tools.recipes.settings import flags, same_training, training_options
from sbnmt_plugin.tools.recipes.systems import SYSTEMS, split_name
from sbnmt_plugin.tools.text import new_file, read_lines, write_lines

DIRECTIONS = ("l2r", "r2l")


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
            torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
            self.launcher = [*torchrun, "--nproc-per-node", str(processes)]

    @exclusive
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

    @exclusive
    def examples(self, kind: str) -> Path:
        """Gold text joined with pseudo targets."""
        output, gold = self.work / "examples" / kind / "train", self.bpe()
        triples = kind in ("two", "six")
        last = "r2l" if triples else self.target  # is written last
        if not output.with_suffix(f".{last}").exists():
            words = ["--source", gold / f"train.{self.source}"]
            words += ["--target", gold / f"train.{self.target}"]
            for direction in DIRECTIONS:
                words += [f"--pseudo-{direction}", self.pseudo(direction)]
            option = "--triples" if triples else "--pairs"
            words += ["--output", output, option, kind]
            if triples:
                words += self.settings["make_triples"]
            self.own(f"examples/{kind}", "triples", *words)
        return output

    def model(self, name: str) -> Path:
        """Train a row, or continue where it was interrupted; its checkpoint."""
        return self.trained(same_training(self.settings, name))

    @exclusive
    def trained(self, name: str) -> Path:
        folder, system = self.work / name, SYSTEMS[split_name(name)[0]]
        options = training_options(self.settings, name)
        self.same_options(folder, options)
        if not (folder / "done").exists():
            data = self.training_data(system.data)
            paths = {"--user-dir": PLUGIN, "--save-dir": folder}
            if system.starts_from:
                teacher, _ = self.teacher(system.starts_from.removeprefix("teacher-"))
                paths["--finetune-from-model"] = teacher
            self.train(name, data, *flags({**paths, **options}))
            self.average(name)
            (folder / "done").touch()
        return folder / "model.pt"

    def train(self, name: str, *words: Any) -> None:
        """fairseq-train, by torchrun if several processes are wanted."""
        if self.launcher:
            step = step_command("train", *words)[1:]  # torchrun has an interpreter
            self.command(f"train/{name}", [*self.launcher, *step])
        else:
            self.fairseq(f"train/{name}", "train", *distributed(words, {}))

    def same_options(self, folder: Path, options: dict[str, Any]) -> None:
        """A model's folder belongs to the options with which it was begun.

        Raises:
            ValueError: recipe.yaml says something else by now.
        """
        path = folder / "options.json"
        if path.exists():
            known = json.loads(path.read_text("utf-8"))
            changed = [
                k for k in {**known, **options} if known.get(k) != options.get(k)
            ]
            if changed:
                raise ValueError(
                    f"{folder} was begun with other options ({', '.join(changed)}): "
                    "remove it, and its files in results, to train anew, or restore "
                    "recipe.yaml"
                )
        else:
            with new_file(path) as file:
                json.dump(options, file, indent=1, ensure_ascii=False)

    def average(self, name: str) -> None:
        """Average the last checkpoints, as many as there are, or take the best one."""
        folder, count = self.work / name, self.settings["average"]
        if count:
            words = ["--output", folder / "model.pt", "--last", count, "--or-fewer"]
            self.own(f"average/{name}", "average", *words, folder)
        else:
            (folder / "model.pt").unlink(missing_ok=True)
            (folder / "model.pt").symlink_to("checkpoint_best.pt")

    def teacher(self, direction: str) -> tuple[Path, list[str]]:
        """Checkpoint of a teacher, and the options by which it takes a direction."""
        if self.settings["teachers"] == "one":
            return self.model("teacher-both"), ["--sb-answer", direction]
        return self.model(f"teacher-{direction}"), ["--sb-direction", direction]

    @exclusive
    def pseudo(self, direction: str) -> Path:
        """A teacher's translation of the training source."""
        output = self.work / "pseudo" / f"{direction}.tsv"
        source = self.bpe() / f"train.{self.source}"
        if not output.exists():
            path, asks = self.teacher(direction)
            words: list[Any] = [self.gold_data(), "--path", path, *asks, *self.device]
            words += [*self.settings["decode"], *self.settings["pseudo"]]
            words += ["--input", source, "--output", output]
            with ThreadPoolExecutor(self.processes) as pool:
                workers = range(self.processes)
                list(pool.map(lambda i: self.translate(direction, i, words), workers))
        if not (output.parent / source.name).exists():  # for start_from()
            write_lines(output.parent / source.name, read_lines(source))
        return output

    def translate(self, direction: str, worker: int, words: list[Any]) -> None:
        """One worker's share of the pseudo targets; each has a GPU of its own."""
        step, variables = f"pseudo/{direction}", {}
        if self.processes > 1:
            step += f"/{worker}"
            words = [*words, "--of", self.processes, "--worker", worker]
            if not self.device:
                variables = {"CUDA_VISIBLE_DEVICES": self.gpus()[worker]}
        self.own(step, "translate", *words, **variables)

    def gpus(self) -> list[str]:
        """Names of the GPUs for the workers, the user's choice of them if there is one.

        Raises:
            ValueError: they are fewer than --processes.
        """
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
        names = chosen.split(",") if chosen else [str(i) for i in range(self.processes)]
        if len(names) < self.processes:
            raise ValueError(
                f"--processes must be ≤ {len(names)}, as CUDA_VISIBLE_DEVICES names so "
                f"many GPUs, but is {self.processes}"
            )
        return names

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
                write_lines(own, lines)
