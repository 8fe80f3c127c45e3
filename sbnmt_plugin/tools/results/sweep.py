"""Results of a sweep over settings of the search: the best of each, and a table."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from sbnmt_plugin.tools.results.table import NONE, aligned, number
from sbnmt_plugin.tools.text import as_written

Runs = dict[int, dict[str, Any]]  # seed -> run, for one system with one setting


def system_and_seed(name: str) -> tuple[str, int]:
    """Split a name of a sweep, any name: only @NUMBER at its end is a seed."""
    found = re.fullmatch("(.+)@([0-9]+)", name)
    return (found[1], int(found[2])) if found else (name, 1)


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number."""
    return isinstance(value, (int, float)) and math.isfinite(value)


class Setting(NamedTuple):
    """Setting of a search.

    Attributes:
        beam: number of hypotheses, over all directions.
        lenpen: fairseq's length penalty; None where the sweep leaves it alone.
    """

    beam: int
    lenpen: float | None = None

    @classmethod
    def of_run(cls, run: dict[str, Any]) -> Setting:
        """Read the setting of a run in a file.

        Raises:
            ValueError: numbers that no search can have.
        """
        beam, lenpen = run["beam"], run.get("lenpen")
        if not isinstance(beam, int) or beam < 1:
            raise ValueError(f"a beam of {beam!r}")
        if lenpen is not None and not is_number(lenpen):
            raise ValueError(f"a length penalty of {lenpen!r}")
        return cls(beam, lenpen)

    @property
    def as_json(self) -> dict[str, Any]:
        """Part of a run's JSON: what is set."""
        return {k: value for k, value in self._asdict().items() if value is not None}

    def folder(self, place: int | str) -> str:
        """Name the folder of a run of the system of that number, or ``*``."""
        words = [f"{name}-{value:g}" for name, value in self.as_json.items()]
        return "-".join([str(place), *words])

    @property
    def label(self) -> str:
        """Name of a column, and to ``sbnmt compare``: ``4`` or ``4/1.5``."""
        return "/".join(f"{value:g}" for value in self.as_json.values())

    @property
    def words(self) -> list[str]:
        """Options of fairseq-generate."""
        pairs = ((f"--{name}", f"{value:g}") for name, value in self.as_json.items())
        return [word for pair in pairs for word in pair]


class Sweep:
    """Results of ``sbnmt sweep-beam``.

    Attributes:
        score: by which runs are compared: ``WER`` where all have one, else ``BLEU``.
        runs: system, without its seed -> setting -> its runs.
        seeds: system -> all of its seeds.
        signatures: those of BLEU.
        missing: number of runs that were asked for and are not there.
        options: fairseq-generate's for all systems; None where the file is older.

    Raises:
        ValueError: there is no run, or one twice, or values that no run has.
    """

    def __init__(self, sweep: dict[str, Any]) -> None:
        runs = sweep["runs"]
        if not runs:
            raise ValueError("no runs of systems with beams")
        self.missing = sweep.get("planned", len(runs)) - len(runs)
        self.options: list[str] | None = sweep.get("options")
        self.score = "WER" if all("WER" in run for run in runs) else "BLEU"
        self.runs: dict[str, dict[Setting, Runs]] = {}
        for run in runs:
            name, seed = system_and_seed(run["system"])
            setting = Setting.of_run(run)
            if not is_number(run[self.score]):
                raise ValueError(f"{self.score} of {run[self.score]!r}")
            found = self.runs.setdefault(name, {}).setdefault(setting, {})
            if seed in found:
                raise ValueError(f"{run['system']} with {setting.label} twice")
            found[seed] = run
        if len({setting.lenpen is None for setting in self.settings()}) > 1:
            raise ValueError("length penalties of some runs alone")
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
        scores = [found[seed][self.score] for seed in sorted(found)]
        return scores if len(scores) == len(self.seeds[name]) else []

    def best(self, name: str) -> Setting:
        """Return the setting whose scores have the best mean, of equal ones the first.

        Raises:
            ValueError: the system was not decoded, or not with all of its seeds.
        """
        if name not in self.runs:
            there = ", ".join(self.runs)
            raise ValueError(f"it must have {name}, but has {there}: decode that, too")
        whole = [each for each in sorted(self.runs[name]) if self.scores(name, each)]
        if len(whole) < len(self.runs[name]):
            raise ValueError(
                f"all seeds of {name} must have the same beams, but have not: decode "
                "what is missing"
            )
        sign = -1 if self.score == "WER" else 1
        return max(whole, key=lambda each: sign * mean(self.scores(name, each)))

    def settings(self) -> list[Setting]:
        return sorted({each for found in self.runs.values() for each in found})


def ratio(runs: Iterable[dict[str, Any]]) -> str:
    """Return hypothesis length over reference length, in brackets."""
    found = [run["length ratio"] for run in runs if "length ratio" in run]
    return f" ({number(mean(found))})" if found else ""


def render_sweep(sweep: dict[str, Any]) -> str:
    """Render a sweep as a Markdown table: a line a system, its seeds together.

    A cell has WER where there is one, else tokenised BLEU; where length penalties were
    swept, also the length ratio in brackets.  It is empty where a seed that the system
    has elsewhere was not decoded so.  Where every system has one setting of its own,
    the line says which.

    Raises:
        ValueError: no runs, or one twice.
    """
    found = Sweep(sweep)
    settings = found.settings()
    swept = any(each.lenpen is not None for each in settings)

    def cell(name: str, setting: Setting) -> str:
        scores = found.scores(name, setting)
        if not scores:
            return NONE
        spread = f" ± {number(stdev(scores))}" if len(scores) > 1 else ""
        runs = found.runs[name][setting].values()
        return number(mean(scores)) + spread + (ratio(runs) if swept else "")

    heading = "WER, %" if found.score == "WER" else "tok. BLEU"
    names = list(found.runs)
    apart = len(settings) > 1 and all(len(own) == 1 for own in found.runs.values())
    by = "beam/lenpen" if swept else "beam"
    columns = {"system" if apart else f"{heading}, by {by}": names}
    if any(there != [1] for there in found.seeds.values()):
        columns["seeds"] = [", ".join(map(str, found.seeds[name])) for name in names]
    if apart:
        chosen = {name: setting for name in names for setting in found.runs[name]}
        columns[by] = [setting.label for setting in chosen.values()]
        columns[heading] = [cell(*each) for each in chosen.items()]
    else:
        for setting in settings:
            columns[setting.label] = [cell(name, setting) for name in names]
    lines = aligned(list(columns), [list(cells) for cells in zip(*columns.values())])
    if found.score == "BLEU":
        lines += ["", *(f"tokenised BLEU: `{text}`" for text in found.signatures)]
    return "\n".join(lines) + "\n"
