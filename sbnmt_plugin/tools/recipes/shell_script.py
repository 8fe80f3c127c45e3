"""Steps as a bash script that one can read from top to bottom.

Options that many commands share are taken out of them into bash arrays.
"""

from __future__ import annotations

import itertools
import re
import shlex
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from sbnmt_plugin.tools.command_names import HOME
from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.step import Step, Word

Unit = tuple[Word, ...]  # an option with the words that follow it

# stand for the folders that the user of a script gives it
WORK, DATA = Path("$work"), Path("$data")
WIDTH = 88
READ = """data=${2:?"give WORK and DATA, as said above"}
[ -d "$data" ] || { echo "$data must be the folder DATA" >&2; exit 2; }"""
# into the clone that a script of a recipe in it is of
CHANGE = """cd "$(dirname "$0")/../.."
[ -d {0} ] ||
  {{ echo "save this script in {0}, where it runs" >&2; exit 2; }}"""
INDENT = "  "
# array -> its purpose, and how the commands begin that share it
KINDS = {
    "train": ("what all trainings of {} share", ("fairseq-train",)),
    "search": (
        "what all searches share",
        ("fairseq-generate", "sbnmt pseudo", "sbnmt rerank", "sbnmt probe-i"),
    ),
    "score": ("how every row is scored", ("sbnmt evaluate",)),
}


class Array(NamedTuple):
    """Options of several commands.

    Attributes:
        name: of the bash array.
        purpose: in a line.
        units: the options.
    """

    name: str
    purpose: str
    units: tuple[Unit, ...]


def split(words: Sequence[Word]) -> tuple[list[Word], list[Unit]]:
    """Split a command line into the words before its options, and the options."""
    parts: list[list[Word]] = [[]]
    for word in words:
        if isinstance(word, str) and re.match("--?[A-Za-z]", word):
            parts.append([])
        parts[-1].append(word)
    head, *options = parts
    return head, [tuple(option) for option in options]


def movable(step: Step) -> list[Unit]:
    """Return the options of a command that may move before all others.

    Of an option that comes twice the last counts, so only its first may.
    """
    found: dict[Word, Unit] = {}
    for unit in split(step.words)[1]:
        found.setdefault(unit[0], unit)
    return list(found.values())


def arrays(steps: list[Step]) -> dict[Step, Array]:
    """Return the array of each command that takes one, in the order of the script.

    There is one for each kind of command, of trainings one for each architecture.
    """
    kinds: dict[tuple[str, str], list[Step]] = defaultdict(list)
    for step in steps:
        words = [str(word) for word in step.words]
        for name, (purpose, begins) in KINDS.items():
            if " ".join(words[:2]).startswith(begins):
                if "--arch" in words:
                    name = words[words.index("--arch") + 1]
                kinds[re.sub(r"\W", "_", name), purpose.format(name)].append(step)
    found: dict[Step, Array] = {}
    for kind, alike in kinds.items():
        first, *others = map(movable, alike)
        units = tuple(x for x in first if all(x in own for own in others))
        if units and others:
            found |= dict.fromkeys(alike, Array(*kind, units))
    return found


def quoted(text: str) -> str:
    """Escape text for double quotes."""
    return re.sub(r'([\\"$`])', r"\\\1", text)


def exported(variable: str, value: str) -> str:
    """Set a variable that the user has not set."""
    default = quoted(value).replace("}", r"\}")
    return f'export {variable}="${{{variable}:-{default}}}"'


def shown(word: Word, clone: bool) -> str:
    """Write a word of a command line as bash reads it."""
    if not isinstance(word, Path):
        return shlex.quote(word)
    for place in WORK, DATA:
        if word.is_relative_to(place):
            return f'"{place}{quoted(str(word)[len(str(place)) :])}"'
    within = clone and word.is_relative_to(HOME)
    return shlex.quote(str(word.relative_to(HOME) if within else word))


def fill(first: str, units: list[list[str]], end: str) -> list[str]:
    """Fill lines of at most WIDTH, broken within an option if no line holds it.

    Args:
        first: beginning of the first line.
        units: options, each of one or several words.
        end: of every line but the last.
    """
    lines = [first]
    for unit in units:
        whole = " ".join(unit)
        fits = len(INDENT + whole) + len(end) <= WIDTH
        for piece in [whole] if fits else unit:
            line = f"{lines[-1]} {piece}"
            if len(line) + len(end) <= WIDTH:
                lines[-1] = line
            else:
                lines.append(INDENT + piece)
    return [*(line + end for line in lines[:-1]), lines[-1]]


