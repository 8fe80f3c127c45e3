"""Hypotheses of a recipe's rows and of their seeds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU
from sacrebleu.metrics.base import Metric

from sbnmt_plugin.tools.phonemes import WordErrorRate
from sbnmt_plugin.tools.recipes.row_steps import check_row
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.settings import references
from sbnmt_plugin.tools.recipes.work_folder import read_recipe
from sbnmt_plugin.tools.results.bootstrap import of_all_seeds
from sbnmt_plugin.tools.scoring import token_bleu
from sbnmt_plugin.tools.text import as_written, read_lines


class Runs:
    """Hypotheses of a recipe's run for its test set.

    They are compared by BLEU of text, by BLEU of tokens where nothing is detokenised,
    and by WER where lines are words.

    Args:
        work: the folder of the run.
        settings: its recipe.

    Attributes:
        metric: a metric of sacreBLEU, or of its kind, which takes all seeds together.
        key: its name.
        given: the references, each a line a sentence.
    """

    def __init__(self, work: Path, settings: dict[str, Any]) -> None:
        self.work, self.settings = work, settings
        lowercase = settings["score"]["lowercase"]
        self.key, self.suffix, stem = "tokenised BLEU", "tok", "test"
        metric: Metric = token_bleu(lowercase)
        if settings["score"]["phonemes"]:
            self.key, metric = "WER", WordErrorRate()
        elif settings["detokenise"]:
            self.key, self.suffix, stem = "BLEU", "txt", "test.ref"
            metric = BLEU(lowercase=lowercase)
        self.metric = of_all_seeds(metric)
        self.given = references(work / "text", settings).read(stem)

    @classmethod
    def of_folder(cls, work: Path) -> Runs:
        """Read the recipe that the folder keeps.

        Raises:
            FileNotFoundError: no recipe has run there.
        """
        path = work / "recipe.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"--work {work} must be the folder of a recipe's run, but has no "
                "recipe.json: give the --work of sbnmt recipe"
            )
        return cls(work, read_recipe(path, "run sbnmt recipe once more"))

    def seeds(self, name: str) -> set[int]:
        """Return the seeds of a row.

        Raises:
            FileNotFoundError, ValueError: there is none, or no comparison with others.
        """
        row = Row.parse(name)
        if "@" in name:
            raise ValueError(
                f"{name} must be a row without a seed, all of its seeds are compared: "
                f"leave out @{name.partition('@')[2]}"
            )
        if row.system.back:
            raise ValueError(
                f"{name} must translate into the target, as its rivals do, but "
                "translates back: give another row"
            )
        results = self.work / "results"
        found = {Row.parse(path.stem).seed for path in results.glob(f"{name}@*.json")}
        if (results / f"{name}.json").exists():
            found.add(1)
        if not found:
            raise FileNotFoundError(
                f"{results}/{name}.json must hold the results of a row, but does not "
                f"exist: run sbnmt recipe with --rows {name}"
            )
        for seed in found:  # all of one training
            check_row(self.work, self.settings, replace(row, seed=seed))
        return found

    def result(self, name: str, seed: int, suffix: str) -> Path:
        """Return the path of a file of a seed's results."""
        row = replace(Row.parse(name), seed=seed)
        return self.work / "results" / f"{row.name}.{suffix}"

    def answers(self, name: str, seed: int) -> list[str]:
        """Return the hypotheses of a seed, a line a sentence.

        Raises:
            ValueError: there are more or fewer than sentences.
        """
        path, count = self.result(name, seed, self.suffix), len(self.given[0])
        found = read_lines(path)
        if len(found) != count:
            raise ValueError(
                f"{path} must have {count} lines, as the test set has, but "
                f"has {len(found)}: decode and evaluate that row anew"
            )
        return found

    def score(self, name: str, seed: int) -> float:
        """Return the score of a seed as it was evaluated."""
        path = self.result(name, seed, "json")
        with as_written(path, "evaluate anew"):
            return float(json.loads(path.read_text("utf-8"))[self.key]["score"])
