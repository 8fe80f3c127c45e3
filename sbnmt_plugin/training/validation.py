"""Validation by BLEU: options, counts of a batch, score of their sums."""

from __future__ import annotations

import json
from typing import Any

import sacrebleu
from fairseq.logging import metrics
from fairseq.tasks.translation import EVAL_BLEU_ORDER


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


def bleu_counts(bleu: Any) -> dict[str, int]:
    """Return the counts from which BLEU is computed, by their names in the log."""
    counts = {"_bleu_sys_len": bleu.sys_len, "_bleu_ref_len": bleu.ref_len}
    for n in range(EVAL_BLEU_ORDER):
        counts[f"_bleu_counts_{n}"] = bleu.counts[n]
        counts[f"_bleu_totals_{n}"] = bleu.totals[n]
    return counts


def log_bleu(logging_outputs: list[dict[str, Any]]) -> None:
    """Log BLEU from summed counts.

    fairseq's version logs numpy arrays, which end up in the checkpoint, where
    torch's safe loading refuses them; these are Python numbers.
    """
    names = [
        "_bleu_sys_len",
        "_bleu_ref_len",
        *(f"_bleu_counts_{n}" for n in range(EVAL_BLEU_ORDER)),
        *(f"_bleu_totals_{n}" for n in range(EVAL_BLEU_ORDER)),
    ]
    sums = {
        name: int(sum(log.get(name, 0) for log in logging_outputs)) for name in names
    }
    if not sums["_bleu_totals_0"]:
        return
    for name, value in sums.items():
        metrics.log_scalar(name, value)

    def bleu(meters: Any) -> float:
        value = {name: int(meters[name].sum) for name in names}
        score = sacrebleu.BLEU.compute_bleu(
            correct=[value[f"_bleu_counts_{n}"] for n in range(EVAL_BLEU_ORDER)],
            total=[value[f"_bleu_totals_{n}"] for n in range(EVAL_BLEU_ORDER)],
            sys_len=value["_bleu_sys_len"],
            ref_len=value["_bleu_ref_len"],
            smooth_method="exp",
        ).score
        return round(float(score), 2)

    metrics.log_derived("bleu", bleu)
