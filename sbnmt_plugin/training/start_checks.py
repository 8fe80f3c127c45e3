"""Checks before the first update: a training that would end badly does not begin.

fairseq finds these mistakes after hours, by a traceback, or never.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Collection
from typing import Any

import torch
from fairseq import utils
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.models.bart import BARTModel
from fairseq.models.lightconv import LightConvModel
from fairseq.models.lstm import LSTMModel
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer_align import TransformerAlignModel
from omegaconf import DictConfig

logger = logging.getLogger(__name__)

# fairseq's models that are trained, resumed and decoded as teachers
TEACHERS = TransformerModel, TransformerAlignModel, LightConvModel, LSTMModel, BARTModel
LOWER = ("loss", "nll_loss", "ppl")
# whether more is better, of what is logged in every training
HIGHER = {"bleu": True, "accuracy": True} | dict.fromkeys(LOWER, False)
ASYNCHRONOUS = (
    "--write-checkpoints-asynchronously is not supported: without iopath fairseq "
    "trains nothing and saves nothing, with it one file of each save alone, so that "
    "nothing can be resumed: leave it out"
)


def whole(cfg: Any) -> Any:
    """Return the options of the whole call; None where the task is set up alone."""
    return cfg._get_parent() if isinstance(cfg, DictConfig) else None


def check_options(cfg: Any) -> None:
    """Refuse options by which a training would end in a traceback, or save nothing.

    Args:
        cfg: the task's, of a training.

    Raises:
        ValueError: with the flag.
    """
    groups = whole(cfg)
    if groups is None:
        return
    common, saving = groups.common, groups.checkpoint
    if common.fp16 and (common.cpu or not torch.cuda.is_available()):
        raise ValueError(
            "--fp16 needs a GPU, but the training is on a CPU: leave it out, or train "
            "in bfloat16 (--sb-autocast)"
        )
    if common.bf16 and (common.cpu or (common.tpu and utils.xm is None)):
        raise ValueError(
            "--bf16 is for TPUs in fairseq, and torch_xla is not there: leave it out, "
            "or train in bfloat16 (--sb-autocast)"
        )
    if saving.no_save:
        return
    if saving.write_checkpoints_asynchronously:
        raise ValueError(ASYNCHRONOUS)
    last, every = groups.optimization.max_epoch, saving.save_interval
    stops = groups.optimization.max_update or groups.optimization.stop_time_hours
    stops = stops or saving.patience > 0
    if 0 < last < every and not saving.save_interval_updates and not stops:
        raise ValueError(
            f"--save-interval must be ≤ --max-epoch {last}, or nothing is saved, but "
            f"is {every}: lower it, or say so by --no-save"
        )
    unsaved = saving.no_epoch_checkpoints and not saving.save_interval_updates
    if saving.no_last_checkpoints and unsaved and groups.dataset.disable_validation:
        raise ValueError(
            "--no-last-checkpoints, --no-epoch-checkpoints and --disable-validation "
            "together leave nothing to be saved: leave one out, or say so by --no-save"
        )


def supported(name: str | None) -> bool:
    """Tell whether models of an architecture can be trained, resumed and decoded.

    Of fairseq's only :data:`TEACHERS` are, which write a text word by word for a text.
    Others run texts of their settings as Python code (``fconv`` its layers), which
    nothing that is read in a checkpoint may be.  Models of a plugin are not judged.
    """
    kind = ARCH_MODEL_REGISTRY.get(name, MODEL_REGISTRY.get(name))
    if kind is None:
        return False
    return kind in TEACHERS or not kind.__module__.startswith("fairseq.")


def check_architecture(settings: Any) -> None:
    """Refuse a model that is not :func:`supported`.

    Args:
        settings: of the model, of a command or of a checkpoint.

    Raises:
        ValueError: with ``--arch``.
    """
    name = getattr(settings, "_name", None) or getattr(settings, "arch", None)
    if not supported(name):
        known = ", ".join(sorted(n for n, x in MODEL_REGISTRY.items() if x in TEACHERS))
        raise ValueError(
            f"--arch {name} is not supported by sb_translation, which of fairseq's "
            f"models takes those of {known}: choose one of these, or the plugin's own"
        )


def restrict_architectures(parser: argparse.ArgumentParser) -> None:
    """Let a parser refuse what is not :func:`supported`, before fairseq fails at it."""
    for action in parser._actions:
        if action.dest == "arch" and action.choices is not None:
            action.choices = [name for name in action.choices if supported(name)]


def check_metric(cfg: Any, logged: Collection[str]) -> None:
    """Refuse a metric that no validation will log; warn of one that is turned round.

    Args:
        cfg: the task's, of a training.
        logged: names of the values that a validation logs.

    Raises:
        ValueError: ``--best-checkpoint-metric`` is none of them.
    """
    groups = whole(cfg)
    if groups is None or groups.dataset.disable_validation:
        return
    metric = groups.checkpoint.best_checkpoint_metric
    if metric not in logged:
        remedy = "add --eval-bleu" if metric == "bleu" else "choose another"
        raise ValueError(
            f"--best-checkpoint-metric must be one of {', '.join(sorted(logged))}, "
            f"which the validation logs, but is {metric}: {remedy}"
        )
    maximised = groups.checkpoint.maximize_best_checkpoint_metric
    if HIGHER.get(metric, maximised) != maximised:
        logger.warning(
            "--best-checkpoint-metric %s %s --maximize-best-checkpoint-metric keeps "
            "the worst checkpoint as the best: %s",
            *(metric, "with" if maximised else "without"),
            "leave that out" if maximised else "add it",
        )


def refuse_asynchronous(record: logging.LogRecord) -> bool:
    """End a training at the message after which fairseq returns as if it were done.

    A filter of the root logger, which fairseq tells of it before there is a task.

    Raises:
        ValueError: it is that message.
    """
    if str(record.msg).startswith("Asynchronous checkpoint writing is specified"):
        raise ValueError(ASYNCHRONOUS)
    return True
