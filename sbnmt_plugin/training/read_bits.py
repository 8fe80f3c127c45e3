"""Measurement of reading across: bits a token that the partner saves.

With the same gold text in both streams, from its middle on each can read in the other
every word that it has to predict.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.logging import metrics
from torch import Tensor

from sbnmt_plugin.layout import NAMES, TRAINING, Layout

ALONE = Layout(directions=1, beam=2)
PROBED, PROBED_TOGETHER = 200, 50  # sentences of --sb-probe; in a batch


def halves(label: Tensor, pad: int) -> tuple[Tensor, Tensor]:
    """Return masks of the first and the second half of every row without padding.

    Args:
        label: (BD, T).
    """
    real = label.ne(pad)
    middle = real.sum(-1, keepdim=True) // 2
    place = torch.arange(label.size(1), device=label.device)
    return real & (place < middle), real & (place >= middle)


@torch.no_grad()
def bits(model: Any, batch: dict[str, Any], layout: Layout = TRAINING) -> Tensor:
    """Compute the negative log-likelihood of every label, in bits, (BD, T)."""
    label = batch["stream_target"]
    output = model(**batch["net_input"], layout=layout)
    lprobs = model.get_normalized_probs(output, log_probs=True)
    return -lprobs.gather(-1, label.unsqueeze(-1)).squeeze(-1) / math.log(2)


def read_bits(model: Any, batches: list[dict[str, Any]], pad: int) -> dict[str, float]:
    """Count the bits a token of the second half that the partner saves, by direction.

    Args:
        batches: with the same text in both streams.
    """
    saved, count = dict.fromkeys(NAMES, 0.0), dict.fromkeys(NAMES, 0)
    was_training = model.training
    model.eval()
    for batch in batches:
        gain = bits(model, batch, ALONE) - bits(model, batch)
        _, second = halves(batch["stream_target"], pad)
        for direction, name in enumerate(NAMES):
            own = second[direction::2]
            saved[name] += float(gain[direction::2][own].sum())
            count[name] += int(own.sum())
    model.train(was_training)
    return {name: saved[name] / max(1, count[name]) for name in NAMES}


def log_read_bits(model: Any, gold: Any, device: torch.device) -> None:
    """Log :func:`read_bits` of the first sentences of a data set.

    Args:
        gold: a :class:`dataset.SBLanguagePairDataset` without R2L texts.
        device: the model's.
    """
    lines, _ = gold.filter_indices_by_size(np.arange(len(gold)), model.max_positions())
    lines = lines[:PROBED]
    batches = [
        gold.collater([gold[i] for i in lines[first : first + PROBED_TOGETHER]])
        for first in range(0, len(lines), PROBED_TOGETHER)
    ]
    batches = [utils.apply_to_sample(lambda x: x.to(device), b) for b in batches]
    for name, value in read_bits(model, batches, gold.pairs.tgt_dict.pad()).items():
        metrics.log_scalar(f"read_bits_{name}", value, round=3)