def show_array(array: Array, clone: bool) -> list[str]:
    """Write the definition of an array, an option's lines filled."""
    units = [[shown(word, clone) for word in unit] for unit in array.units]
    line = f"{array.name}=({' '.join(word for unit in units for word in unit)})"
    long = [f"{array.name}=(", *fill(INDENT[1:], units, ""), ")"]
    return [*comment(array.purpose), *(long if len(line) > WIDTH else [line])]


def show_step(step: Step, array: Array | None, clone: bool) -> list[str]:
    """Write a command, its shared options replaced by their array."""
    head, units = split(step.words)
    parts = [[shown(word, clone)] for word in head[1:]]
    if array:
        parts.append([f'"${{{array.name}[@]}}"'])
        for unit in array.units:
            units.remove(unit)  # once: a repeated option stays
    parts += [[shown(word, clone) for word in unit] for unit in units]
    return fill(shown(head[0], clone), parts, " \\")


def comment(text: str, indent: str = "") -> list[str]:
    """Wrap text as comment lines."""
    start = f"# {indent}"
    wrapper = textwrap.TextWrapper(WIDTH - len(start))
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return [start + line for line in wrapper.wrap(text)]


def show_head(
    run: Run, rows: list[Row], options: list[str], suffix: str, clone: bool
) -> list[str]:
    """Write the script's purpose, its usage and its variables."""
    data = run.settings["data"]
    recipe, name = shown(run.folder, clone), f"{run.folder.name}{suffix}"
    script = f"{recipe}/run{suffix}.sh" if clone else "this script"
    command = " ".join(["sbnmt recipe", recipe, *map(shlex.quote, options)])
    given = "--work WORK" + " --data DATA" * bool(data)
    lines = [
        "#!/usr/bin/env bash",
        *comment(f"Make the results table of {name} from raw text, step by step."),
        *comment(f"Its rows: {', '.join(row.name for row in rows)}."),
        "#",
        f"# usage: {script} {'WORK DATA' if data else '[WORK]'}",
        *comment(f"WORK: a new folder (default: work/{name})", INDENT),
        *(comment(f"DATA: a folder with {data}", INDENT) if data else []),
        "#",
        *comment(
            f"Printed by `{command} --print`; to change it, change recipe.yaml. The "
            f"same command with `{given}` instead of --print runs these steps itself, "
            "goes on after an interrupt, and measures what they cost."
        ),
        "set -euo pipefail",
        *[CHANGE.format(recipe)] * clone,
        "",
        f"work=${{1:-{shlex.quote(f'work/{name}')}}}",
        *[READ] * bool(data),
        *["PATH=${VENV:-.venv}/bin:$PATH # where scripts/setup.sh installs"] * clone,
    ]
    for variable, value in run.settings["environment"].items():
        lines.append(exported(str(variable), str(value)))
    return lines


def render(
    steps: list[Step], run: Run, rows: list[Row], options: list[str], suffix: str = ""
) -> str:
    """Write the whole script.

    Args:
        steps: in the order in which one process runs them.
        run: that they are steps of.
        rows: of the table.
        options: of the command that prints the script, beside --print.
        suffix: of its name and its work folder's: ``-small`` or nothing.
    """
    known = arrays(steps)
    # a script of a clone runs in its root
    clone = run.folder.parent == HOME / "examples"
    blocks = [show_head(run, rows, options, suffix, clone)]
    blocks += [show_array(array, clone) for array in dict.fromkeys(known.values())]
    about = "A new folder: nothing of another run shall be taken for this one's"
    makes = ['mkdir -p "$(dirname "$work")"', 'mkdir "$work" "$work/results"']
    blocks.append([*comment(about), *makes])
    for purpose, alike in itertools.groupby(steps, lambda step: step.purpose):
        commands = (show_step(step, known.get(step), clone) for step in alike)
        blocks.append([*comment(purpose), *itertools.chain.from_iterable(commands)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"
