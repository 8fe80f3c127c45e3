r"""Kill the other steps, flood them, feed them garbage; nothing may be lost.

    python -m campaign faults --output ../work/campaign --kills 60
    python -m campaign fuzz --output work/campaign --minutes 15
    python -m campaign soak --output work/campaign --lines 100000
    python -m campaign scale --output work/campaign --largest 1000000

`faults` kills the recipe driver, the translation by two workers, binarise, a training
and the benchmark, on a tiny corpus, by SIGKILL, SIGTERM and SIGINT at random moments,
repeats each command until it is done, and compares its files with those of a run that
nobody disturbed.  Then disks are full, folders read-only, files vanish, a second driver
comes, the clock is set back.  `fuzz` feeds changed texts, data folders and records to
what reads them: an error that says what is wrong, or the same result, never another.
`soak` sends lines of all lengths and many scripts through fairseq-interactive, through
translate() of the Python interface and through sbnmt translate: one answer a line, in
order, in the same memory.  `scale` finds nothing: it measures what steps cost at a
hundredth of the LARGEST number of lines, at a tenth, at all.

OUTPUT receives faults.json, fuzz.json, soak.json or scale.json; the exit status is 1
where anything was found.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import Any

from campaign.outcome import Outcome
from sbnmt_plugin.tools import command

# of all kills
SHARES = {
    "recipe": 0.35,
    "pseudo": 0.2,
    "binarise": 0.15,
    "training": 0.2,
    "benchmark": 0.1,
}
ACCIDENTS = "accidents"
# options of one kind alone, with their defaults
OWN: dict[str, dict[str, Any]] = {
    "faults": {"kills": 60, "subjects": (*SHARES, ACCIDENTS)},
    "fuzz": {"minutes": 1.0},
    "soak": {"lines": 100_000},
    "scale": {"largest": 1_000_000},
}


def parse() -> argparse.Namespace:
    parser = command.parser(__doc__)
    parser.add_argument("kind", choices=OWN)
    parser.add_argument("--output", required=True, help="new folder to work in")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--kills", type=int, help="of faults, in all; default 60")
    parser.add_argument(
        "--subjects",
        nargs="+",
        choices=(*SHARES, ACCIDENTS),
        help="of faults; default: all",
    )
    parser.add_argument("--minutes", type=float, help="of fuzz; default 1")
    parser.add_argument("--lines", type=int, help="of soak; default 100000")
    parser.add_argument("--largest", type=int, help="of scale; default 1000000")
    args = parser.parse_args()
    for kind, options in OWN.items():
        for name, default in options.items():
            if getattr(args, name) is None:
                setattr(args, name, default)
            elif kind != args.kind:
                raise ValueError(
                    f"--{name} is an option of campaign {kind}: leave it out"
                )
    if Path(args.output, f"{args.kind}.json").exists():
        raise ValueError(
            f"--output {args.output} must be a new folder, but has a {args.kind}.json: "
            "choose another"
        )
    for name in "kills", "minutes", "lines", "largest":
        if not (value := getattr(args, name)) > 0:
            raise ValueError(f"--{name} must be > 0, but is {value}")
    return args


def main() -> None:
    args = parse()
    # in the background of a shell SIGINT may be ignored, by what is started here, too
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kinds = {"faults": faults, "fuzz": fuzz, "soak": soak, "scale": scale}
    outcome = kinds[args.kind](args)
    print("\n".join(outcome.table()))
    if outcome.faults():
        print(f"{outcome.faults()} faults, see {outcome.path}", file=sys.stderr)
        sys.exit(1)


def faults(args: argparse.Namespace) -> Outcome:
    """Kill all subjects, each its share of times, and try accidents."""
    from campaign.accidents import Accidents
    from campaign.faults import Faults, Trial

    outcome = Outcome(Path(args.output) / "faults.json", seed=args.seed)

    def note(trial: Trial) -> None:
        kills = {name: trial.kills[name] for name in ("SIGKILL", "SIGTERM", "SIGINT")}
        row = {"subject": trial.subject, **kills, "files compared": trial.files}
        outcome.add({**row, "faults": trial.faults})

    attack = Faults(Path(args.output), args.seed)
    attack.prepare()
    for name, subject in attack.stage.subjects().items():
        if name in args.subjects:
            kills = max(1, round(args.kills * SHARES[name]))
            note(attack.attack(subject, kills))
    if ACCIDENTS in args.subjects:
        for trial in Accidents(attack).all():
            note(trial)
    return outcome


def fuzz(args: argparse.Namespace) -> Outcome:
    """Feed garbage to readers until the time is over."""
    from campaign.fuzz import rounds

    outcome = Outcome(Path(args.output) / "fuzz.json", seed=args.seed)
    for row in rounds(Path(args.output), args.seed, 60 * args.minutes):
        outcome.add(row)
    return outcome


def soak(args: argparse.Namespace) -> Outcome:
    """Send many lines through every door of a trained model."""
    from campaign.soak import Soak

    outcome = Outcome(Path(args.output) / "soak.json", seed=args.seed)
    attempt = Soak(Path(args.output), args.seed, args.lines)
    attempt.prepare()
    for row in attempt.rows():
        outcome.add(row)
    return outcome


def scale(args: argparse.Namespace) -> Outcome:
    """Measure the steps that handle texts, with texts of three sizes."""
    from campaign.scale import rows

    outcome = Outcome(Path(args.output) / "scale.json", seed=args.seed)
    for row in rows(Path(args.output), args.seed, args.largest):
        outcome.add(row)
    return outcome


if __name__ == "__main__":
    command.run(main)
