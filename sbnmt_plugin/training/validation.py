"""Validation by BLEU: options, counts of a batch, score of their sums."""

from __future__ import annotations

import json
from typing import Any

import sacrebleu
from fairseq.logging import metrics
from fairseq.tasks.translation import EVAL_BLEU_ORDER

NAMES = (
    *("_bleu_sys_len", "_bleu_ref_len"),
    *(f"_bleu_counts_{n}" for n in range(EVAL_BLEU_ORDER)),
    *(f"_bleu_totals_{n}" for n in range(EVAL_BLEU_ORDER)),
)


def read_json(flag: str, text: str) -> dict[str, Any]:
    """Parse the options that a flag gives as JSON.

    Raises:
        ValueError: it is not a JSON object.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{flag} must be JSON, but is {text!r}: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{flag} must be a JSON object, but is {text!r} instead")
    return value


def log_bleu(logging_outputs: list[dict[str, Any]]) -> None:
    """Log BLEU from summed counts: 0 where no token was counted.

    fairseq's version logs numpy arrays, which end up in the checkpoint, where
    torch's safe loading refuses them; these are Python numbers.
    """
    if not any(NAMES[0] in log for log in logging_outputs):
        return  # of an update
    for name in NAMES:
        value = int(sum(log.get(name, 0) for log in logging_outputs))
        metrics.log_scalar(name, value)

    def bleu(meters: Any) -> float:
        ours, reference, *counts = (int(meters[name].sum) for name in NAMES)
        score = sacrebleu.BLEU.compute_bleu(
            correct=counts[:EVAL_BLEU_ORDER],
            total=counts[EVAL_BLEU_ORDER:],
            sys_len=ours,
            ref_len=reference,
            smooth_method="exp",
        ).score
        return round(float(score), 2)

    metrics.log_derived("bleu", bleu)
