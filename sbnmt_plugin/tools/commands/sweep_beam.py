r"""Decode a test set with several beam sizes (Figure 8), skipping what is done.

    sbnmt sweep-beam --data data --reference text/test.tgt --output sweep.json \
        --system "L2R=--path l2r/model.pt --sb-direction l2r" \
        --system "R2L=--path r2l/model.pt --sb-direction r2l" \
        --system "SB-NMT=--path sb/model.pt" \
        [--beams 1,2,4,8,16] [options of fairseq-generate, as --lenpen 0.6]
    sbnmt sweep-beam --work work/toy          # systems and options of a recipe's run
    sbnmt sweep-beam --work work/toy --rows sb-lambda0+rescored sb sb+rescored

A beam counts the hypotheses of both directions, so SB-NMT has no beam of 1 and no odd
one.  BLEU is the paper's, on tokens; --reference is tokenised text, and may be given
several times.  With --phonemes a line is a word, and there are error rates, too.  Each
finished run is kept in OUTPUT.runs; interrupt and repeat at will.  sbnmt report
--beam-sweep draws it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from sbnmt_plugin.steps import PLUGIN, command_of
from sbnmt_plugin.tools import command, origin
from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.launch import gives
from sbnmt_plugin.tools.phonemes import error_rates
from sbnmt_plugin.tools.recipes.row_names import (
    OURS,
    is_rescored,
    rows,
    split_name,
    system_and_seed,
    trained_as,
)
from sbnmt_plugin.tools.recipes.settings import search_options
from sbnmt_plugin.tools.recipes.systems import BOTH, SYSTEMS
from sbnmt_plugin.tools.recipes.table import render_sweep
from sbnmt_plugin.tools.recipes.work_folder import read_recipe
from sbnmt_plugin.tools.report.logs import read_generate_log
from sbnmt_plugin.tools.report.work import languages
from sbnmt_plugin.tools.scoring import tokenised_bleu
from sbnmt_plugin.tools.text import as_written, read_lines, remove_bpe
from sbnmt_plugin.tools.translations import read_generated
from sbnmt_plugin.tools.unfinished import new_file

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


def refuse_own(words: list[str]) -> None:
    """Refuse options that the sweep itself sets.

    Raises:
        ValueError: with the flag.
    """
    for flag in SET_HERE:
        if gives(words, flag):
            raise ValueError(f"{flag} is set by the sweep: leave it out")


def parse_beams(text: str) -> list[int]:
    """``1,2,4`` as numbers.

    Raises:
        ValueError: something else.
    """
    words = text.split(",")
    if not all(word.strip().isdigit() and int(word) > 0 for word in words):
        raise ValueError(f"--beams must be numbers ≥ 1 like {BEAMS}, but is {text!r}")
    return sorted({int(word) for word in words})


def directions(words: list[str]) -> int:
    """How many directions a system's options search."""
    joined = " ".join(words).replace("=", " ")
    return 1 if re.search(r"--sb-direction (l2r|r2l)\b", joined) else 2


def plan(systems: dict[str, list[str]], beams: list[int]) -> list[tuple[str, int]]:
    """The runs: each system with each beam that its directions divide.

    Raises:
        ValueError: there are none.
    """
    found = [
        (name, beam)
        for name, words in systems.items()
        for beam in beams
        if beam % directions(words) == 0
    ]
    if not found:
        raise ValueError(
            "--beams must have an even number for models of both directions, but has "
            f"{', '.join(map(str, beams))}: add 2"
        )
    return found


def row_options(work: Path, settings: dict[str, Any], name: str) -> list[str]:
    """What tells a recipe's row from others in the search.

    Raises:
        FileNotFoundError: it is not trained.
        ValueError: there is no such row.
    """
    base, _ = split_name(name)
    if not SYSTEMS[base].data:
        raise ValueError(f"--rows {name} has no model of its own: leave it out")
    path, direction = work / trained_as(name) / "model.pt", SYSTEMS[base].direction
    if not path.is_file():
        raise FileNotFoundError(
            f"--rows {name} needs {path}, which is not there: {command_of('recipe')} "
            f"with --rows {trained_as(name)} trains it"
        )
    words = ["--path", str(path)]
    if direction != BOTH:
        words += ["--sb-direction", direction]
    if is_rescored(name):
        words += ["--sb-rescore", str(settings["rescore"])]
    return words


