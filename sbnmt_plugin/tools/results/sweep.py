"""Results of a sweep over settings of the search: the best of each, and a table."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from sbnmt_plugin.tools.results.table import HEADINGS, NONE, aligned, number
from sbnmt_plugin.tools.scoring import bleu_named
from sbnmt_plugin.tools.text import as_written

Runs = dict[int, dict[str, Any]]  # seed -> run, for one system with one setting


def system_and_seed(name: str) -> tuple[str, int]:
    """Split a name of a sweep, any name: only @NUMBER at its end is a seed."""
    found = re.fullmatch("(.+)@([0-9]+)", name)
    return (found[1], int(found[2])) if found else (name, 1)


def finite(run: dict[str, Any], key: str) -> float:
    """Return a number of a run in a file.

    Raises:
        KeyError, ValueError: there is none.
    """
    value = run[key]
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{key} of {value!r}")
    return value


class Setting(NamedTuple):
    """Setting of a search.

    Attributes:
        beam: number of hypotheses, over all directions.
        lenpen: fairseq's length penalty; None where the sweep leaves it alone.
    """

    beam: int
    lenpen: float | None = None

    @property
    def as_json(self) -> dict[str, Any]:
        """Part of a run's JSON: what is set."""
        return {k: value for k, value in self._asdict().items() if value is not None}

    def folder(self, row: str) -> str:
        """Name the folder of a row's run."""
        words = [f"{name}-{value:g}" for name, value in self.as_json.items()]
        return "-".join([row, *words])

    @property
    def label(self) -> str:
        """Name of a column: ``4`` or ``4/1.5``."""
        return "/".join(f"{value:g}" for value in self.as_json.values())

    @property
    def words(self) -> list[str]:
        """Options of fairseq-generate."""
        return [x for k, v in self.as_json.items() for x in (f"--{k}", f"{v:g}")]


class Sweep:
    """Results of ``sbnmt sweep-beam``.

    Attributes:
        all: the runs as they stand in its file.
        of_lenpens: whether length penalties were swept, too.
        settings: all settings of the search.
        runs: system, without its seed -> setting -> its runs.
        seeds: system -> all of its seeds.
        signatures: those of BLEU.
        subset: the set that was decoded.
        missing: number of runs that were asked for and are not there.

    Raises:
        ValueError: there is no run, or one twice, or values that no run has.
    """

    def __init__(self, sweep: dict[str, Any]) -> None:
        self.all = runs = sweep["runs"]
        if not runs:
            raise ValueError("no runs of systems with beams")
        self.subset = sweep.get("subset", "test")
        self.missing = sweep.get("planned", len(runs)) - len(runs)
        self.of_lenpens = any(run.get("lenpen") is not None for run in runs)
        self.runs: dict[str, dict[Setting, Runs]] = {}
        for run in runs:
            name, seed = system_and_seed(run["system"])
            beam = run["beam"]
            if not isinstance(beam, int) or beam < 1:
                raise ValueError(f"a beam of {beam!r}")
            setting = Setting(beam, finite(run, "lenpen") if self.of_lenpens else None)
            finite(run, "BLEU")
            found = self.runs.setdefault(name, {}).setdefault(setting, {})
            if seed in found:
                raise ValueError(f"{run['system']} with {setting.label} twice")
            found[seed] = run
        self.settings = sorted({each for found in self.runs.values() for each in found})
        self.seeds = {
            name: sorted({seed for found in settings.values() for seed in found})
            for name, settings in self.runs.items()
        }
        self.signatures = sorted({run["signature"] for run in runs})

    @classmethod
    def of_file(cls, path: Path) -> Sweep:
        """Read the file that ``sbnmt sweep-beam`` has written.

        Raises:
            FileNotFoundError, ValueError: it is not there, or is something else.
        """
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} does not exist: give a file that sbnmt sweep-beam has written"
            )
        with as_written(path, "give a file that sbnmt sweep-beam has written"):
            return cls(json.loads(path.read_text(encoding="utf-8")))

    def scores(self, name: str, setting: Setting) -> list[float]:
        """Return the scores of all seeds, or none, where one was not decoded so."""
        found = self.runs[name].get(setting, {})
        scores = [found[seed]["BLEU"] for seed in sorted(found)]
        return scores if len(scores) == len(self.seeds[name]) else []

    def best(self, name: str) -> Setting:
        """Return the setting whose scores have the best mean, of equal ones the first.

        Raises:
            ValueError: the system was not decoded, or not with all of its seeds.
        """
        if name not in self.runs:
            there = ", ".join(self.runs)
            raise ValueError(
                f"it must have {name}, but has {there}: name all rows in one sweep"
            )
        whole = [each for each in sorted(self.runs[name]) if self.scores(name, each)]
        if len(whole) < len(self.runs[name]):
            raise ValueError(
                f"all seeds of {name} must have the same beams, but have not: decode "
                "what is missing"
            )
        return max(whole, key=lambda each: mean(self.scores(name, each)))


def render_sweep(sweep: dict[str, Any]) -> str:
    """Render a sweep as a Markdown table: a line a system, its seeds together.

    A cell has BLEU.  It is empty where a seed that the system has elsewhere was not
    decoded so.

    Raises:
        ValueError: no runs, or one twice.
    """
    found = Sweep(sweep)

    def cell(name: str, setting: Setting) -> str:
        scores = found.scores(name, setting)
        if not scores:
            return NONE
        shown = number(mean(scores))
        if len(scores) > 1:
            shown += f" ± {number(stdev(scores))}"
        return shown

    bleu = bleu_named("".join(found.signatures))
    heading = HEADINGS.get(bleu, bleu)
    by = "beam/lenpen" if found.of_lenpens else "beam"
    names = list(found.runs)
    columns = {f"{heading}, by {by}": names}
    if any(seeds != [1] for seeds in found.seeds.values()):
        columns["seeds"] = [", ".join(map(str, found.seeds[name])) for name in names]
    for setting in found.settings:
        columns[setting.label] = [cell(name, setting) for name in names]
    lines = aligned(list(columns), [list(cells) for cells in zip(*columns.values())])
    lines += ["", *(f"{bleu}: `{text}`" for text in found.signatures)]
    return "\n".join(lines) + "\n"
