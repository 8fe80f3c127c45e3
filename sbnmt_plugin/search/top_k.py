"""Selection of the best of a row of scores, by blocks where it is a vocabulary."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.numerics import DEAD

BLOCK = 128  # tokens that are looked at together in the search for the best
SORTED = 64  # so few scores are sorted as fast as their best are found


def top_in_order(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` best of the last dimension, among equals the first.

    ``torch.topk`` promises no order among equals, nor which of them it takes, so
    one more is asked for.  Where none of them are equal that is all; else rows where it
    ties with the last are sorted.  Few scores are sorted anyway.

    Returns:
        values, indices: (..., count) each.
    """
    size = scores.size(-1)
    # branching on numbers would cost a host-device synchronisation elsewhere
    if size <= SORTED or not scores.is_cpu:
        values, index = scores.sort(dim=-1, descending=True, stable=True)
        return values[..., :count], index[..., :count]
    values, index = scores.topk(min(count + 1, size))
    if not bool((values[..., 1:] == values[..., :-1]).any()):
        return values[..., :count], index[..., :count]
    if size > count:
        last, next_one = values[..., count - 1], values[..., count]
        tied = (last == next_one) & (next_one > DEAD)
        if bool(tied.any()):
            ordered = scores[tied].sort(dim=-1, descending=True, stable=True).indices
            index[tied] = ordered[:, : count + 1]
    index = index[..., :count].sort(dim=-1).values
    values, order = scores.gather(-1, index).sort(dim=-1, descending=True, stable=True)
    return values, index.gather(-1, order)


def top_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` best tokens of each row, among equals the lower id first.

    Blocks are ranked by their best token first.  The M best tokens lie in the M best
    blocks: a block that is not among these has M better ones before it, each with a
    token that is better than all of its own.  With M = 2, blocks of 3 and the row

        2 9 1 | 4 7 7 | 8 0 0      blocks' best: 9 7 8

    only the first and the third block are looked into, and hold 9 and 8.

    Args:
        logits: (..., V).

    Returns:
        values, tokens: (..., count) each.
    """
    size = logits.size(-1)
    blocks, rest = divmod(size, BLOCK)
    if blocks <= count:
        return top_in_order(logits, count)
    whole = logits[..., : blocks * BLOCK].unflatten(-1, (blocks, BLOCK))
    _, chosen = top_in_order(whole.amax(-1), count)
    chosen = chosen.sort(dim=-1).values  # lower ids first, as ties want it
    looked_into = chosen[..., None].expand(*chosen.shape, BLOCK)
    found = whole.gather(-2, looked_into).flatten(-2)
    if rest:  # the last tokens are no block: they are always looked into
        found = torch.cat([found, logits[..., -rest:]], dim=-1)
        chosen = F.pad(chosen, (0, 1), value=blocks)
    values, index = top_in_order(found, count)
    block = chosen.gather(-1, index // BLOCK)
    return values, torch.add(index % BLOCK, block, alpha=BLOCK)
