"""Steps as a bash script that one can read from top to bottom.

Options that many commands share are taken out of them into bash arrays.
"""

from __future__ import annotations

import itertools
import re
import shlex
import textwrap
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
INDENT = "  "
EXAMPLES = HOME / "examples"  # in a clone
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
    places = [
        place
        for place, word in enumerate(words)
        if isinstance(word, str) and re.match("--?[A-Za-z]", word)
    ]
    ends = [*places[1:], len(words)]
    head = words[: places[0]] if places else words
    return list(head), [tuple(words[a:b]) for a, b in zip(places, ends)]


def common(steps: list[Step]) -> tuple[Unit, ...]:
    """Return the options that several commands have.

    Of an option that comes twice the last counts, so only its first may move before
    all others of the command.
    """
    if len(steps) < 2:
        return ()
    movable = []
    for step in steps:
        units = split(step.words)[1]
        flags = [unit[0] for unit in units]
        movable.append([x for i, x in enumerate(units) if x[0] not in flags[:i]])
    first, *others = movable
    return tuple(x for x in first if all(x in own for own in others))


def kind_of(step: Step) -> tuple[str, str] | None:
    """Return name and purpose of the array for a command, if there is any.

    There is one for each kind of command, of trainings one for each architecture.
    """
    words = [str(word) for word in step.words]
    for name, (purpose, begins) in KINDS.items():
        if not " ".join(words[:2]).startswith(begins):
            continue
        if "--arch" not in words:
            return name, purpose
        arch = words[words.index("--arch") + 1]
        return re.sub(r"\W", "_", arch), purpose.format(arch)
    return None


def arrays(steps: list[Step]) -> dict[Step, Array]:
    """Return the array of each command that takes one, in the order of the script."""
    kinds: dict[tuple[str, str], list[Step]] = {}
    for step in steps:
        if kind := kind_of(step):
            kinds.setdefault(kind, []).append(step)
    return {
        step: Array(*kind, units)
        for kind, alike in kinds.items()
        if (units := common(alike))
        for step in alike
    }


def in_clone(folder: Path) -> bool:
    """Check whether a recipe is one of a clone's, which runs in the clone's root."""
    return folder.parent == EXAMPLES


def quoted(text: str) -> str:
    """Escape text for double quotes."""
    return re.sub(r'([\\"$`])', r"\\\1", text)


def exported(variable: str, value: str) -> str:
    """Set a variable that the user has not set."""
    return f'export {variable}="${{{variable}:-{quoted(value)}}}"'


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


def show_head(run: Run, rows: list[Row], options: list[str], suffix: str) -> list[str]:
    """Write the script's purpose, its usage and its variables."""
    clone, data = in_clone(run.folder), run.settings["data"]
    recipe, name = shown(run.folder, clone), f"{run.folder.name}{suffix}"
    script = f"{recipe}/run{suffix}.sh" if clone else "this script"
    command = " ".join(["sbnmt recipe", recipe, *options])
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
        *['cd "$(dirname "$0")/../.."'] * clone,
        "",
        f"work=${{1:-{shlex.quote(f'work/{name}')}}}",
        *['data=${2:?"give WORK and DATA, as said above"}'] * bool(data),
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
    clone, known = in_clone(run.folder), arrays(steps)
    blocks = [show_head(run, rows, options, suffix)]
    blocks += [show_array(array, clone) for array in dict.fromkeys(known.values())]
    about = "A new folder: nothing of another run shall be taken for this one's"
    makes = ['mkdir -p "$(dirname "$work")"', 'mkdir "$work" "$work/results"']
    blocks.append([*comment(about), *makes])
    for purpose, alike in itertools.groupby(steps, lambda step: step.purpose):
        commands = (show_step(step, known.get(step), clone) for step in alike)
        blocks.append([*comment(purpose), *itertools.chain.from_iterable(commands)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"
