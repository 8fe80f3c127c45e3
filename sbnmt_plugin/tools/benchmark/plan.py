"""From the command line to the cases that it asks for."""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from sbnmt_plugin.tools.benchmark import choices, training
from sbnmt_plugin.tools.benchmark.choices import LOW, PARTS, PROCESSES, SLOW
from sbnmt_plugin.tools.benchmark.decoding import BASELINE, TEST_SET, Case
from sbnmt_plugin.tools.benchmark.models import KINDS, SIZES, trained_model
from sbnmt_plugin.tools.benchmark.systems import SYSTEMS, pairs

FLOOR, TRAINING = "floor-", "training-"  # before a type, and a number of processes
Name = tuple[str, str]  # section of benchmark.json, and case


def checked_parts(text: str | None) -> list[str]:
    """``--parts``.

    Raises:
        ValueError: an unknown one.
    """
    parts = list(PARTS) if text is None else text.split(",")
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
        for kind in KINDS:
            trained_model(Path(args.work), kind)
    if not 0 <= args.dropout < 1:
        raise ValueError(f"--dropout must be in [0, 1), but is {args.dropout}")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda needs a GPU, but torch sees none")
    if args.cases is not None and args.parts is not None:
        raise ValueError("--cases names cases of all parts: leave out --parts")
    systems(args)


def systems(args: argparse.Namespace) -> list[tuple[str, str]]:
    """Names of systems and types of numbers; fairseq's in float32 is the first.

    Raises:
        ValueError: an unknown name.
    """
    found = pairs(LOW[args.device])
    if args.systems is None:
        return [system for system in found if system[0] not in SLOW]
    wanted = args.systems.split(",")
    for name in wanted:
        if name not in SYSTEMS:
            raise ValueError(
                f"--systems must be of {', '.join(SYSTEMS)}, but has {name!r}"
            )
    return [BASELINE, *(s for s in found if s[0] in wanted and s != BASELINE)]


def trained(args: argparse.Namespace) -> list[str]:
    """Systems that are trained: the slow ones where they are asked for."""
    asked = (args.systems or "").split(",")
    unwanted = {*SLOW} - {*asked}
    if args.device != "cpu":
        unwanted.add(training.NARROW)
    return [name for name in training.SYSTEMS if name not in unwanted]


def models_name(args: argparse.Namespace) -> str:
    """What the names of decoding's cases begin with."""
    return Path(args.work).resolve().name if args.work else str(args.size)


def grid(args: argparse.Namespace) -> list[Case]:
    """The cases of decoding: along each axis from batch 50, beam 4, 25 tokens."""
    if args.work is not None:
        found = [Case(length=None, beam=4)]
        if args.grid == "full":
            found.append(Case(batch=1, length=None))
            found.append(Case(batch=None, length=None, tokens=args.max_tokens))
        return found
    found = [Case()]
    if args.grid == "full":
        found += [Case(batch=batch) for batch in choices.BATCHES]
        found += [Case(batch=None, tokens=args.max_tokens)]
        found += [Case(length=length) for length in choices.LENGTHS]
        found += [Case(beam=beam) for beam in choices.BEAMS]
    return list(dict.fromkeys(found))


def without_models(args: argparse.Namespace) -> list[tuple[str, Name]]:
    """Part and name of all cases that need no recipe's models."""
    if args.work is not None:
        return []
    types = ("float32", LOW[args.device])
    floors = [("floor", ("floor", f"{FLOOR}{dtype}")) for dtype in types]
    updates = [(p, ("training", f"{TRAINING}{n}")) for p, n in PROCESSES.items()]
    return [*floors, *updates]


def names(args: argparse.Namespace) -> list[Name]:
    """Every case that is asked for.

    Raises:
        ValueError: a name of --cases that no case has.
    """
    models, others = models_name(args), without_models(args)
    if args.cases is None:
        parts = checked_parts(args.parts)
        cases = grid(args) if "decoding" in parts else []
        found = [("decoding", case.name(models)) for case in cases]
        return found + [name for part, name in others if part in parts]
    known = {case: section for _, (section, case) in others}
    chosen = []
    for name in args.cases.split(","):
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
        chosen.append((known.get(name, "decoding"), name))
    return list(dict.fromkeys(chosen))
