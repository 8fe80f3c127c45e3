"""How far a row is from another, by all seeds that both have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from sacrebleu.metrics import BLEU
from sacrebleu.metrics.base import Metric

from sbnmt_plugin.tools import origin
from sbnmt_plugin.tools.phonemes import WordErrorRate
from sbnmt_plugin.tools.recipes.row_names import (
    split_name,
    system_and_seed,
    with_seed,
)
from sbnmt_plugin.tools.recipes.row_steps import check_row
from sbnmt_plugin.tools.recipes.settings import references
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.work_folder import read_recipe
from sbnmt_plugin.tools.results.bootstrap import (
    bootstrap,
    interval,
    of_all_seeds,
    seeds_together,
)
from sbnmt_plugin.tools.results.comparison import judge
from sbnmt_plugin.tools.results.sweep import Setting, Sweep
from sbnmt_plugin.tools.scoring import slices
from sbnmt_plugin.tools.text import as_written, read_lines, remove_bpe
from sbnmt_plugin.tools.translations import read_generated


class Runs(Protocol):
    """Answers of several rows, each with its seeds, to the same sentences.

    Attributes:
        metric: sacreBLEU's, or of its kind, of all seeds together.
        key: its name.
        given: the right answers, a list for each reference.
    """

    metric: Metric
    key: str
    given: list[list[str]]

    def seeds(self, name: str) -> set[int]:
        """Of a row; none at all is an error that says where it was sought."""

    def answers(self, name: str, seed: int) -> list[str]:
        """A line a sentence."""

    def score(self, name: str, seed: int) -> float:
        """As it was evaluated; of some sets, that of their sentences together."""


class Difference(NamedTuple):
    """How far a row is from a rival.

    Attributes:
        rival: its name.
        seeds: those that both have.
        scores, rivals: of the row and of the rival, a seed each.
        interval: of the difference, 95 %; by the paired bootstrap, where a sentence is
            drawn with its answers of all these seeds, so it speaks of other sentences.
        p: of the same.
    """

    rival: str
    seeds: list[int]
    scores: list[float]
    rivals: list[float]
    interval: tuple[float, float]
    p: float


def difference(runs: Runs, name: str, others: Runs, rival: str) -> Difference:
    """Compare a row with a rival, both named without a seed.

    Args:
        others: where the rival is, perhaps ``runs`` themselves.

    Raises:
        ValueError: they are one, or have no seed in common; a name that no row has.
        FileNotFoundError: there are no answers of a row.
    """
    if name == rival and runs is others:
        raise ValueError(f"{rival} must not be compared with itself: give another row")
    of_row, of_rival = runs.seeds(name), others.seeds(rival)
    seeds = sorted(of_row & of_rival)
    if not seeds:
        raise ValueError(
            f"{name} and {rival} must share a seed, but have {sorted(of_row)} and "
            f"{sorted(of_rival)}: run either with another seed"
        )
    texts, theirs = (
        seeds_together([where.answers(which, seed) for seed in seeds])
        for where, which in ((runs, name), (others, rival))
    )
    named = {"rival": theirs, "row": texts}
    found, _ = bootstrap(named, runs.given, "rival", {runs.key: runs.metric})
    p = found["row"][runs.key].p
    assert p is not None  # which it is for the rival alone
    return Difference(
        rival,
        seeds,
        [runs.score(name, seed) for seed in seeds],
        [others.score(rival, seed) for seed in seeds],
        interval(texts, theirs, runs.given, runs.metric),
        p,
    )


class OfWork:
    """Rows of a recipe's run, by their answers to the test set.

    Args:
        work: its folder.
        sets: of its test sets, those whose sentences are compared, all together; none:
            all sentences, where a row's score is the one that its table has, of several
            sets their mean.
        flag: that gives it.

    Raises:
        FileNotFoundError: no recipe has run there.
        ValueError: a set that it does not have.
    """

    def __init__(
        self, work: Path, sets: Sequence[str] = (), flag: str = "--work"
    ) -> None:
        path = work / "recipe.json"
        if not path.is_file():
            raise FileNotFoundError(
                f"{flag} {work} must be the folder of a recipe's run, but has no "
                "recipe.json: give the --work of sbnmt recipe"
            )
        settings = read_recipe(path, "run sbnmt recipe once more")
        self.work, self.settings, self.by = work, settings, judge(settings)
        self.metric, self.key = of_all_seeds(self.by.metric), self.by.key
        self.sets, self.scoring = sets, settings["score"]
        right = references(work / "text", settings)
        whole = right.read(self.by.stem)
        self.lengths = right.sets(len(whole[0]))
        unknown = [name for name in sets if name not in self.lengths]
        if unknown:
            raise ValueError(
                f"--sets must be some of {', '.join(self.lengths)}, the test sets of "
                f"{flag} {work}, but has {unknown[0]!r}: leave that out"
            )
        self.given = [self.chosen(text) for text in whole]

    def chosen(self, lines: list[str]) -> list[str]:
        """Those of the sets that are compared; of all, if none is chosen."""
        found = slices(self.lengths, [lines])
        kept = [name for name in self.lengths if not self.sets or name in self.sets]
        return [line for name in kept for line in found[name][0]]

    def rival(self, work: Path) -> OfWork:
        """Another run, whose rows are compared with those of this one.

        Raises:
            FileNotFoundError: no recipe has run there.
            ValueError: it has other right answers, or is scored in another way.
        """
        other = OfWork(work, self.sets, "--rival-work")
        if other.scoring != self.scoring:
            raise ValueError(
                f"--rival-work {work} must be scored as --work is, {self.scoring}, but "
                f"is by {other.scoring}: give two runs of one recipe"
            )
        if other.given != self.given:
            raise ValueError(
                f"--rival-work {work} must have the references of --work, but is of "
                "another test set: give two runs of one recipe, or compare the sets "
                "that both have, by --sets"
            )
        return other

    def seeds(self, name: str) -> set[int]:
        base, _ = split_name(name)
        if "@" in name:
            raise ValueError(
                f"{name} must be a row without a seed, all of its seeds are compared: "
                f"leave out @{name.partition('@')[2]}"
            )
        if SYSTEMS[base].back:
            raise ValueError(
                f"{name} must translate into the target, as its rivals do, but "
                "translates back: give another row"
            )
        results = self.work / "results"
        found = {split_name(path.stem)[1] for path in results.glob(f"{name}@*.json")}
        if (results / f"{name}.json").exists():
            found.add(1)
        if not found:
            raise FileNotFoundError(
                f"{results}/{name}.json must hold the results of a row, but does not "
                f"exist: run sbnmt recipe with --rows {name}"
            )
        for seed in found:  # all of one training
            check_row(self.work, self.settings, with_seed(name, seed))
        return found

    def answers(self, name: str, seed: int) -> list[str]:
        row, count = with_seed(name, seed), sum(self.lengths.values())
        found = self.by.answers(self.work, row)
        if len(found) != count:
            raise ValueError(
                f"{self.work}/results/{row}.{self.by.suffix} must have {count} lines, "
                f"as the test set has, but has {len(found)}: decode and evaluate that "
                "row anew"
            )
        return self.chosen(found)

    def score(self, name: str, seed: int) -> float:
        if self.sets:
            found = self.metric.corpus_score(self.answers(name, seed), self.given)
            return float(found.score)
        path = self.work / "results" / f"{with_seed(name, seed)}.json"
        with as_written(path, "evaluate anew"):
            return float(json.loads(path.read_text("utf-8"))[self.key]["score"])


class OfSweep:
    """What ``sbnmt sweep-beam`` has decoded, of any set: a row is NAME/BEAM, or
    NAME/BEAM/LENPEN.

    Runs that another command has left there are not its own.

    Raises:
        FileNotFoundError: nothing is there.
        ValueError: a reference is another by now.
    """

    def __init__(self, sweep: Path) -> None:
        self.runs: dict[tuple[str, int], tuple[Path, dict[str, Any]]] = {}
        whole = Sweep.of_file(sweep)
        for path in sorted(Path(f"{sweep}.runs").glob("*-beam-*/result.json")):
            with as_written(path, "remove its folder and repeat sbnmt sweep-beam"):
                found = json.loads(path.read_text("utf-8"))
                name, seed = system_and_seed(found["job"]["name"])
                setting = Setting.of_folder(path.parent.name)
                own = {key: found[key] for key in found if key != "job"}
                told = whole.runs.get(name, {}).get(setting, {}).get(seed, {})
                if own.items() <= told.items():
                    self.runs[f"{name}/{setting.label}", seed] = path, found
        if not self.runs:
            raise FileNotFoundError(
                f"--sweep {sweep} must be a sweep's --output, but {sweep}.runs has "
                "nothing that is decoded: give the file of sbnmt sweep-beam"
            )
        job = next(found["job"] for _, found in self.runs.values())
        words = job["options"]
        self.subset = words[words.index("--gen-subset") + 1]
        self.key = "WER" if job.get("phonemes") else "BLEU"
        lowercase = job.get("lowercase", False)
        self.metric = of_all_seeds(
            WordErrorRate()
            if self.key == "WER"
            else BLEU(tokenize="none", force=True, lowercase=lowercase)
        )
        self.given = [read_lines(path) for path in job["references"]]
        if origin.sha256_of(*self.given) != job["reference sha256"]:
            raise ValueError(
                f"--sweep {sweep} was scored by {', '.join(job['references'])}, which "
                f"is another text by now: remove {sweep}.runs and repeat the sweep"
            )

    def seeds(self, name: str) -> set[int]:
        found = {seed for row, seed in self.runs if row == name}
        if not found:
            there = ", ".join(sorted({row for row, _ in self.runs}))
            raise ValueError(f"a row of the sweep must be one of {there}, not {name}")
        return found

    def answers(self, name: str, seed: int) -> list[str]:
        path = self.runs[name, seed][0].with_name(f"generate-{self.subset}.txt")
        return [remove_bpe(text) for _, text in sorted(read_generated(path).items())]

    def score(self, name: str, seed: int) -> float:
        return float(self.runs[name, seed][1][self.key])
