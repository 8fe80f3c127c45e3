"""Model folders made of trained checkpoints."""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from sbnmt_plugin import __version__
from sbnmt_plugin.checkpoints import read_checkpoint, settings_of
from sbnmt_plugin.layout import DEFAULT_BEAM
from sbnmt_plugin.symbols import NAMES
from sbnmt_plugin.tools.machine import commit, machine, versions
from sbnmt_plugin.tools.models.description import (
    MODEL,
    Description,
    Side,
    write_description,
)
from sbnmt_plugin.tools.models.fairseq_engine import open_engine
from sbnmt_plugin.tools.unfinished import new_folder
from sbnmt_plugin.training.checksums import sha256_of

DEFAULTS = {  # of the search
    "beam": DEFAULT_BEAM,
    "lenpen": 0.6,
    "length_penalty": "gnmt",
    "rescore": 0.0,
    "max_len_a": 1.2,
    "max_len_b": 10,
}


def bundle(
    checkpoint: Path,
    output: Path,
    source: Side,
    target: Side,
    search: Mapping[str, Any],
    files: Mapping[str, Path],
    scores: dict[str, Any],
) -> Description:
    """Make a model folder of a trained checkpoint; it appears when it is whole.

    Args:
        checkpoint: of fairseq-train or sbnmt average, of any of our families.
        output: folder, which is replaced if it exists.
        source, target: as in the folder, but codes and dictionary are files anywhere.
        search: options of the search in place of :data:`DEFAULTS`.
        files: option of a family that names a file, such as ``enat_table`` -> file.
        scores: see :class:`description.Description`.

    Returns:
        What the folder's model.yaml says.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: the checkpoint does not go with the dictionaries or the options, or
            lacks a file that its family reads.
    """
    state = read_checkpoint(str(checkpoint), "(--path)")
    settings = settings_of(state)
    direction = str(settings.get("sb_direction"))
    with new_folder(output) as folder:
        torch.save({**state, "last_optimizer_state": None}, folder / MODEL)
        copied = {**files}
        sides = []
        for side in source, target:
            words, codes = f"dict.{side.language}.txt", ""
            copied[words] = Path(side.dictionary)
            if side.codes:
                same = source.codes == target.codes
                codes = "codes" if same else f"codes.{side.language}"
                copied[codes] = Path(side.codes)
            sides.append(replace(side, dictionary=words, codes=codes))
        for name, path in copied.items():
            shutil.copyfile(path, folder / name)
        made = Description(
            engine="fairseq",
            source=sides[0],
            target=sides[1],
            directions=NAMES if direction == "both" else (direction,),
            search={**DEFAULTS, **search, "max_positions": 0},
            files={name: sha256_of(folder / name) for name in (MODEL, *copied)},
            provenance=origin_of(checkpoint, state, settings),
            scores=scores,
        )
        positions = int(open_engine(folder, made, "cpu", "float32", 1).max_positions[0])
        made = made.with_search({"max_positions": positions})
        for side in made.source, made.target:
            side.encoder(folder)
            side.decoder(folder)
        write_description(folder, made)
    return made


def origin_of(
    checkpoint: Path, state: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """Return what is known of a checkpoint's origin.

    Args:
        state: its contents.
        settings: its model's.
    """
    training = state.get("cfg") or {}
    history = state.get("optimizer_history") or [{}]
    known = {
        "version": __version__,
        "commit": commit(),
        "date": f"{datetime.datetime.now():%Y-%m-%d}",
        "machine": machine(),
        "versions": versions(),
        "checkpoint": checkpoint.name,
        "checkpoint sha256": sha256_of(checkpoint),
        "architecture": settings.get("arch") or settings.get("_name"),
        "seed": (training.get("common") or {}).get("seed"),
        "updates": history[-1].get("num_updates"),
    }
    return {key: value for key, value in known.items() if value is not None}
