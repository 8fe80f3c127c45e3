"""Steps from trained rows to a model folder: length penalties, a test, the folder."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.bitext import MODEL
from sbnmt_plugin.tools.recipes.row_steps import RowSteps
from sbnmt_plugin.tools.recipes.rows import Row, can_be_model
from sbnmt_plugin.tools.recipes.step import Step
from sbnmt_plugin.tools.recipes.work_folder import DONE

CHARACTERS = "--characters"  # the last option of prepare.py, with its languages
MEASURES = "interaction/", "reading/"  # names of steps that explain a row


def tokenisers(words: list[str]) -> list[str]:
    """Return the tokenisers of source and target, as a model folder names them.

    Args:
        words: of the recipe's prepare.py.
    """
    plain = "none" if {"--raw", "--no-tokenise"}.intersection(words) else "moses"
    split = words[words.index(CHARACTERS) + 1 :] if CHARACTERS in words else []
    sides = (words[words.index(flag) + 1] for flag in ("--source", "--target"))
    return ["characters" if side in split else plain for side in sides]


class ModelSteps(RowSteps):
    """Steps of a run that ends with a model folder.

    Attributes:
        lenpens: length penalties that are tried on the validation set.
    """

    lenpens = "0.6,1,1.5"

    def targets(self, rows: list[Row]) -> list[Step]:
        """Return the last steps of rows, each with its length penalty chosen."""
        return [*self.scored(rows), *map(self.swept, filter(can_be_model, rows))]

    def scored(self, rows: list[Row]) -> list[Step]:
        """Return the last steps of rows, without those that explain interaction."""
        found = super().targets(rows)
        return [step for step in found if not step.name.startswith(MEASURES)]

    def printed(self, rows: list[Row], options: list[str]) -> list[Step]:
        """Return the last steps that a script shows, the model folder's among them.

        The length penalty is the recipe's: a script chooses nothing.
        """
        own = [row for row in rows if can_be_model(row)]
        asked = "--model" in options
        wanted = options[options.index("--model") + 1] if asked else MODEL
        chosen = [row for row in own if row.name == wanted] or own[-1:]
        return [*self.scored(rows), *map(self.bundled, chosen)]

    @functools.cache
    def swept(self, row: Row) -> Step:
        """The validation set, decoded by a row with every length penalty."""
        search = self.settings["decode"]
        words = ["--gen-subset", "valid", "--lenpens", self.lenpens]
        words += ["--beams", search[search.index("--beam") + 1]]
        purpose = f"Choose the length penalty of {row.name} on the validation set"
        return self.sweep("valid", row, purpose, words, self.result(row))

    def check_sweeps(self, rows: list[Row]) -> None:
        """Refuse sweeps of a model that had other options.

        Raises:
            ValueError: see :class:`work_folder.ResultRecord`.
        """
        for row in filter(can_be_model, rows):
            for step in self.swept(row), self.tested(row):
                assert step.record
                step.record.check()

    def tested(self, row: Row) -> Step:
        """The test set, decoded by a row with the length penalty that was chosen."""
        purpose = f"Translate the test set with {row.name} and its length penalty"
        return self.sweep("test", row, purpose, ["--chosen-by", self.swept(row)])

    def sweep(
        self, split: str, row: Row, purpose: str, words: list[Any], *before: Step
    ) -> Step:
        """Return the step that decodes a set by a row with some settings."""
        folder = self.sweep_of(split, row)
        output = folder / "sweep.json"
        command = ["sbnmt", "sweep-beam", "--work", self.work, "--rows", row.name]
        command += [*words, "--output", output]
        more: dict[str, Any] = {"gpus": self.run.gpus(), "marks": True}
        more |= {"done": folder / DONE, "record": self.record(row, folder)}
        return Step.of(f"{split}/{row.name}", purpose, command, output, *before, **more)

    def sweep_of(self, split: str, row: Row) -> Path:
        """Return the folder of a row's sweep, among all else that the row has given."""
        return self.work / "results" / split / row.name

    def bundled(self, row: Row, *chosen: Any) -> Step:
        """The model folder of a row.

        Args:
            chosen: options that win over those by which the recipe decodes.
        """
        settings, folder = self.settings, self.work / "model"
        words: list[Any] = ["sbnmt", "bundle", self.gold(), "--path", self.model(row)]
        words += ["--codes", self.codes(*self.languages)]  # sizes are of joint codes
        words += ["--tokeniser", *dict.fromkeys(tokenisers(settings["prepare"]))]
        words += ["--lowercase"] * settings["score"]["lowercase"]
        words += settings["decode"]
        words += ["--sb-rescore", settings["rescore"]] if row.rescored else []
        words += [*chosen, "--output", folder]
        purpose = f"The model folder of {row.name}, which translates raw text"
        return Step.of("model", purpose, words, folder)
