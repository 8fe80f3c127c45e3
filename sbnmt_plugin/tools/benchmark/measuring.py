"""A run: the cases that the command line asks for, each written when it is done."""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

import torch

from sbnmt_plugin.tools import origin
from sbnmt_plugin.tools.benchmark import choices, decoding, floor, training
from sbnmt_plugin.tools.benchmark.choices import FREE, LOW, PARTS, PROCESSES, SLOW
from sbnmt_plugin.tools.benchmark.decoding import BASELINE, TEST_SET, Case
from sbnmt_plugin.tools.benchmark.models import KINDS, Spec, trained_model
from sbnmt_plugin.tools.benchmark.results import ORIGIN, Record, Row
from sbnmt_plugin.tools.benchmark.systems import SYSTEMS, pairs
from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.recipes.costs import commit, machine, versions

FLOOR, TRAINING = "floor-", "training-"  # before a type, and a number of processes
Name = tuple[str, str]  # section of benchmark.json, and case


def listed(flag: str, value: str | None, known: Iterable[str]) -> list[str]:
    """Return the names of an option, which commas join; all of them without it.

    Raises:
        ValueError: an unknown one.
    """
    known = list(known)
    names = known if value is None else value.split(",")
    for name in names:
        if name not in known:
            raise ValueError(
                f"{flag} must be of {', '.join(known)}, but has {name!r}: leave it out"
            )
    return names


def check(args: argparse.Namespace) -> None:
    """Refuse options by which nothing can be measured.

    Raises:
        ValueError: with the option.
        FileNotFoundError: --work has no trained models.
    """
    if args.work is not None:
        for kind in KINDS:
            trained_model(Path(args.work), kind)
    if not 0 <= args.dropout < 1:
        raise ValueError(f"--dropout must be in [0, 1), but is {args.dropout}")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda needs a GPU, but torch sees none")
    if args.cases is not None and args.parts is not None:
        raise ValueError("--cases names cases of all parts: leave out --parts")
    listed("--systems", args.systems, SYSTEMS)


def systems(args: argparse.Namespace) -> list[tuple[str, str]]:
    """Return names of systems and types of weights, fairseq's in float32 first."""
    wanted = listed("--systems", args.systems, SYSTEMS)
    if args.systems is None:
        wanted = [name for name in wanted if name not in SLOW]
    found = pairs(LOW[args.device])
    return [BASELINE, *(s for s in found if s[0] in wanted and s != BASELINE)]


def trained(args: argparse.Namespace) -> list[str]:
    """Return the systems to train, the slow ones where they are asked for."""
    unwanted = {*SLOW} - {*(args.systems or "").split(",")}
    if args.device != "cpu":
        unwanted.add(training.BFLOAT16)
    return [name for name in training.SYSTEMS if name not in unwanted]


def models_name(args: argparse.Namespace) -> str:
    """Return the beginning of the names of decoding's cases."""
    return Path(args.work).resolve().name if args.work else str(args.size)


def grid(args: argparse.Namespace) -> list[Case]:
    """Return decoding's cases: along each axis from batch 50, beam 4, 25 tokens."""
    length = None if args.work else 25
    found = [Case(length=length)]
    if args.grid == "full":
        found += [Case(batch, length) for batch in choices.BATCHES]
        found += [Case(None, length, tokens=args.max_tokens)]
    if args.grid == "full" and not args.work:
        found += [Case(length=length) for length in choices.LENGTHS]
        found += [Case(beam=beam) for beam in choices.BEAMS]
    return list(dict.fromkeys(found))


def without_models(args: argparse.Namespace) -> list[tuple[str, Name]]:
    """Return part and name of all cases that need no recipe's models."""
    if args.work is not None:
        return []
    types = ("float32", LOW[args.device])
    floors = [("floor", ("floor", f"{FLOOR}{dtype}")) for dtype in types]
    updates = [(p, ("training", f"{TRAINING}{n}")) for p, n in PROCESSES.items()]
    return [*floors, *updates]


def names(args: argparse.Namespace) -> list[Name]:
    """Return every case that is asked for.

    Raises:
        ValueError: a name of --cases that no case has.
    """
    models, others = models_name(args), without_models(args)
    if args.cases is None:
        parts = listed("--parts", args.parts, PARTS)
        cases = grid(args) if "decoding" in parts else []
        found = [("decoding", case.name(models)) for case in cases]
        return found + [name for part, name in others if part in parts]
    known = {case: section for _, (section, case) in others}
    chosen = args.cases.split(",")
    for name in chosen:
        if name not in known:
            try:
                case = Case.named(name, models)
            except ValueError as error:
                other = f", or one of {', '.join(known)}" * bool(known)
                raise ValueError(f"--cases: {error}{other}") from error
            if (case.length is None) != (args.work is not None):
                raise ValueError(
                    f"--cases: the length in {name} must be {TEST_SET} with --work, "
                    "and a number without"
                )
    return [(known.get(name, "decoding"), name) for name in dict.fromkeys(chosen)]


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def head(args: argparse.Namespace) -> Row:
    """Return the beginning of benchmark.json."""
    threads = args.threads or cores()
    place = {"commit": commit(), "machine": machine(), "versions": versions()}
    models = args.work or f"{args.size}, {args.vocabulary:,} words"
    options = {
        f"--{name.replace('_', '-')}": value
        for name, value in vars(args).items()
        if name not in FREE
    }
    kinds = KINDS if args.work else ()
    paths = [str(trained_model(Path(args.work), kind)) for kind in kinds]
    return {
        "command": f"sbnmt benchmark {shlex.join(sys.argv[1:])}",
        "date": f"{datetime.date.today()}",
        **place,
        "threads": threads,
        "spec": f"{models}, {args.device}, {threads} threads, {args.rounds} rounds",
        ORIGIN: {
            **options,
            "--threads": threads,
            **place,
            origin.MODELS: origin.stamps_of(paths),
        },
    }


def measure(args: argparse.Namespace, wanted: list[Name], record: Record) -> None:
    """Measure the cases that are missing; each is written when it is done."""
    spec = Spec(args.size, args.vocabulary, args.device, args.work)
    threads = int(record.result["threads"])
    with decoding.stations_of(spec, systems(args), threads) as stations:

        def rows(section: str, name: str) -> list[Row]:
            if section == "decoding":
                case = Case.named(name, models_name(args))
                return decoding.run_case(stations, case, args.rounds)
            stations.close()  # they take memory and time
            if section == "floor":
                return floor.run_case(spec, name.removeprefix(FLOOR), threads)
            update = training.Case(
                args.sentences,
                processes=int(name.removeprefix(TRAINING)),
                updates=args.updates,
            )
            return training.run_case(
                *(spec, update, trained(args), args.dropout, args.rounds, threads)
            )

        bar = progress(wanted, unit="case")
        for section, name in bar:
            bar.set_description(name)
            if not record.has(section, name, args.retry):
                record.add(section, name, rows(section, name))
