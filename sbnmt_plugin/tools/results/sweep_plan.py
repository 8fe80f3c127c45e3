"""Plan of a sweep: the systems, the settings of each, and what they are scored by."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.launch import gives
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.settings import search_options
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
Systems = dict[str, list[str]]  # options of fairseq-generate that tell each from others


@dataclass(frozen=True)
class Plan:
    """Searches of a sweep.

    Attributes:
        systems: their names and options.
        options: options of fairseq-generate for all of them.
        data: folder of the binarised data.
        references: tokenised files.
        output: JSON file that the sweep writes.
        subset: set that is decoded.
        phonemes: whether error rates are computed, too.
        lowercase: whether BLEU ignores case.
        runs: each system with each of its settings.
    """

    systems: Systems
    options: list[str]
    data: str = ""
    references: Sequence[str] = ()
    output: str = ""
    subset: str = "test"
    phonemes: bool = False
    lowercase: bool = False
    runs: Sequence[tuple[str, Setting]] = ()


def parse_systems(values: list[str]) -> Systems:
    """Read ``NAME=OPTIONS``.

    Raises:
        ValueError: another form, a name twice, or an option that is set here.
    """
    found: Systems = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not (name and equals and text.strip()) or name.startswith("-"):
            raise ValueError(f"--system must be NAME=OPTIONS, but is {value!r} instead")
        refuse_twice(name, found)
        found[name] = shlex.split(text)
        if not gives(found[name], "--path"):
            raise ValueError(f"--system {name} must have --path, but has none")
        refuse_own(found[name])
    return found


def refuse_twice(name: str, systems: Systems) -> None:
    """Refuse a system that is there already; sb is sb@1."""
    if system_and_seed(name) in map(system_and_seed, systems):
        raise ValueError(f"--system {name} must be given once, but comes twice")


def refuse_own(words: list[str], flags: Sequence[str] = SET_HERE) -> None:
    """Refuse options that the sweep itself sets.

    Raises:
        ValueError: with the flag.
    """
    for flag in flags:
        if gives(words, flag):
            raise ValueError(f"{flag} is set by the sweep: leave it out")


def numbers(text: str, form: str, rule: str) -> list[str]:
    """Split numbers at commas.

    Args:
        form: regular expression of a number.
        rule: beginning of the message.

    Raises:
        ValueError: something else.
    """
    words = [word.strip() for word in text.split(",")]
    if not all(re.fullmatch(form, word) for word in words):
        raise ValueError(f"{rule}, but is {text!r}")
    return words


def parse_beams(text: str) -> list[int]:
    """Read ``1,2,4``; anything else is a ValueError."""
    rule = f"--beams must be numbers ≥ 1 like {BEAMS}"
    return sorted({int(word) for word in numbers(text, "0*[1-9][0-9]*", rule)})


def parse_lenpens(text: str) -> list[float]:
    """Read ``0.6,1,1.5``; anything else is a ValueError."""
    rule = "--lenpens must be numbers ≥ 0 of at most three decimals like 0.6,1,1.5"
    # as they come back from the name of a folder
    form = r"[0-9]{1,3}(\.[0-9]{1,3})?"
    return sorted({float(word) for word in numbers(text, form, rule)})


def directions(words: list[str]) -> int:
    """Return how many directions a system's options search."""
    joined = " ".join(words).replace("=", " ")
    return 1 if re.search(r"--sb-direction (l2r|r2l)\b", joined) else 2


def every_setting(
    systems: Systems, beams: list[int], lenpens: Sequence[float | None] = (None,)
) -> list[tuple[str, Setting]]:
    """Return each system with each beam that its directions divide.

    Raises:
        ValueError: a system has none.
    """
    found = []
    for name, words in systems.items():
        own = [beam for beam in beams if beam % directions(words) == 0]
        if not own:
            raise ValueError(
                f"--beams must have an even number for {name}, which has two "
                f"directions, but has {', '.join(map(str, beams))}: add 2"
            )
        found += [(name, Setting(beam, lenpen)) for beam in own for lenpen in lenpens]
    return found


def chosen(sweep: Sweep, systems: Systems) -> list[tuple[str, Setting]]:
    """Return each system as it was best, its seeds together.

    Raises:
        ValueError: the sweep was interrupted, lacks a system or is of others.
    """
    if sweep.missing:
        raise ValueError(f"{sweep.missing} runs are missing: repeat that sweep")
    found = [(name, sweep.best(system_and_seed(name)[0])) for name in systems]
    for name, setting in found:
        if setting.beam % directions(systems[name]):
            raise ValueError(
                f"{name} has two directions, but the best beam is {setting.beam}: it "
                "is another system's of that name"
            )
    return found


