"""Average the parameters of checkpoints (fairseq's script is not in its wheels).

    sbnmt average --output model/checkpoint_avg.pt model/checkpoint{11..20}.pt
    sbnmt average --output model/checkpoint_avg.pt --last 5 model

In a folder, --last N takes the last N of checkpointE.pt, or of checkpoint_E_U.pt where
there are fewer of the former (--no-epoch-checkpoints).  The result has everything else
from the newest one, but no optimiser.  An output that is the same already keeps its
time, by which later steps know it.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import torch

from sbnmt_plugin.checkpoint_checks import FUNCTION, TIES
from sbnmt_plugin.checkpoints import read_checkpoint, settings_of
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes import stages
from sbnmt_plugin.tools.text import refuse_overwriting
from sbnmt_plugin.tools.unfinished import new_file

# names that fairseq gives; they count epochs, and updates
NAMES = (r"checkpoint(\d+)\.pt", r"checkpoint_\d+_(\d+)\.pt")
KEPT = r"\d+|_\d+_\d+|_last|_best|\.best_\w+_[\d.]+"  # by a training
WRITTEN = re.compile(rf"checkpoint({KEPT})(-shard\d+|\.\w+)?\.pt")


def newest(folder: Path, count: int, fewer: bool = False) -> list[Path]:
    """Return the last ``count`` checkpoints of a folder, of one kind, oldest first.

    Args:
        fewer: takes a folder with fewer, and the last checkpoint where there is none
            of an epoch.

    Raises:
        ValueError: there are not enough of either kind.
    """
    kinds = []
    for pattern in NAMES:
        matches = [re.fullmatch(pattern, path.name) for path in folder.iterdir()]
        found = [match for match in matches if match]
        found.sort(key=lambda match: int(match[1]))
        kinds.append([folder / match[0] for match in found][-count:])
    chosen = max(kinds, key=len)  # the first, where both are enough
    if fewer and not chosen and (folder / "checkpoint_last.pt").exists():
        return [folder / "checkpoint_last.pt"]  # it ended within its first epoch
    if len(chosen) < (1 if fewer else count):
        raise ValueError(
            f"--last {count} needs as many checkpoints, but {folder} has "
            f"{len(chosen)}: keep more (--keep-last-epochs, --keep-interval-updates) "
            "or average fewer"
        )
    return chosen


def kind(checkpoint: dict[str, Any]) -> dict[str, str]:
    """Return what the checkpoints of one training have in common, by its name.

    These are direction, dictionaries, settings by which the same parameters compute
    something else (older versions lack some), and the parameters with their shapes.
    """
    values, model = settings_of(checkpoint), checkpoint["model"]
    names = ["sb_direction", "sb_dictionaries", "two_way_languages", *FUNCTION, *TIES]
    names += [flag[2:].replace("-", "_") for flag in stages.FUNCTION]
    shapes = sorted(f"{name} {[*value.shape]}" for name, value in model.items())
    found = {"parameters": str(shapes)}
    for name in names:
        value = values.get(name)
        found[name] = str(None if value is False else value)
    return found


def average(paths: list[Path]) -> dict[str, Any]:
    """Return the newest checkpoint with the mean of all parameters, summed in float64.

    Raises:
        ValueError: the checkpoints are not of one training.
    """
    sums: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    most = 0
    first: dict[str, str] = {}
    for path in paths:
        checkpoint = read_checkpoint(str(path), "(inputs)")
        found = kind(checkpoint)
        first = first or found
        if others := [name for name in first if found[name] != first[name]]:
            raise ValueError(
                f"{path} must have the settings and the parameters, with their shapes, "
                f"of {paths[0]}, but has other {', '.join(others)}: "
                "average checkpoints of one training"
            )
        history = checkpoint.get("optimizer_history") or [{}]
        if (updates := history[-1].get("num_updates") or 0) >= most:
            kept, most = {**checkpoint, "last_optimizer_state": None}, updates
        for name, value in checkpoint["model"].items():
            if value.is_floating_point():
                sums[name] = sums.get(name, 0) + value.double()
    model = kept["model"]
    for name, total in sums.items():
        model[name] = (total / len(paths)).to(model[name].dtype)
    return kept


def main() -> None:
    parser = command.parser(__doc__)
    add = parser.add_argument
    add("--output", type=Path, required=True, help="checkpoint to write")
    add("--last", action=command.AtLeastOne, help="number of checkpoints of a folder")
    add("--or-fewer", action="store_true", help="if it has fewer")
    add("inputs", type=Path, nargs="+", help="checkpoints, or one folder")
    args = parser.parse_args()
    paths = args.inputs
    if args.last:
        if len(paths) > 1:
            raise ValueError("--last goes with exactly one folder")
        paths = newest(paths[0], args.last, args.or_fewer)
    elif args.or_fewer:
        raise ValueError("--or-fewer goes with --last N")
    for path in paths:
        if path.is_dir():
            raise ValueError(
                f"{path} is a folder: name checkpoints, or give --last N for its newest"
            )
    refuse_overwriting(str(args.output), *map(str, paths))
    if WRITTEN.fullmatch(args.output.name):
        raise ValueError(
            f"--output {args.output} must not have a name that trainings write, or one "
            "would lose its checkpoint, or start from this: choose model.pt or another"
        )
    mean = io.BytesIO()
    torch.save(average(paths), mean)
    there = args.output.is_file() and args.output.read_bytes() == mean.getvalue()
    if not there:
        with new_file(args.output, "wb") as file:
            file.write(mean.getbuffer())
    names = ", ".join(path.name for path in paths)
    print(f"{args.output}: {'there already, the ' if there else ''}mean of {names}")