def from_work(args: argparse.Namespace) -> list[str]:
    """Fill in what the user did not give from a recipe's folder.

    Returns:
        The recipe's options of fairseq-generate, the beam left out.

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
    args.phonemes, args.lowercase = scored["phonemes"], scored["lowercase"]
    if not args.reference:
        given = References(work / "text", target, scored["references"])
        args.reference = [str(path) for path in given.files()]
    args.output = args.output or str(work / "beam-sweep.json")
    for name in rows(args.rows):
        args.system.append(f"{name}={shlex.join(row_options(work, settings, name))}")
    if not args.system:
        ours = [row for row in OURS if (work / row / "model.pt").is_file()][:1]
        teachers = [("L2R", "teacher-l2r"), ("R2L", "teacher-r2l")]
        for title, row in [*teachers, *((SB, row) for row in ours)]:
            if (work / row / "model.pt").is_file():
                found = row_options(work, settings, row)
                args.system.append(f"{title}={shlex.join(found)}")
    if "--beam" in words:
        place = words.index("--beam")
        del words[place : place + 2]
    return words


def decode(folder: Path, words: list[str]) -> dict[str, float]:
    """Run fairseq-generate.

    Returns:
        Its own measurement of speed.

    Raises:
        ValueError: it failed; with the end of its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    with open(log, "w", encoding="utf-8") as file:
        status = subprocess.run(
            command.tied([sys.executable, "-m", "fairseq_cli.generate", *words]),
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **command.child_environment()},
        ).returncode
    text = log.read_text(encoding="utf-8", errors="replace").splitlines()
    speed = read_generate_log(text)
    if speed is None:  # it measures when all is written
        raise ValueError(
            f"fairseq-generate failed with status {status}, its log {log} ends with\n"
            + "\n".join(text[-8:])
        )
    return speed


def one_run(
    folder: Path, words: list[str], args: argparse.Namespace, given: list[list[str]]
) -> dict[str, Any]:
    """Decode and score.

    Args:
        words: of fairseq-generate.
        args: how it is scored.
        given: lines of each reference.

    Raises:
        ValueError: outputs and references differ in number.
    """
    speed = decode(folder, [*words, "--results-path", str(folder)])
    found = read_generated(folder / f"generate-{args.gen_subset}.txt")
    tokens = [remove_bpe(text) for _, text in sorted(found.items())]
    for text in given:
        if len(text) != len(tokens):
            raise ValueError(
                f"--reference must have as many lines as {args.gen_subset} has "
                f"sentences ({len(tokens)}), but has {len(text)}"
            )
    scored = tokenised_bleu(tokens, given, args.lowercase)
    rates = error_rates(tokens, given) if args.phonemes else {}
    return {
        "BLEU": scored["score"],
        "signature": scored["signature"],
        **{name: rate["score"] for name, rate in rates.items()},
        "mean length": sum(len(line.split()) for line in tokens) / len(tokens),
        "sentences/s": speed["sentences/s"],
    }


def parser() -> argparse.ArgumentParser:
    made = command.parser(__doc__, allow_abbrev=False)
    add = made.add_argument
    # no positional argument: it would take the value of an option of fairseq's
    add("--data", help="binarised data, as for fairseq-generate")
    add("--work", help=f"folder of {command_of('recipe')}, instead of all others")
    add("--system", action="append", default=[], metavar="NAME=OPTIONS")
    add("--rows", nargs="+", default=[], metavar="ROW", help="of --work, as systems")
    add("--reference", action="append", default=[], help="tokenised; may be repeated")
    add("--phonemes", action="store_true", help="error rates, too")
    add("--lowercase", action="store_true", help="BLEU ignores case")
    add("--beams", default=BEAMS, help=f"default {BEAMS}")
    add("--gen-subset", default="test")
    add("--output", help="JSON file to write; rewritten when more is decoded")
    return made


def main() -> None:
    args, others = parser().parse_known_args()
    refuse_own(others)
    if args.rows and args.work is None:
        raise ValueError(
            "--rows are those of a recipe's run: give its folder as --work"
        )
    if args.work is not None:
        others = [*from_work(args), *others]  # the user's come last and win
    for flag in ("data", "system", "reference", "output"):
        if not getattr(args, flag):
            raise ValueError(f"--{flag} must be given, or --work with a recipe's run")
    systems, beams = parse_systems(args.system), parse_beams(args.beams)
    references = [read_lines(path) for path in args.reference]
    common = [args.data, "--user-dir", str(PLUGIN), "--task", "sb_translation"]
    common += ["--gen-subset", args.gen_subset, *others]
    runs = []
    for name, beam in tqdm(plan(systems, beams), desc="decoding", unit="run"):
        words = [*common, *systems[name], "--beam", str(beam)]
        place = list(systems).index(name)
        folder = Path(f"{args.output}.runs") / f"{place}-beam-{beam}"
        result = folder / "result.json"
        job = {
            "name": name,
            "options": words,
            "references": args.reference,
            "reference sha256": origin.sha256_of(*references),
            **{name: True for name in ("phonemes", "lowercase") if getattr(args, name)},
            origin.MODELS: origin.stamps_of(words),
        }
        done, other = None, []
        if result.exists():
            with as_written(result, "remove it to decode anew"):
                done = json.loads(result.read_text(encoding="utf-8"))
                other = origin.differences(done.pop("job"), job)
        if other:
            raise ValueError(
                f"{folder} was decoded with {', '.join(other)}: remove "
                f"{args.output}.runs to decode anew, or repeat the first command"
            )
        if done is None:
            done = one_run(folder, words, args, references)
            with new_file(result) as file:
                json.dump({"job": job, **done}, file, indent=1)
        runs.append({"system": name, "beam": beam, **done})
        with new_file(args.output) as file:
            json.dump({"runs": runs}, file, ensure_ascii=False, indent=1)
    print(render_sweep({"runs": runs}), end="")
