"""A run: the cases that are missing, each written when it is done."""

from __future__ import annotations

import argparse
import datetime
import os
import shlex
import sys
from pathlib import Path

from tqdm import tqdm

from sbnmt_plugin.tools import origin
from sbnmt_plugin.tools.benchmark import decoding, floor, training
from sbnmt_plugin.tools.benchmark.choices import FREE
from sbnmt_plugin.tools.benchmark.models import KINDS, Spec, trained_model
from sbnmt_plugin.tools.benchmark.plan import (
    FLOOR,
    TRAINING,
    Name,
    models_name,
    systems,
    trained,
)
from sbnmt_plugin.tools.benchmark.record import ORIGIN, Record, Row
from sbnmt_plugin.tools.recipes.costs import commit, machine, versions


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spec_of(args: argparse.Namespace) -> Spec:
    """Return the properties that the compared models share."""
    return Spec(args.size, args.vocabulary, args.device, args.work)


def head(args: argparse.Namespace) -> Row:
    """Return the beginning of benchmark.json."""
    spec, threads = spec_of(args), args.threads or cores()
    place = {"commit": commit(), "machine": machine(), "versions": versions()}
    models = spec.work or f"{spec.size}, {spec.vocabulary:,} words"
    options = {
        f"--{name.replace('_', '-')}": value
        for name, value in vars(args).items()
        if name not in FREE
    }
    work = spec.work and Path(spec.work)
    paths = [str(trained_model(work, kind)) for kind in KINDS] if work else []
    return {
        "command": f"sbnmt benchmark {shlex.join(sys.argv[1:])}",
        "date": f"{datetime.date.today()}",
        **place,
        "threads": threads,
        "spec": f"{models}, {spec.device}, {threads} threads, {args.rounds} rounds",
        ORIGIN: {
            **options,
            "--threads": threads,
            **place,
            origin.MODELS: origin.stamps_of(paths),
        },
    }


def measure(args: argparse.Namespace, wanted: list[Name], record: Record) -> None:
    """Measure the cases that are missing; each is written when it is done."""
    spec = spec_of(args)
    threads = int(record.result["threads"])
    with decoding.stations_of(spec, systems(args), threads) as stations:

        def rows(section: str, name: str) -> list[Row]:
            if section == "decoding":
                case = decoding.Case.named(name, models_name(args))
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

        bar = tqdm(wanted, unit="case")
        for section, name in bar:
            bar.set_description(name)
            if not record.has(section, name, args.retry):
                record.add(section, name, rows(section, name))
