"""Comparison of a run's rows: their hypotheses, and the paired bootstrap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sacrebleu.metrics.base import Metric

from sbnmt_plugin.tools.phonemes import WordErrorRate
from sbnmt_plugin.tools.recipes.row_steps import check_row
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.settings import references
from sbnmt_plugin.tools.recipes.systems import OPPONENTS
from sbnmt_plugin.tools.results.bootstrap import bootstrap
from sbnmt_plugin.tools.results.table import TableRow
from sbnmt_plugin.tools.scoring import bleu, tokeniser_of
from sbnmt_plugin.tools.text import as_written, read_lines


class Runs:
    """Hypotheses of a recipe's run for its test set.

    They are compared by BLEU of text, by BLEU of tokens where nothing is detokenised,
    and by WER where lines are words.

    Args:
        work: the folder of the run.
        settings: its recipe.

    Attributes:
        metric: a metric of sacreBLEU, or of its kind.
        key: its name.
        given: the references, each a line a sentence.
    """

    def __init__(self, work: Path, settings: dict[str, Any]) -> None:
        self.work, self.settings = work, settings
        lowercase = settings["score"]["lowercase"]
        self.key, self.suffix = "tokenised BLEU", "tok"
        self.metric: Metric = bleu("none", force=True, lowercase=lowercase)
        given = references(work / "text", settings)
        if given.phonemes:
            self.key, self.metric = "WER", WordErrorRate()
        elif given.detokenise or given.raw:
            self.key, self.suffix = "BLEU", "txt"
            self.metric = bleu(tokeniser_of(given.target), lowercase=lowercase)
        published = self.key == "BLEU" and given.detokenise
        self.given = given.read("test.ref" if published else "test")

    def seeds(self, name: str) -> dict[int, Row]:
        """Return a row of each seed that was run, by the seed.

        Raises:
            FileNotFoundError, ValueError: there is none, or no comparison with others.
        """
        row = Row.parse(name, where="ROW")
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
        paths = [results / f"{name}.json", *results.glob(f"{name}@*.json")]
        rows = [Row.parse(path.stem) for path in paths if path.exists()]
        if not rows:
            raise FileNotFoundError(
                f"{results}/{name}.json must hold the results of a row, but does not "
                f"exist: run sbnmt recipe with --rows {name}"
            )
        for row in rows:  # all of one training
            check_row(self.work, self.settings, row)
        return {row.seed: row for row in rows}

    def answers(self, row: Row) -> list[str]:
        """Return a row's hypotheses, a line a sentence.

        Raises:
            ValueError: there are more or fewer than sentences.
        """
        path = self.work / "results" / f"{row.name}.{self.suffix}"
        count = len(self.given[0])
        found = read_lines(path)
        if len(found) != count:
            raise ValueError(
                f"{path} must have {count} lines, as the test set has, but "
                f"has {len(found)}: decode and evaluate that row anew"
            )
        return found

    def score(self, row: Row) -> float:
        """Return the score of a row as it was evaluated."""
        path = self.work / "results" / f"{row.name}.json"
        with as_written(path, "evaluate anew"):
            return float(json.loads(path.read_text("utf-8"))[self.key]["score"])


def compare(work: Path, settings: dict[str, Any], rows: list[TableRow]) -> str | None:
    """Give every row its p against the best Transformer with the same pseudo data.

    Returns:
        The name of that baseline, or None where no such row is there.
    """
    named = {row["name"]: Row.parse(row["name"]) for row in rows}
    baselines = [row for row in rows if named[row["name"]].base in OPPONENTS]
    if not baselines:
        return None
    runs = Runs(work, settings)
    best = (min if runs.key == "WER" else max)(
        baselines, key=lambda row: runs.score(named[row["name"]])
    )
    for row in rows:
        if row is not best and not named[row["name"]].system.back:
            pair = named[row["name"]], named[best["name"]]
            texts, theirs = ([runs.answers(x)] for x in pair)
            row["p"] = bootstrap(texts, theirs, runs.given, runs.metric).p
    return str(best["name"])
