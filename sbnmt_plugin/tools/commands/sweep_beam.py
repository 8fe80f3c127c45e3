r"""Decode a test set with several beam sizes (Figure 8), skipping what is done.

    sbnmt sweep-beam --data data --reference text/test.tgt --output sweep.json \
        --system "L2R=--path l2r/model.pt --sb-direction l2r" \
        --system "R2L=--path r2l/model.pt --sb-direction r2l" \
        --system "SB-NMT=--path sb/model.pt" \
        [--beams 1,2,4,8,16] [options of fairseq-generate, as --lenpen 0.6]
    sbnmt sweep-beam --work work/toy          # systems and options of a recipe's run
    sbnmt sweep-beam --work work/toy --rows sb-lambda0+rescored sb sb+rescored

    # choose each system's length penalty on the validation set, then test with it
    sbnmt sweep-beam --work work/toy --rows sb transformer-pl --gen-subset valid \
        --beams 4 --lenpens 0.6,1,1.5,2 --output valid.json
    sbnmt sweep-beam --work work/toy --rows sb transformer-pl --chosen-by valid.json \
        --output test.json

A beam counts the hypotheses of both directions, so SB-NMT has no beam of 1 and no odd
one.  BLEU is the paper's, on tokens; --reference is tokenised text, and may be given
several times.  With --phonemes a line is a word, and there are error rates, too.
--chosen-by takes of each system only the beam and length penalty that were best in that
sweep, seeds together.  Each finished run is kept in OUTPUT.runs; interrupt and repeat
at will.  sbnmt report --beam-sweep draws it.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.launch import gives
from sbnmt_plugin.tools.recipes.row_names import (
    OURS,
    is_rescored,
    reads_table,
    rows,
    split_name,
    system_and_seed,
)
from sbnmt_plugin.tools.recipes.settings import search_options, trainings
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.systems.system import BOTH
from sbnmt_plugin.tools.recipes.systems.two_way import MULTILINGUAL
from sbnmt_plugin.tools.recipes.work_folder import read_recipe
from sbnmt_plugin.tools.report.work import languages
from sbnmt_plugin.tools.results.sweep import Setting, Sweep, render_sweep
from sbnmt_plugin.tools.results.sweep_runs import decoded
from sbnmt_plugin.tools.text import refuse_overwriting

BEAMS = "1,2,4,8,16"
SB = "SB-NMT"
SET_HERE = ("--beam", "--results-path", "--nbest", "--sb-records", "--sb-trace")


def parse_systems(values: list[str]) -> dict[str, list[str]]:
    """``NAME=OPTIONS`` as name -> words.

    Raises:
        ValueError: another form, a name twice, or an option that is set here.
    """
    found: dict[str, list[str]] = {}
    for value in values:
        name, equals, words = value.partition("=")
        if not (name and equals and words.strip()) or name.startswith("-"):
            raise ValueError(f"--system must be NAME=OPTIONS, but is {value!r} instead")
        if system_and_seed(name) in map(system_and_seed, found):
            raise ValueError(f"--system {name} must be given once, but comes twice")
        found[name] = shlex.split(words)
        if not gives(found[name], "--path"):
            raise ValueError(f"--system {name} must have --path, but has none")
        refuse_own(found[name])
    return found


def refuse_own(words: list[str], flags: Sequence[str] = SET_HERE) -> None:
    """Refuse options that the sweep itself sets.

    Raises:
        ValueError: with the flag.
    """
    for flag in flags:
        if gives(words, flag):
            raise ValueError(f"{flag} is set by the sweep: leave it out")


def without(words: list[str], flag: str) -> list[str]:
    """Options of a recipe, which gives each as two words, but for one."""
    if flag not in words:
        return words
    place = words.index(flag)
    return words[:place] + words[place + 2 :]


def parse_beams(text: str) -> list[int]:
    """``1,2,4`` as numbers.

    Raises:
        ValueError: something else.
    """
    words = text.split(",")
    if not all(re.fullmatch(r"\s*0*[1-9][0-9]*\s*", word) for word in words):
        raise ValueError(f"--beams must be numbers ≥ 1 like {BEAMS}, but is {text!r}")
    return sorted({int(word) for word in words})


def directions(words: list[str]) -> int:
    """How many directions a system's options search."""
    joined = " ".join(words).replace("=", " ")
    return 1 if re.search(r"--sb-direction (l2r|r2l)\b", joined) else 2


