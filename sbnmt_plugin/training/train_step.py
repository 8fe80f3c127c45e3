"""What surrounds fairseq's training step: wrappers, autocast, AMP's scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from fairseq.optim import AMPOptimizer, FairseqOptimizer

from sbnmt_plugin.network.cpu_products import bfloat16_products


def bare(model: Any) -> Any:
    """The model without its wrappers of distributed training, however many."""
    while "module" in getattr(model, "_modules", {}):
        model = model.module
    return model


@contextmanager
def in_bfloat16(
    criterion: Callable[..., Any], device: torch.device, wanted: bool
) -> Iterator[Callable[..., Any]]:
    """A criterion within whose step products are bfloat16's (``--sb-autocast``).

    fairseq's step switches a GPU's autocast off around the criterion of whoever has not
    asked for ``--amp``, so it is entered once more inside.  What a backward pass
    computes anew (``--checkpoint-activations``) needs it around the step.

    Args:
        device: the batch's.
        wanted: else nothing is changed.
    """

    def narrowed(*given: Any, **others: Any) -> Any:
        with bfloat16_products(device):
            return criterion(*given, **others)

    with bfloat16_products(device, wanted):
        yield narrowed if wanted else criterion


def step_of(optimizer: FairseqOptimizer) -> Callable[[], None]:
    """An optimiser's step.

    fairseq's of ``--amp`` divides gradients by the scale twice: it clips under one name
    of the optimiser and steps under another, which torch's GradScaler takes for two.
    Adam hides that where gradients are large beside its ε.  (Beneath ``--use-bmuf`` it
    remains so.)
    """
    if not isinstance(optimizer, AMPOptimizer):
        return optimizer.step

    def step() -> None:
        optimizer.scaler.step(optimizer.optimizer)
        optimizer.scaler.update()

    return step