def without(words: list[str], flag: str) -> list[str]:
    """Return options, each given as two words, but for one."""
    if flag not in words:
        return words
    place = words.index(flag)
    return words[:place] + words[place + 2 :]


def planned(
    plan: Plan,
    own: list[str],
    beams: str | None = None,
    lenpens: str | None = None,
    chosen_by: str | None = None,
) -> Plan:
    """Add the runs, and leave out of the options what the sweep sets.

    Args:
        own: options of fairseq-generate that the user gave.
        beams, lenpens, chosen_by: values of these flags.

    Raises:
        FileNotFoundError, ValueError: a value, or flags that exclude each other.
    """
    before = None
    if chosen_by is None:
        swept = (None,) if lenpens is None else parse_lenpens(lenpens)
        asked = parse_beams(BEAMS if beams is None else beams)
        runs = every_setting(plan.systems, asked, swept)
    else:
        before = Sweep.of_file(Path(chosen_by))
        if beams is not None or lenpens is not None:
            raise ValueError(
                "--chosen-by gives each system its beam and length penalty: leave out "
                "--beams and --lenpens"
            )
        try:
            runs = chosen(before, plan.systems)
        except ValueError as error:
            raise ValueError(f"--chosen-by {chosen_by}: {error}") from error
    if any(setting.lenpen is not None for _, setting in runs):
        for words in own, *plan.systems.values():
            refuse_own(words, ("--lenpen",))
    options = plan.options
    # the sweep's come last and win; without them a file says what all searches had
    for flag in {word for _, setting in runs for word in setting.words[::2]}:
        options = without(options, flag)
    if before is not None and before.options not in (None, options):
        had = shlex.join(before.options or []) or "none"
        raise ValueError(
            f"--chosen-by {chosen_by} must be of searches with the same options, "
            f"{shlex.join(options) or 'none'}, but had {had}"
        )
    return replace(plan, options=options, runs=runs)


def row_options(work: Path, settings: dict[str, Any], name: str) -> list[str]:
    """Return the options of the search that tell a recipe's row from others.

    Raises:
        FileNotFoundError: it is not trained.
        ValueError: there is no such row, or it is decoded in a way of its own.
    """
    row = Row.parse(name)
    system = row.system
    if not system.data:
        raise ValueError(f"--rows {name} has no model of its own: leave it out")
    own = system.back or system.decode or system.table
    if own or system.data == MULTILINGUAL:
        raise ValueError(
            f"--rows {name} is decoded with data or options of its own: leave it out, "
            "and give them as --data and --system"
        )
    (trained,) = trainings(settings, row)
    path = work / trained.name / "model.pt"
    if not path.is_file():
        raise FileNotFoundError(
            f"--rows {name} needs {path}, which is not there: sbnmt recipe "
            f"with --rows {trained.name} trains it"
        )
    words = ["--path", str(path)]
    if system.direction != BOTH:
        both = trained.system.direction == BOTH
        words += ["--sb-answer" if both else "--sb-direction", system.direction]
    if row.rescored:
        words += ["--sb-rescore", str(settings["rescore"])]
    return words


def with_work(plan: Plan, work: Path, names: list[str], output: str) -> Plan:
    """Add what the user did not give, from a recipe's folder.

    Args:
        names: rows that are decoded beside the plan's systems; without either, the
            teachers and the first SB-NMT that is there.
        output: name of the file, below the folder.

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
    rows = [(name, name) for name in names]
    if not rows and not plan.systems:
        for title, known in SHOWN.items():
            there = [row for row in known if (work / row / "model.pt").is_file()]
            rows += [(title, row) for row in there[:1]]
    systems = dict(plan.systems)
    for title, row in rows:
        refuse_twice(title, systems)
        systems[title] = row_options(work, settings, row)
    return replace(
        plan,
        systems=systems,
        options=[*search_options(settings), *plan.options],  # the last one wins
        data=plan.data or str(work / "data"),
        references=plan.references or [str(path) for path in (first, *further)],
        output=plan.output or str(work / output),
        phonemes=plan.phonemes or scored["phonemes"],
        lowercase=plan.lowercase or scored["lowercase"],
    )
