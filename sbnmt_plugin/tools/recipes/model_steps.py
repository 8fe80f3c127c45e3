"""Steps from trained rows to a model folder: length penalties, a test, the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.bitext import MODEL, can_be_model
from sbnmt_plugin.tools.recipes.row_steps import RowSteps
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.step import Step, once

LENPENS = "0.6,1,1.5"
MEASURES = "interaction/", "reading/"  # names of steps that explain a row


def option(words: list[Any], flag: str) -> Any:
    """Return the value of an option of a list of words."""
    return words[words.index(flag) + 1]


class ModelSteps(RowSteps):
    """Steps of a run that ends with a model folder."""

    def targets(self, rows: list[Row]) -> list[Step]:
        """Return the last steps of rows, each with its length penalty chosen.

        Measurements that explain interaction are left out.
        """
        swept = [self.swept(row) for row in rows if can_be_model(row)]
        return [*self.without_measures(rows), *swept]

    def without_measures(self, rows: list[Row]) -> list[Step]:
        """Return the last steps of rows, without those that explain interaction."""
        found = super().targets(rows)
        return [step for step in found if not step.name.startswith(MEASURES)]

    def printed(self, rows: list[Row]) -> list[Step]:
        """Return the last steps that a script shows, the model folder's among them.

        The length penalty is the recipe's: a script chooses nothing.
        """
        names = [row.name for row in rows if can_be_model(row)]
        chosen = MODEL if MODEL in names else names[-1]
        lenpen = float(option(self.settings["decode"], "--lenpen"))
        model = self.bundled(Row.parse(chosen), lenpen)
        return [*self.without_measures(rows), model]

    @once
    def swept(self, row: Row) -> Step:
        """The validation set, decoded by a row with every length penalty."""
        beam = option(self.settings["decode"], "--beam")
        words = ["--gen-subset", "valid", "--beams", beam, "--lenpens", LENPENS]
        purpose = f"Choose the length penalty of {row.name} on the validation set"
        return self.sweep("valid", row, purpose, words, self.result(row))

    def tested(self, row: Row) -> Step:
        """The test set, decoded by a row with the length penalty that was chosen."""
        words = ["--chosen-by", self.swept(row)]
        purpose = f"Translate the test set with {row.name} and its length penalty"
        return self.sweep("test", row, purpose, words)

    def sweep(
        self, split: str, row: Row, purpose: str, words: list[Any], *before: Step
    ) -> Step:
        """Return the step that decodes a set by a row with some settings."""
        output = self.work / split / f"{row.name}.json"
        command = ["sbnmt", "sweep-beam", "--work", self.work, "--rows", row.name]
        command += [*words, "--output", output]
        done = output.with_suffix(".done")
        name = f"{split}/{row.name}"
        more: dict[str, Any] = {"gpus": self.run.gpus(), "done": done, "marks": True}
        return Step.of(name, purpose, command, output, *before, **more)

    def bundled(self, row: Row, lenpen: float, scores: Path | None = None) -> Step:
        """The model folder of a row.

        Args:
            lenpen: length penalty that its searches have by default.
            scores: JSON of the scores that are kept in it.
        """
        decode, folder = self.settings["decode"], self.work / "model"
        words: list[Any] = ["sbnmt", "bundle", self.gold(), "--path", self.model(row)]
        parts = dict.fromkeys(self.bpe())
        codes = [x for x in parts if x.name.startswith("bpe/codes")]
        flags = ["--source-codes", "--target-codes"][: len(codes)]
        for flag, code in zip(["--codes"] if len(codes) == 1 else flags, codes):
            words += [flag, code]
        words += ["--subwords", self.kind, "--tokeniser", self.tokeniser]
        words += ["--lowercase"] * self.settings["score"]["lowercase"]
        words += ["--beam", option(decode, "--beam"), "--lenpen", f"{lenpen:g}"]
        for flag in ("--max-len-a", "--max-len-b"):
            words += [flag, option(decode, flag)]
        words += ["--sb-rescore", self.settings["rescore"]] if row.rescored else []
        words += ["--scores", scores] if scores else []
        words += ["--output", folder]
        purpose = f"The model folder: {row.name}, which translates raw text"
        return Step.of("model", purpose, words, folder)

    @property
    def kind(self) -> str:
        """Name of the kind of subwords, as a model folder has it."""
        kind = str(self.settings["bpe"]["kind"])
        return kind if kind in ("none", "sentencepiece") else "bpe"

    @property
    def tokeniser(self) -> str:
        """Name of the tokeniser, as a model folder has it."""
        known = "none", "characters"
        chosen = self.settings["detokenise"]
        return chosen if chosen in known else "moses"
