"""Plan of a sweep: the systems, the settings of each, and what they are scored by."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.launch import gives
from sbnmt_plugin.tools.recipes.rows import Row, asked_rows
from sbnmt_plugin.tools.recipes.settings import raw_tokeniser, search_options
from sbnmt_plugin.tools.recipes.stages import trainings
from sbnmt_plugin.tools.recipes.systems import OURS
from sbnmt_plugin.tools.recipes.systems.system import BOTH, MULTILINGUAL
from sbnmt_plugin.tools.recipes.work_folder import read_recipe
from sbnmt_plugin.tools.results.sweep import Setting, Sweep, system_and_seed
from sbnmt_plugin.tools.results.work_folder_rows import languages

BEAMS = "1,2,4,8,16"
SET_HERE = ("--beam", "--results-path", "--nbest", "--sb-records", "--sb-trace")
# title -> rows, of which the first that a folder has is decoded if none is asked for
SHOWN = {"L2R": ["teacher-l2r"], "R2L": ["teacher-r2l"], "SB-NMT": OURS}
Searches = list[tuple[str, Setting]]  # systems, each with one of its settings


@dataclass
class Plan:
    """Flags of ``sbnmt sweep-beam``, as argparse fills them in, and what they mean.

    Attributes:
        data, references, output, subset, phonemes, lowercase, raw: where no flag
            gives them, those of the work folder.
        work, rows, system, beams, lenpens, chosen_by: flags that :func:`planned` reads.
        options: options of fairseq-generate for all systems.
        systems: name -> options that tell it from others.
    """

    data: str = ""
    references: list[str] = field(default_factory=list)
    output: str = ""
    subset: str = "test"
    phonemes: bool = False
    lowercase: bool = False
    raw: str = ""
    work: str | None = None
    rows: list[str] = field(default_factory=list)
    system: list[str] = field(default_factory=list)
    beams: str | None = None
    lenpens: str | None = None
    chosen_by: str | None = None
    options: list[str] = field(default_factory=list)
    systems: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, words: list[str]) -> None:
        """Add a system, once: sb is sb@1.

        Raises:
            ValueError: it is there already.
        """
        if system_and_seed(name) in map(system_and_seed, self.systems):
            raise ValueError(f"--system {name} must be given once, but comes twice")
        self.systems[name] = words


def planned(plan: Plan) -> Searches:
    """Complete a plan, and return its searches.

    Options that the sweep sets are left out of the plan's: the sweep's come last and
    win, and a file says what all searches had.

    Raises:
        FileNotFoundError, ValueError: a value, or flags that exclude each other.
    """
    chosen_by = None if plan.chosen_by is None else Sweep.of_file(Path(plan.chosen_by))
    swept = ["--beam"]
    if plan.lenpens is not None or (chosen_by and chosen_by.of_lenpens):
        swept.append("--lenpen")
    add_systems(plan)
    for words in plan.options, *plan.systems.values():
        for flag in (*SET_HERE, *swept):
            if gives(words, flag):
                raise ValueError(f"{flag} is set by the sweep: leave it out")
    if plan.work is not None:
        add_work(plan, Path(plan.work))
    elif plan.rows:
        raise ValueError(
            "--rows are those of a recipe's run: give its folder as --work"
        )
    for flag in "data", "systems", "references", "output":
        if not getattr(plan, flag):
            name = flag.removesuffix("s")
            raise ValueError(f"--{name} must be given, or --work with a recipe's run")
    for flag in swept:
        plan.options = without(plan.options, flag)
    if chosen_by is None:
        return every_setting(plan)
    if plan.beams is not None or plan.lenpens is not None:
        raise ValueError(
            "--chosen-by gives each system its beam and length penalty: leave out "
            "--beams and --lenpens"
        )
    try:
        return best_settings(plan, chosen_by)
    except ValueError as error:
        raise ValueError(f"--chosen-by {plan.chosen_by}: {error}") from error


def add_systems(plan: Plan) -> None:
    """Add the systems of ``--system NAME=OPTIONS``.

    Raises:
        ValueError: another form, or a name twice.
    """
    for value in plan.system:
        name, equals, text = value.partition("=")
        if not (name and equals and text.strip()) or name.startswith("-"):
            raise ValueError(f"--system must be NAME=OPTIONS, but is {value!r} instead")
        words = shlex.split(text)
        if not gives(words, "--path"):
            raise ValueError(f"--system {name} must have --path, but has none")
        plan.add(name, words)


def add_work(plan: Plan, work: Path) -> None:
    """Add what the user did not give, from a recipe's folder.

    Without ``--rows`` and ``--system`` its teachers and the first SB-NMT that is there
    are decoded.

    Raises:
        FileNotFoundError: no recipe has finished there.
    """
    _, target = languages(work)
    remedy = "give a folder that the step recipe has filled"
    settings = read_recipe(work / "recipe.json", remedy)
    scored = settings["score"]
    right = References(work / "text", target, scored["references"])
    first, *further = right.files(plan.subset)
    if plan.subset != "test":  # which may have fewer
        further = [path for path in further if path.is_file()]
    rows = [(row.name, row) for row in asked_rows(plan.rows, retired=True)]
    if not rows and not plan.systems:
        for title, known in SHOWN.items():
            there = [row for row in known if (work / row / "model.pt").is_file()]
            rows += [(title, Row(row)) for row in there[:1]]
    for title, row in rows:
        plan.add(title, row_options(work, settings, row))
    kind = "chosen" if plan.chosen_by else "beam" if plan.lenpens is None else "lenpen"
    plan.options = [*search_options(settings), *plan.options]  # the last one wins
    plan.data = plan.data or str(work / "data")
    plan.references = plan.references or [str(path) for path in (first, *further)]
    plan.output = plan.output or str(work / f"{kind}-sweep.json")
    plan.phonemes = plan.phonemes or scored["phonemes"]
    plan.lowercase = plan.lowercase or scored["lowercase"]
    plan.raw = plan.raw or raw_tokeniser(settings)


def row_options(work: Path, settings: dict[str, Any], row: Row) -> list[str]:
    """Return the options of the search that tell a recipe's row from others.

    Raises:
        FileNotFoundError: it is not trained.
        ValueError: it is decoded in a way of its own.
    """
    system = row.system
    if not system.data:
        raise ValueError(f"--rows {row.name} has no model of its own: leave it out")
    own = system.back or system.decode or system.table
    if own or system.data == MULTILINGUAL:
        raise ValueError(
            f"--rows {row.name} is decoded with data or options of its own: leave it "
            "out, and give them as --data and --system"
        )
    (trained,) = trainings(settings, row)
    path = work / trained.name / "model.pt"
    if not path.is_file():
        raise FileNotFoundError(
            f"--rows {row.name} needs {path}, which is not there: sbnmt recipe "
            f"with --rows {trained.name} trains it"
        )
    words = ["--path", str(path)]
    if system.direction != BOTH:
        both = trained.system.direction == BOTH
        words += ["--sb-answer" if both else "--sb-direction", system.direction]
    if row.rescored:
        words += ["--sb-rescore", str(settings["rescore"])]
    return words


def without(words: list[str], flag: str) -> list[str]:
    """Return options, each given as two words, but for one."""
    if flag not in words:
        return words
    place = words.index(flag)
    return words[:place] + words[place + 2 :]


def directions(words: list[str]) -> int:
    """Return how many directions a system's options search."""
    joined = " ".join(words).replace("=", " ")
    return 1 if re.search(r"--sb-direction (l2r|r2l)\b", joined) else 2