def parse_lenpens(text: str) -> list[float]:
    """``0.6,1,1.5`` as numbers.

    Raises:
        ValueError: something else.
    """
    words = [word.strip() for word in text.split(",")]
    # as they come back from the name of a folder
    if not all(re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})?", word) for word in words):
        raise ValueError(
            "--lenpens must be numbers ≥ 0 of at most three decimals like 0.6,1,1.5, "
            f"but is {text!r}"
        )
    return sorted({float(word) for word in words})


def plan(
    systems: dict[str, list[str]],
    beams: list[int],
    lenpens: Sequence[float | None] = (None,),
) -> list[tuple[str, Setting]]:
    """The runs: each system with each beam that its directions divide.

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


def planned(
    args: argparse.Namespace, systems: dict[str, list[str]], before: Sweep | None
) -> list[tuple[str, Setting]]:
    """The runs that the user has asked for.

    Args:
        before: of ``--chosen-by``.

    Raises:
        ValueError: what excludes each other; a value.
    """
    if before is None:
        beams = parse_beams(BEAMS if args.beams is None else args.beams)
        if args.lenpens is None:
            return plan(systems, beams)
        return plan(systems, beams, parse_lenpens(args.lenpens))
    if args.beams is not None or args.lenpens is not None:
        raise ValueError(
            "--chosen-by gives each system its beam and length penalty: leave out "
            "--beams and --lenpens"
        )
    try:
        return chosen(before, systems)
    except ValueError as error:
        raise ValueError(f"--chosen-by {args.chosen_by}: {error}") from error


def chosen(sweep: Sweep, systems: dict[str, list[str]]) -> list[tuple[str, Setting]]:
    """Each system as it was best, its seeds together.

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


def refuse_other_options(path: str, before: Sweep, others: list[str]) -> None:
    """Refuse a sweep whose searches had other options than those that follow it.

    Raises:
        ValueError: with both.
    """
    if before.options not in (None, others):
        had = shlex.join(before.options or []) or "none"
        raise ValueError(
            f"--chosen-by {path} must be of searches with the same options, "
            f"{shlex.join(others) or 'none'}, but had {had}"
        )


def row_options(work: Path, settings: dict[str, Any], name: str) -> list[str]:
    """What tells a recipe's row from others in the search.

    Raises:
        FileNotFoundError: it is not trained.
        ValueError: there is no such row.
    """
    base, _ = split_name(name)
    if not SYSTEMS[base].data:
        raise ValueError(f"--rows {name} has no model of its own: leave it out")
    system = SYSTEMS[base]
    own = system.back or system.decode or reads_table(base)
    if own or system.data == MULTILINGUAL:
        raise ValueError(
            f"--rows {name} is decoded with data or options of its own: leave it out, "
            "and give them as --data and --system"
        )
    (trained,) = trainings(settings, name)
    path, direction = work / trained / "model.pt", SYSTEMS[base].direction
    if not path.is_file():
        raise FileNotFoundError(
            f"--rows {name} needs {path}, which is not there: sbnmt recipe "
            f"with --rows {trained} trains it"
        )
    words = ["--path", str(path)]
    if direction != BOTH:
        both = SYSTEMS[split_name(trained)[0]].direction == BOTH
        words += ["--sb-answer" if both else "--sb-direction", direction]
    if is_rescored(name):
        words += ["--sb-rescore", str(settings["rescore"])]
    return words


