"""Checks before the first update: a training that would end badly does not begin."""

from __future__ import annotations

import fcntl
import logging
import os
import re
from collections.abc import Collection
from dataclasses import fields
from typing import Any

import torch
from fairseq import checkpoint_utils, utils
from fairseq.tasks.translation import TranslationConfig
from fairseq_cli.train import should_stop_early
from omegaconf import DictConfig

from sbnmt_plugin.checkpoints import Checkpoint
from sbnmt_plugin.fairseq_options import HYDRA, refuse
from sbnmt_plugin.in_use import take
from sbnmt_plugin.task_options import flag_of

logger = logging.getLogger(__name__)

# metrics of which more, or less, is better
MORE, LESS = re.compile("bleu|accuracy"), re.compile("ppl|(nll_)?loss(_.*)?")
SMOOTHED = "label_smoothed_cross_entropy"
AUTOCAST = "leave it out, or train in bfloat16 (--sb-autocast)"


def groups_of(cfg: Any) -> Any:
    """Return all groups of options; None where a task is set up alone."""
    return cfg._get_parent() if isinstance(cfg, DictConfig) else None


def begin(cfg: Any) -> None:
    """Begin a training: nothing of others is here, and no other begins there.

    Args:
        cfg: the task's.

    Raises:
        ValueError: see :func:`check_options` and :func:`hold_folder`.
    """
    check_options(cfg)
    hold_folder(cfg)
    forget_trainings()


def forget_trainings() -> None:
    """Forget what fairseq keeps of the trainings of this process."""
    for kept in checkpoint_utils.save_checkpoint, should_stop_early:
        vars(kept).pop("best", None)


def has_other_metric(cfg: Any, starts: list[Checkpoint]) -> bool:
    """Tell whether the best score of a checkpoint is of another metric than ours."""
    groups = groups_of(cfg)
    metric = groups and groups.checkpoint.best_checkpoint_metric
    saved = [(start.cfg or {}).get("checkpoint", {}) for start in starts]
    return any(x.get("best_checkpoint_metric", metric) != metric for x in saved)


def check_options(cfg: Any) -> None:
    """Refuse options of a task's call by which a training fails, or saves nothing.

    Raises:
        ValueError: with the flag.
    """
    if (groups := groups_of(cfg)) is None:
        return
    common, saving, limits = groups.common, groups.checkpoint, groups.optimization
    gpu = torch.cuda.is_available() and not common.cpu
    tpu = utils.xm is not None if common.tpu else gpu  # of --bf16: see fairseq's parser
    stops = limits.max_update or limits.stop_time_hours or saving.patience > 0
    every = saving.save_interval
    unsaved = every and limits.max_epoch % every and not saving.no_save
    idle = [
        flag_of(x.name)
        for x in fields(TranslationConfig)
        if x.name.startswith("eval_") and getattr(cfg, x.name) != x.default
    ]
    subset, subsets = groups.dataset.train_subset, groups.dataset.valid_subset
    processes = os.environ.get("WORLD_SIZE") or "1"
    alone = groups.distributed_training.distributed_world_size == 1
    criterion = getattr(groups.criterion, "_name", "")
    narrow = next((x for x in ("fp16", "bf16", "amp") if common[x]), "")
    for wrong, message in (
        (
            idle and not cfg.eval_bleu,
            f"{' '.join(idle)} must not be given without --eval-bleu, which alone "
            "translates in validation: add that, or leave it out",
        ),
        (
            cfg.sb_autocast and narrow,
            f"--sb-autocast and --{narrow} each say in what numbers to train, and "
            "cannot both be given: leave one of them out",
        ),
        (
            cfg.sb_probe and groups.dataset.disable_validation,
            "--sb-probe reads validation text, of which --disable-validation loads "
            "none: leave one of the two out",
        ),
        (
            subset in subsets.split(",") and not groups.dataset.disable_validation,
            f"--valid-subset must not name {subset}, whose batches validation would "
            f"take from the training, but is {subsets}: name other splits",
        ),
        (
            alone and processes != "1",
            f"WORLD_SIZE is {processes}, but this process would train alone: start it "
            "by torchrun and sbnmt train, or unset WORLD_SIZE",
        ),
        (
            criterion == f"{SMOOTHED}_with_rdrop" and str(cfg.sb_direction) == "both",
            f"--criterion must be sb_{SMOOTHED} with --sb-direction both, but is "
            f"{criterion}, which reads one target a sentence: change it",
        ),
        (
            criterion == f"{SMOOTHED}_with_alignment",
            f"--criterion must be sb_{SMOOTHED}, but is {criterion}, which reads "
            "alignments that no data here has: change it",
        ),
        (common.fp16 and not gpu, f"--fp16 needs a GPU: {AUTOCAST}"),
        (common.amp and not gpu, f"--amp needs a GPU: {AUTOCAST}"),
        (common.bf16 and not tpu, f"--bf16 needs a TPU and torch_xla: {AUTOCAST}"),
        (
            unsaved and not saving.save_interval_updates and not stops,
            f"--save-interval must divide --max-epoch {limits.max_epoch}, or the last "
            f"epochs are not saved, but is {every}: change one, or add --no-save",
        ),
    ):
        if wrong:
            raise ValueError(message)


def hold_folder(cfg: Any) -> None:
    """Keep other trainings out of the folder of checkpoints till this process ends.

    A process holds what it has held before.

    Args:
        cfg: the task's, of a training.

    Raises:
        ValueError: another process trains there.
    """
    groups = groups_of(cfg)
    if groups is None or groups.distributed_training.distributed_rank:
        return
    saving = groups.checkpoint
    if saving.no_save:
        return
    os.makedirs(saving.save_dir, exist_ok=True)
    name = os.path.join(saving.save_dir, f".lock{saving.checkpoint_suffix or ''}")
    take(
        *(os.open(name, os.O_RDWR | os.O_CREAT), fcntl.lockf),
        f"--save-dir {saving.save_dir} must not be in use, but another training is at "
        "work there: wait for it or end it, or choose another",
    )


def check_metric(cfg: Any, logged: Collection[str]) -> None:
    """Refuse a metric that no validation will log; warn of one that is turned round.

    Args:
        cfg: the task's, of a training.
        logged: names of the values that a validation logs.

    Raises:
        ValueError: ``--best-checkpoint-metric`` is none of them.
    """
    groups = groups_of(cfg)
    if groups is None or groups.dataset.disable_validation:
        return
    metric = groups.checkpoint.best_checkpoint_metric
    if metric not in logged:
        raise ValueError(
            f"--best-checkpoint-metric must be one of {', '.join(sorted(logged))}, "
            f"which validation logs, but is {metric}: "
            + ("add --eval-bleu" if metric == "bleu" else "choose another")
        )
    maximised = groups.checkpoint.maximize_best_checkpoint_metric
    if (LESS if maximised else MORE).fullmatch(metric):
        logger.warning(
            "--best-checkpoint-metric %s keeps the worst checkpoint as the best: %s "
            "--maximize-best-checkpoint-metric",
            *(metric, "leave out" if maximised else "add"),
        )


def refuse_asynchronous(record: logging.LogRecord) -> bool:
    """End a training at the message after which fairseq returns as if it were done.

    A filter of the root logger: there is no task yet.
    """
    if str(record.msg).startswith("Asynchronous checkpoint writing is specified"):
        refuse("write_checkpoints_asynchronously", HYDRA)
    return True
