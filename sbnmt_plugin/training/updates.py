"""Where fairseq's training step is not enough: wrappers, autocast, AMP's gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq.optim import AMPOptimizer, FairseqOptimizer

from sbnmt_plugin.network.precision import bfloat16_products


def bare(model: Any) -> Any:
    """The model itself, of however many wrappers of distributed training."""
    while "module" in getattr(model, "_modules", {}):
        model = model.module
    return model


def in_bfloat16(criterion: Callable[..., Any]) -> Callable[..., Any]:
    """A criterion whose products are bfloat16's (``--sb-autocast``).

    It is entered inside of fairseq's step, which switches a GPU's autocast off around
    the criterion of whoever has not asked for ``--amp``.
    """

    def narrowed(model: Any, sample: dict[str, Any], *more: Any, **others: Any) -> Any:
        with bfloat16_products(sample["live"].device):
            return criterion(model, sample, *more, **others)

    return narrowed


def step_of(optimizer: FairseqOptimizer) -> Callable[[], None]:
    """An optimiser's step.

    fairseq's of ``--amp`` divides gradients by the scale twice: it clips under one name
    of the optimiser and steps under another, which torch's GradScaler takes for two.
    Adam hides that where gradients are large beside its ε.
    """
    if not isinstance(optimizer, AMPOptimizer):
        return optimizer.step

    def step() -> None:
        optimizer.scaler.step(optimizer.optimizer)
        optimizer.scaler.update()

    return step
