"""A run: the cases that the command line asks for, each written when it is done."""

from __future__ import annotations

import argparse
import datetime
import shlex
import sys
from functools import partial
from operator import eq
from pathlib import Path
from statistics import mean, median, quantiles

import torch

from sbnmt_plugin.network.cpu_products import can_pack
from sbnmt_plugin.tools import origin
from sbnmt_plugin.tools.benchmark.cases import LOW, SLOW, Case
from sbnmt_plugin.tools.benchmark.decoding import Station
from sbnmt_plugin.tools.benchmark.models import Spec, trained_model
from sbnmt_plugin.tools.benchmark.results import CASES, FAILED, NAME, Row
from sbnmt_plugin.tools.benchmark.stations import Name, Stations
from sbnmt_plugin.tools.benchmark.systems import SYSTEMS, kinds, pairs
from sbnmt_plugin.tools.machine import commit, machine, versions
from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.scoring import tokenised_bleu
from sbnmt_plugin.tools.unfinished import write_json

WIDE = "float32"
BASELINE = "fairseq", WIDE


def systems(args: argparse.Namespace) -> list[Name]:
    """Return names of systems and types of weights, fairseq's in float32 first.

    Not bfloat16 on a CPU without instructions for it, which is several times slower.

    Raises:
        ValueError: --systems has an unknown name.
    """
    wanted = [name for name in SYSTEMS if name not in SLOW]
    if args.systems is not None:
        wanted = args.systems.split(",")
    for name in wanted:
        if name not in SYSTEMS:
            raise ValueError(
                f"--systems must be of {', '.join(SYSTEMS)}, but has {name!r}: "
                "leave it out"
            )
    found = [s for s in pairs(LOW[args.device]) if s[0] in wanted and s != BASELINE]
    slow = set() if can_pack(torch.bfloat16) else {"bfloat16"}
    return [BASELINE, *(s for s in found if s[1] not in slow)]


def head(args: argparse.Namespace, names: list[Name]) -> Row:
    """Return the beginning of benchmark.json: all but the case on which rows depend.

    Args:
        names: of the systems, whose models a recipe's folder must have.

    Raises:
        ValueError: --device cuda without a GPU.
        FileNotFoundError: --work has no trained models.
    """
    if args.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda needs a GPU, but torch sees none")
    models = args.work or f"{args.size}, {args.vocabulary:,} words"
    wanted = kinds(name for name, _ in names) if args.work else []
    paths = [str(trained_model(Path(args.work), kind)) for kind in wanted]
    return {
        "command": f"sbnmt benchmark {shlex.join(sys.argv[1:])}",
        "date": f"{datetime.date.today()}",
        "commit": commit(),
        "machine": machine(),
        "versions": versions(),
        "spec": f"{models}, {args.device}, {args.threads} threads, "
        f"{args.rounds} rounds",
        origin.MODELS: origin.stamps_of(paths),
    }


def measure(
    args: argparse.Namespace, wanted: list[Case], names: list[Name], result: Row
) -> None:
    """Measure the cases that are missing; each is written when it is done."""
    spec = Spec(args.size, args.vocabulary, args.device, args.work)
    with Stations(partial(Station, spec), names, args.threads) as stations:
        for case in progress(wanted, unit="case"):
            if not any(case.row.items() <= row.items() for row in result[CASES]):
                result[CASES] += run_case(stations, case, args.rounds)
                write_json(Path(args.output) / NAME, result)


def run_case(stations: Stations, case: Case, rounds: int) -> list[Row]:
    """Measure all systems in a case.

    Returns:
        A row per system: medians, and the ratio, with extremes, of speed to
        :data:`BASELINE`, taken round by round; or the reason for which it failed.
    """
    measured = stations.measure(rounds, case)
    scored: dict[Name, Row] = {}
    if case.length is None:
        scored = scores({s: stations.ask(s, "texts") for s in stations.systems})
    baseline = None if BASELINE in stations.failed else measured[BASELINE]
    found = []
    for system, runs in measured.items():
        row = {"system": system[0], "dtype": system[1], **case.row}
        if system in stations.failed:
            row[FAILED] = stations.failed[system]
        else:
            row |= {**summary(runs, baseline), **scored.get(system, {})}
        found.append(row)
    return found


def summary(runs: list[Row], baseline: list[Row] | None) -> Row:
    """Return medians of some rounds, and ratios to the baseline's with extremes."""
    memory = [run["memory"] for run in runs if run["memory"] is not None]
    found = {
        "sentences/s": median(run["sentences"] / run["seconds"] for run in runs),
        "tokens/s": median(run["tokens"] / run["seconds"] for run in runs),
        "seconds": [run["seconds"] for run in runs],
        **({"memory": max(memory)} if memory else {}),
    }
    if baseline is not None:
        ratios = [b["seconds"] / a["seconds"] for a, b in zip(runs, baseline)]
        found |= {
            "ratio": median(ratios),
            "ratio, least": min(ratios),
            "ratio, most": max(ratios),
        }
        if memory:
            other = max(run["memory"] for run in baseline)
            found["memory ratio"] = max(memory) / other
    each = [1000 * one for run in runs for one in run["each"]]
    if len(runs[0]["each"]) == runs[0]["sentences"] > 1:  # batches of one
        found["ms, half"], found["ms, 95 %"] = median(each), quantiles(each, n=20)[-1]
    return found


def scores(texts: dict[Name, tuple[list[str], list[str]] | None]) -> dict[Name, Row]:
    """Return BLEU of each system, and the share of its texts that are float32's.

    Args:
        texts: translations and references, None of a system that has failed.
    """
    found = {}
    for system, own in texts.items():
        if own is not None:
            lines, references = own
            bleu = tokenised_bleu(lines, [references])
            found[system] = {"BLEU": bleu["score"], "signature": bleu["signature"]}
            wide = texts.get((system[0], WIDE))
            if system[1] != WIDE and wide is not None:
                found[system]["as in float32"] = mean(map(eq, lines, wide[0]))
    return found
