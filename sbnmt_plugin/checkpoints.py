"""Safe reading of checkpoints, with torch's ``weights_only`` left on.

torch refuses to unpickle any global that is not allow-listed, so that loading a
file runs no code.  Allow-listed here is what checkpoints of this plugin hold, and
nothing else; none of it does more than keep values.
"""

from __future__ import annotations

import argparse
import collections
import os
import re
import typing
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from fairseq import utils
from fairseq.distributed.utils import _TensorPlaceholder
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.base import ContainerMetadata, Metadata
from omegaconf.nodes import AnyNode

OPTIONS = (
    "(--path, --restore-file, --save-dir, --finetune-from-model, --continue-once, "
    "checkpoint_file)"
)
TIED = 8  # names that one parameter may have, as embeddings do
MOST_POSITIONS = 2**20
# settings whose texts models of fairseq's run as Python code
EVALUATED = (
    *("encoder_layers", "decoder_layers", "decoder_attention"),
    "adaptive_softmax_cutoff",
)
PLAIN = re.compile(r"[\d., \[\]]*|True|False|None")
UNPICKLER = "WeightsUnpickler error: "  # behind it torch says what it has met
ALLOWED: list[Any] = [
    argparse.Namespace,
    # when several processes resume, one reads the file and broadcasts it with its
    # configuration as an omegaconf object and with stand-ins for its tensors
    _TensorPlaceholder,
    DictConfig,
    ListConfig,
    ContainerMetadata,
    Metadata,
    AnyNode,
    collections.defaultdict,
    dict,
    list,
    int,
    typing.Any,
]


def allow_checkpoint_contents() -> None:
    """Allow-list exactly what checkpoints written with this plugin hold."""
    torch.serialization.add_safe_globals(ALLOWED)


def own_file(cfg: Any, name: str = "last") -> str:
    """Return a training's own checkpoint; by default the one that it goes on from."""
    return os.path.join(
        cfg.sb_save_dir, f"checkpoint_{name}{cfg.sb_checkpoint_suffix}.pt"
    )


def checkpoint_files(cfg: Any) -> list[str]:
    """List the checkpoints which the command is going to read.

    Those that exist, and what a training is told to begin with, which fairseq would not
    miss.
    """
    if cfg.sb_path is not None:
        return [path for path in utils.split_paths(cfg.sb_path) if os.path.isfile(path)]
    own, restore = own_file(cfg), cfg.sb_restore_file
    if restore == "checkpoint_last.pt":
        restore = own
    else:
        restore = restore.replace(".pt", f"{cfg.sb_checkpoint_suffix}.pt")
    start = cfg.sb_continue_once or cfg.sb_finetune_from_model
    path = restore if start is None or os.path.exists(restore) else start
    return [path] if path != own or os.path.isfile(own) else []


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint without its tensors: all that a command asks of it beforehand.

    Attributes:
        path: its file.
        cfg: settings of its training, by group; none where an old fairseq has saved
            them in another form.
        settings: the model's.
        shapes: of its weights, by name.
    """

    path: str
    cfg: Any
    settings: dict[str, Any]
    shapes: dict[str, torch.Size]


def read_checkpoint(path: str, options: str = OPTIONS) -> dict[str, Any]:
    """Read a checkpoint of fairseq's; its tensors are read from the disk at their use.

    Args:
        path: file.
        options: that may have named it, for the messages.

    Raises:
        FileNotFoundError: no such file.
        ValueError: it is cut off, or something else altogether.
    """
    allow_checkpoint_contents()
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path} {options} does not exist: give one that does")
    check_archive(path, options)
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # torch and its unpickler raise all sorts
        reason = re.split(r"\n|\. | was not", str(error).split(UNPICKLER)[-1])[0]
        raise ValueError(
            f"{path} {options} cannot be read safely: it is damaged, or holds more "
            f"than tensors, settings and counters ({type(error).__name__}: {reason}); "
            "use another one"
        ) from error
    if not isinstance(checkpoint, dict) or "model" not in checkpoint:
        raise ValueError(
            f"{path} {options} must be a checkpoint of fairseq-train, but has no model "
            "in it: use another one"
        )
    if wrong := too_much(checkpoint, os.path.getsize(path)):
        raise ValueError(f"{path} {options} {wrong}: use another one")
    return checkpoint


def check_archive(path: str, options: str) -> None:
    """Refuse a zip file that is damaged, or that unpacks to more than it is.

    torch compresses nothing and compares no checksums.

    Raises:
        ValueError: with what is wrong.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            packed = [
                info.filename
                for info in archive.infolist()
                if info.compress_type or info.file_size != info.compress_size
            ]
            size = sum(info.file_size for info in archive.infolist())
            if packed or size > os.path.getsize(path):
                raise ValueError(f"{(packed or ['all'])[0]} unpacks to more")
            damaged = archive.testzip()
        if damaged is not None:
            raise ValueError(f"the checksum of {damaged} is another")
    except Exception as error:  # zipfile raises all sorts, too
        raise ValueError(
            f"{path} {options} cannot be read safely: it was cut off or damaged, or is "
            f"no archive as torch writes it ({error}); use another one"
        ) from error


def too_much(checkpoint: dict[str, Any], size: int) -> str | None:
    """Find what of a checkpoint would take memory or look up things it does not hold.

    Args:
        size: of its file, in bytes.

    Returns:
        The fault, to stand after the file's name; None where there is none.
    """
    model, settings = checkpoint["model"], settings_of(checkpoint)
    if not isinstance(model, dict) or not all(map(torch.is_tensor, model.values())):
        return "must hold parameters, each a tensor, but holds something else"
    if any(value.layout != torch.strided for value in model.values()):
        return "must hold dense parameters, but has others"
    if sum(value.numel() * value.element_size() for value in model.values()) > (
        TIED * size
    ):
        return "must hold all of its parameters, but they are larger than the file"
    numbers = sum(value.numel() for value in model.values())
    for name in EVALUATED:
        if not PLAIN.fullmatch(value := str(settings.get(name))):
            return f"must have numbers as {name}, but has {value!r:.60}"
    for side in ("encoder", "decoder"):
        layers, width, inner = (
            int(settings.get(f"{side}_{name}") or 0)
            for name in ("layers", "embed_dim", "ffn_embed_dim")
        )
        if layers * width * max(width, inner) > TIED * numbers:
            return (
                f"must have the parameters of its settings, but {side}_layers {layers},"
                f" {side}_embed_dim {width}, {side}_ffn_embed_dim {inner} need more"
            )
    for name in ("max_source_positions", "max_target_positions"):
        if (settings.get(name) or 0) > MOST_POSITIONS:
            return f"must have {name} ≤ {MOST_POSITIONS}, but has {settings[name]}"
    for text in texts_in([checkpoint.get("cfg"), checkpoint.get("args")]):
        if "${" in text:  # omegaconf would look it up, also in the environment
            return f"must have settings that are values, but has {text[:60]!r}"
    return None


def texts_in(value: Any) -> Iterator[str]:
    """Yield all texts in nested settings, by no method that a checkpoint could set."""
    if isinstance(value, argparse.Namespace):
        value = vars(value)
    if isinstance(value, (DictConfig, ListConfig)):
        value = OmegaConf.to_container(value, resolve=False)
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from texts_in([*value, *value.values()])
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from texts_in(item)


def settings_of(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a checkpoint's model."""
    newer = (checkpoint.get("cfg") or {}).get("model")
    settings = newer or checkpoint.get("args") or {}
    return dict(settings if hasattr(settings, "keys") else vars(settings))