def numbers(text: str, form: str, rule: str) -> list[float]:
    """Read numbers with commas between them.

    Args:
        form: regular expression of a number.
        rule: beginning of the message.

    Raises:
        ValueError: something else.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(re.fullmatch(form, word) for word in words):
        raise ValueError(f"{rule}, but is {text!r}")
    return sorted(set(map(float, words)))


def every_setting(plan: Plan) -> Searches:
    """Return each system with each beam that its directions divide.

    Raises:
        ValueError: a value of ``--beams`` or ``--lenpens``, or a system has no beam.
    """
    rule = f"--beams must be numbers ≥ 1 like {BEAMS}"
    asked = BEAMS if plan.beams is None else plan.beams
    beams = [int(beam) for beam in numbers(asked, "0*[1-9][0-9]*", rule)]
    lenpens: Sequence[float | None] = [None]
    if plan.lenpens is not None:
        rule = "--lenpens must be numbers ≥ 0 of at most three decimals like 0.6,1,1.5"
        # as they come back from the name of a folder
        lenpens = numbers(plan.lenpens, r"[0-9]{1,3}(\.[0-9]{1,3})?", rule)
    found = []
    for name, words in plan.systems.items():
        own = [beam for beam in beams if beam % directions(words) == 0]
        if not own:
            raise ValueError(
                f"--beams must have an even number for {name}, which has two "
                f"directions, but has {', '.join(map(str, beams))}: add 2"
            )
        found += [(name, Setting(beam, lenpen)) for beam in own for lenpen in lenpens]
    return found


def best_settings(plan: Plan, sweep: Sweep) -> Searches:
    """Return each system as it was best in a sweep, its seeds together.

    Raises:
        ValueError: the sweep was interrupted, lacks a system, is of others, or was
            decoded with other options.
    """
    if sweep.missing:
        raise ValueError(f"{sweep.missing} runs are missing: repeat that sweep")
    found = [(name, sweep.best(system_and_seed(name)[0])) for name in plan.systems]
    for name, setting in found:
        if setting.beam % directions(plan.systems[name]):
            raise ValueError(
                f"{name} has two directions, but the best beam is {setting.beam}: it "
                "is another system's of that name"
            )
    if sweep.options not in (None, plan.options):
        raise ValueError(
            "that sweep must be of searches with the same options, "
            f"{shlex.join(plan.options) or 'none'}, but had "
            f"{shlex.join(sweep.options or []) or 'none'}"
        )
    return found
