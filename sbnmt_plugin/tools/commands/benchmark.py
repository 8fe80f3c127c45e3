"""Time SB-NMT beside stock fairseq's Transformer, in turn and on the same batches.

    sbnmt benchmark --output work/benchmark                  decoding and training
    sbnmt benchmark --output work/benchmark --device cuda    the same on a GPU
    sbnmt benchmark --output work/benchmark --work work/toy  a recipe's models

Without --work the models have random weights, and every hypothesis is made to have as
many tokens as the source, so that all searches run the same number of steps; with it
the recipe's test set is translated as usual, and BLEU stands beside the speed.  Every
system is a process of its own; within a case they take turns, and ratios to fairseq
are taken round by round.  A first run of each is not counted.

OUTPUT receives benchmark.json, benchmark.md and, where the plots have more than one
point, benchmark.svg and .png.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from sbnmt_plugin.steps import command_of
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.costs import commit, machine, versions
from sbnmt_plugin.tools.text import new_file, write_lines

PARTS = ("decoding", "floor", "training", "processes")
GRIDS = ("headline", "full")
LENGTHS = (10, 25, 50, 100)
BEAMS = (2, 4, 8, 16, 32)
BATCHES = (1, 50)
LOW = {"cpu": "bfloat16", "cuda": "float16"}  # the device's fast type


def parser() -> argparse.ArgumentParser:
    made = command.parser(__doc__, allow_abbrev=False)
    add = made.add_argument
    add("--output", required=True, help="folder for what is measured")
    add("--parts", default=",".join(PARTS), help=f"default {','.join(PARTS)}")
    add("--grid", choices=GRIDS, default="full", help="how many cases of decoding")
    add("--size", default="base", help="tiny, small, base (default) or big")
    add("--vocabulary", type=int, default=32000, help="words; default 32,000")
    add("--device", choices=sorted(LOW), default="cpu")
    add("--work", help="recipe's folder, whose models and test set are used")
    add("--systems", help="names of systems, joined by commas; default: all")
    add("--rounds", type=int, default=5, help="timed runs of a case; default 5")
    add("--threads", type=int, help="of a process; default: all cores")
    add("--max-tokens", type=int, default=4096, help="of one case; default 4096")
    add("--sentences", type=int, default=32, help="of a training update; default 32")
    add("--updates", type=int, default=1, help="that are timed together; default 1")
    add("--dropout", type=float, default=0.1, help="in training; default 0.1")
    return made


def checked_parts(text: str) -> list[str]:
    """``--parts``.

    Raises:
        ValueError: an unknown one.
    """
    parts = text.split(",")
    for part in parts:
        if part not in PARTS:
            raise ValueError(
                f"--parts must be of {', '.join(PARTS)}, but has {part!r}: leave it out"
            )
    return parts


def check(args: argparse.Namespace) -> None:
    """Refuse what nothing can be measured with.

    Raises:
        ValueError: with the option.
        FileNotFoundError: a --work without trained models.
    """
    from sbnmt_plugin.layout import NAMES
    from sbnmt_plugin.tools.benchmark.models import SIZES, trained_model

    if args.size not in SIZES:
        raise ValueError(
            f"--size must be one of {', '.join(SIZES)}, but is {args.size} instead"
        )
    for name in ("vocabulary", "rounds", "max_tokens", "sentences", "updates"):
        if getattr(args, name) < 1:
            raise ValueError(
                f"--{name.replace('_', '-')} must be ≥ 1, but is {getattr(args, name)}"
            )
    if args.threads is not None and args.threads < 1:
        raise ValueError(f"--threads must be ≥ 1, but is {args.threads}")
    if args.work is not None:
        for kind in ("both", *NAMES):
            trained_model(Path(args.work), kind)
    if not 0 <= args.dropout < 1:
        raise ValueError(f"--dropout must be in [0, 1), but is {args.dropout}")
    if args.device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise ValueError("--device cuda needs a GPU, but torch sees none")


def systems(args: argparse.Namespace) -> list[tuple[str, str]]:
    """Names of systems and types of numbers; fairseq's in float32 is the first.

    Raises:
        ValueError: an unknown name.
    """
    from sbnmt_plugin.tools.benchmark.decoding import BASELINE
    from sbnmt_plugin.tools.benchmark.systems import available

    found = available(LOW[args.device])
    if args.systems is None:
        return found
    wanted = args.systems.split(",")
    names = {name for name, _ in found}
    for name in wanted:
        if name not in names:
            raise ValueError(
                f"--systems must be of {', '.join(sorted(names))}, but has {name!r}"
            )
    return [BASELINE, *(s for s in found if s[0] in wanted and s != BASELINE)]


def cases(args: argparse.Namespace) -> list[Any]:
    """The cases of decoding: along each axis from batch 50, beam 4, 25 tokens."""
    from sbnmt_plugin.tools.benchmark.decoding import Case

    if args.work is not None:
        grid = [Case(length=None, beam=4)]
        if args.grid == "full":
            grid.append(Case(batch=None, length=None, tokens=args.max_tokens))
        return grid
    grid = [Case()]
    if args.grid == "full":
        grid += [Case(batch=batch) for batch in BATCHES]
        grid += [Case(batch=None, tokens=args.max_tokens)]
        grid += [Case(length=length) for length in LENGTHS]
        grid += [Case(beam=beam) for beam in BEAMS]
    return list(dict.fromkeys(grid))


def measure(args: argparse.Namespace, parts: list[str]) -> dict[str, Any]:
    """All that was asked for."""
    from sbnmt_plugin.tools.benchmark import decoding, training
    from sbnmt_plugin.tools.benchmark.models import Spec
    from sbnmt_plugin.tools.benchmark.workers import Worker

    spec = Spec(args.size, args.vocabulary, args.device, args.work)
    threads = args.threads or len(os.sched_getaffinity(0))
    result: dict[str, Any] = {
        "command": shlex.join([command_of("benchmark"), *sys.argv[1:]]),
        "commit": commit(),
        "date": f"{datetime.date.today()}",
        "machine": machine(),
        "versions": versions(),
        "threads": threads,
        "spec": f"{spec.work or spec.size}"
        + ("" if spec.work else f", {spec.vocabulary:,} words")
        + f", {spec.device}, {threads} threads, {args.rounds} rounds",
    }
    if "decoding" in parts:
        result["decoding"] = decoding.run_cases(
            spec, cases(args), systems(args), args.rounds, threads
        )
    if "floor" in parts and args.work is None:
        case = decoding.Case()
        size = case.sentences, case.length, case.beam
        result["floor"] = []
        for dtype in ("float32", LOW[args.device]):
            with Worker(
                "sbnmt_plugin.tools.benchmark.floor:Floor", (spec, dtype), threads
            ) as worker:
                found = {"dtype": dtype, **worker.ask("measure", *size)}
            result["floor"].append(found)
        decoding.compare_with_floor(result)
    for part, processes in ("training", 1), ("processes", 2):
        if part in parts and args.work is None:
            update = training.Case(
                args.sentences, processes=processes, updates=args.updates
            )
            rows = training.run_case(spec, update, args.dropout, args.rounds, threads)
            result["training"] = [*result.get("training", []), *rows]
    return result


def main() -> None:
    args = parser().parse_args()
    parts = checked_parts(args.parts)
    check(args)
    from sbnmt_plugin.tools.benchmark.results import cost_figure, markdown

    result = measure(args, parts)
    output = Path(args.output)
    with new_file(output / "benchmark.json") as file:
        json.dump(result, file, indent=1, ensure_ascii=False)
    lines = markdown(result)
    write_lines(output / "benchmark.md", lines)
    figure = cost_figure(result.get("decoding", []))
    if figure is not None:
        for kind in ("svg", "png"):
            with new_file(output / f"benchmark.{kind}", "wb") as file:
                file.write(getattr(figure, kind))
    print("\n".join(lines))
