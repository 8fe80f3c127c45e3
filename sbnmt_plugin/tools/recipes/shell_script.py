"""Steps as a bash script that one can read from top to bottom."""

from __future__ import annotations

import itertools
import re
import shlex
import textwrap
from pathlib import Path

from sbnmt_plugin.tools.command_names import HOME
from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.shared_options import (
    Array,
    arrays,
    in_definition_order,
    split,
)
from sbnmt_plugin.tools.recipes.step import Step, Word

# stand for the folders that the user of a script gives it
WORK, DATA = Path("$work"), Path("$data")
WIDTH = 88
INDENT = "  "
EXAMPLES = HOME / "examples"  # in a clone


def in_clone(folder: Path) -> bool:
    """Check whether a recipe is one of a clone's, which runs in the clone's root."""
    return folder.parent == EXAMPLES


def quoted(text: str) -> str:
    """Escape text for double quotes."""
    return re.sub(r'([\\"$`])', r"\\\1", text)


def exported(variable: str, value: str) -> list[str]:
    """Set a variable that the user has not set.

    A list, as of paths, may take several lines, which bash joins within double quotes.
    """
    first, *rest = re.split("(?<=:)", quoted(value))
    lines = [f'export {variable}="${{{variable}:-{first}']
    for part in [*rest, '}"']:
        if len(lines[-1] + part) < WIDTH:
            lines[-1] += part
        else:
            lines[-1] += "\\"
            lines.append(part)
    return lines


def shown(word: Word, clone: bool) -> str:
    """Write a word of a command line as bash reads it."""
    if not isinstance(word, Path):
        return shlex.quote(word)
    for place in WORK, DATA:
        if word.is_relative_to(place):
            rest = quoted(str(word)[len(str(place)) :])
            return f'"{place}{rest}"'
    if clone and word.is_relative_to(HOME):
        word = word.relative_to(HOME)
    return shlex.quote(str(word))


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


def taken(array: Array) -> str:
    """Write an array's words, in a command."""
    return f'"${{{array.name}[@]}}"'


def show_array(array: Array, clone: bool) -> list[str]:
    """Write the definition of an array, an option's lines filled."""
    units = [[shown(word, clone) for word in unit] for unit in array.units]
    if array.parent:
        units.insert(0, [taken(array.parent)])
    about = comment(array.purpose)
    line = f"{array.name}=({' '.join(word for unit in units for word in unit)})"
    long = [f"{array.name}=(", *fill(INDENT[1:], units, ""), ")"]
    return [*about, *(long if len(line) > WIDTH else [line])]


def show_step(step: Step, array: Array | None, clone: bool) -> list[str]:
    """Write a command, its shared options replaced by their array."""
    head, units = split(step.words)
    parts = [[shown(word, clone)] for word in head[1:]]
    for unit in array.all_units if array else ():
        units.remove(unit)  # once: a repeated option stays
    parts += [[taken(array)]] if array else []
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
        lines += exported(str(variable), str(value))
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
    blocks += [show_array(array, clone) for array in in_definition_order(known)]
    about = "A new folder: nothing of another run shall be taken for this one's"
    makes = ['mkdir -p "$(dirname "$work")"', 'mkdir "$work" "$work/results"']
    blocks.append([*comment(about), *makes])
    for purpose, alike in itertools.groupby(steps, lambda step: step.purpose):
        shown = (show_step(step, known.get(step), clone) for step in alike)
        blocks.append([*comment(purpose), *(line for each in shown for line in each)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"