def from_work(args: argparse.Namespace) -> list[str]:
    """Fill in what the user did not give from a recipe's folder.

    Returns:
        The recipe's options of fairseq-generate.

    Raises:
        FileNotFoundError: it is not one that is finished.
    """
    work = Path(args.work)
    target = languages(work)[1]
    args.data = args.data or str(work / "data")
    remedy = "give a folder that the step recipe has filled"
    settings = read_recipe(work / "recipe.json", remedy)
    words = search_options(settings)
    scored = settings["score"]
    args.phonemes = args.phonemes or scored["phonemes"]
    args.lowercase = args.lowercase or scored["lowercase"]
    if not args.reference:
        given = References(work / "text", target, scored["references"])
        first, *further = given.files(args.gen_subset)
        if args.gen_subset != "test":  # which may have fewer
            further = [path for path in further if path.is_file()]
        args.reference = [str(path) for path in (first, *further)]
    swept = [("chosen", args.chosen_by), ("lenpen", args.lenpens), ("beam", "always")]
    kind = next(kind for kind, asked in swept if asked is not None)
    args.output = args.output or str(work / f"{kind}-sweep.json")
    for name in rows(args.rows):
        args.system.append(f"{name}={shlex.join(row_options(work, settings, name))}")
    if not args.system:
        ours = [row for row in OURS if (work / row / "model.pt").is_file()][:1]
        teachers = [("L2R", "teacher-l2r"), ("R2L", "teacher-r2l")]
        for title, row in [*teachers, *((SB, row) for row in ours)]:
            if (work / row / "model.pt").is_file():
                found = row_options(work, settings, row)
                args.system.append(f"{title}={shlex.join(found)}")
    return words


def parser() -> argparse.ArgumentParser:
    made = command.parser(__doc__, allow_abbrev=False)
    add = made.add_argument
    # no positional argument: it would take the value of an option of fairseq's
    add("--data", help="binarised data, as for fairseq-generate")
    add("--work", help="folder of sbnmt recipe, instead of all others")
    add("--system", action="append", default=[], metavar="NAME=OPTIONS")
    add("--rows", nargs="+", default=[], metavar="ROW", help="of --work, as systems")
    add("--reference", action="append", default=[], help="tokenised; may be repeated")
    add("--phonemes", action="store_true", help="error rates, too")
    add("--lowercase", action="store_true", help="BLEU ignores case")
    add("--beams", help=f"default {BEAMS}")
    add("--lenpens", help="length penalties, as 0.6,1,1.5: every beam with each")
    add("--chosen-by", metavar="FILE", help="a sweep: its best, instead of these two")
    add("--gen-subset", default="test")
    add(
        "--output",
        help="JSON file to write; rewritten when more is decoded (default: in WORK "
        "beam-sweep.json, lenpen-sweep.json with --lenpens, chosen-sweep.json)",
    )
    return made


def main() -> None:
    args, others = parser().parse_known_args()
    refuse_own(others)
    if args.rows and args.work is None:
        raise ValueError(
            "--rows are those of a recipe's run: give its folder as --work"
        )
    own = others
    if args.work is not None:
        others = [*from_work(args), *others]  # the user's come last and win
    for flag in ("data", "system", "reference", "output"):
        if not getattr(args, flag):
            raise ValueError(f"--{flag} must be given, or --work with a recipe's run")
    systems = parse_systems(args.system)
    given = args.chosen_by is not None
    before = Sweep.of_file(Path(args.chosen_by)) if given else None
    runs = planned(args, systems, before)
    if any(setting.lenpen is not None for _, setting in runs):
        for words in own, *systems.values():
            refuse_own(words, ("--lenpen",))
    # the sweep's come last and win; without them a file says what all searches had
    for flag in {word for _, setting in runs for word in setting.words[::2]}:
        others = without(others, flag)
    if before is not None:
        refuse_other_options(args.chosen_by, before, others)
    refuse_overwriting(args.output, args.chosen_by, *args.reference)
    print(render_sweep(decoded(args, systems, runs, others)), end="")
