"""How long an answer may be."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.search.options import SearchOptions, Symbols


def longest_outputs(
    models: list[Any], source: Tensor, symbols: Symbols, options: SearchOptions
) -> Tensor:
    """int(a · source length with ``</s>`` + b) words, (B,).

    By sentence: fairseq's is that of the longest source of a batch.

    Args:
        source: (B, S).

    Raises:
        ValueError: fewer words than there must be.
    """
    # fairseq's LSTM says 1e5
    longest = int(min(model.max_decoder_positions() for model in models)) - 1
    lengths = source.ne(symbols.pad).sum(1).to(torch.float64)
    found = options.max_len_a * lengths + options.max_len_b
    found = found.clamp(-longest, longest).long()  # int64 has no 1e19
    if len(source) and (least := int(found.min())) < options.min_len:
        raise ValueError(
            f"--min-len must be ≤ the longest output allowed, but is "
            f"{options.min_len} where --max-len-a, --max-len-b and the decoder's "
            f"positions allow {least}: lower it or raise those"
        )
    return found
