"""Corrections to fairseq's training step: wrappers, autocast, AMP's scale, NaN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from fairseq.optim import AMPOptimizer, FairseqOptimizer

from sbnmt_plugin.network.cpu_products import bfloat16_products


def bare(model: Any) -> Any:
    """Return the model without its wrappers of distributed training."""
    while "module" in getattr(model, "_modules", {}):
        model = model.module
    return model


@contextmanager
def in_bfloat16(
    criterion: Callable[..., Any], device: torch.device, wanted: bool
) -> Iterator[Callable[..., Any]]:
    """Yield a criterion whose products are bfloat16's (``--sb-autocast``).

    Without ``--amp`` fairseq's step switches a GPU's autocast off around the criterion,
    so it is entered once more inside.  A backward pass that computes activations anew
    (``--checkpoint-activations``) needs it around the step.

    Args:
        device: the batch's.
        wanted: whether anything is changed.
    """

    def narrowed(*given: Any, **others: Any) -> Any:
        with bfloat16_products(device):
            return criterion(*given, **others)

    with bfloat16_products(device, wanted):
        yield narrowed if wanted else criterion


@contextmanager
def nan_is_named() -> Iterator[None]:
    """Name a NaN or infinity among gradients as the cause where fairseq cannot.

    fairseq looks for the module that gave it, by hooks that torch breaks off
    (StopIteration) where a module, as every encoder does, gives a dict without tensors.

    Raises:
        FloatingPointError: in place of that.
    """
    try:
        yield
    except StopIteration as error:
        raise FloatingPointError(
            "the gradients of a batch must be finite, but some are NaN or infinite: "
            "lower --lr or --clip-norm, or look for the batch; nothing was written but "
            "crash.pt, which is to be looked at"
        ) from error


def take_step(optimizer: FairseqOptimizer) -> None:
    """Take an optimiser's step.

    fairseq's of ``--amp`` divides gradients by the scale twice: it clips under one name
    of the optimiser and steps under another, which torch's GradScaler takes for two.
    Adam hides that where gradients are large beside its ε.  (Beneath ``--use-bmuf`` it
    remains so.)
    """
    if isinstance(optimizer, AMPOptimizer):
        optimizer.scaler.step(optimizer.optimizer)
        optimizer.scaler.update()
    else:
        optimizer.step()
