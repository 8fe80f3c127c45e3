"""Dot-product attention to a stream's own keys, and to both streams' (eq. 3 and 7)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.layout import TRAINING, Layout
from sbnmt_plugin.network.grid import MOST_QUERIES
from sbnmt_plugin.numerics import narrow_products, wide

OPEN = nullcontext()
LEAST_HEADS = 64  # of all sentences together, from which two products are faster
MOST_KEYS = 32  # up to which they are, whatever the number of queries


class Heads(NamedTuple):
    """Queries (BD, H, Q, C/H), keys and values (BD, H, T', C/H) of all streams."""

    query: Tensor
    key: Tensor
    value: Tensor


class Parts(NamedTuple):
    """A stream's history and its future: both (BD, H, Q, C/H).

    The future is None where streams are written alone, which is λ = 0.
    """

    history: Tensor
    future: Tensor | None


def split_heads(x: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """Turn (L, R, C) into (R, H, L, C/H) of this dtype."""
    x = x.to(dtype)
    return x.view(*x.shape[:2], heads, -1).permute(1, 2, 0, 3)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Compute attention of queries (R, H, Q, C/H) in their own dtype.

    torch's own is made for long texts.  Where many heads have few queries each, as in
    search, or few keys, two products are faster on a CPU.
    """
    if small(query, key) and not dropout:
        return attend_by_products(query, key, value, mask)
    return attend_at_once(query, key, value, mask, dropout)


def small(query: Tensor, key: Tensor) -> bool:
    """Tell whether each of many heads has few queries or few keys, on a CPU."""
    return (
        query.is_cpu
        and query.dtype == wide(query.dtype)
        and not torch.is_grad_enabled()
        and not narrow_products(query)
        and (query.size(2) <= MOST_QUERIES or key.size(2) <= MOST_KEYS)
        and query.size(0) * query.size(1) >= LEAST_HEADS
    )


def attend_by_products(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> Tensor:
    """Compute :func:`attend_at_once` by two small products of each head."""
    heads = query.shape[:2]
    queries, keys, values = (x.flatten(0, 1) for x in (query, key, value))
    if mask is None:
        mask = query.new_zeros(())
    else:
        mask = mask.expand(*heads, -1, -1).flatten(0, 1)
    scale = query.size(-1) ** -0.5
    logits = torch.baddbmm(mask, queries, keys.transpose(1, 2), alpha=scale)
    return torch.bmm(logits.softmax(-1), values).view(query.shape)


def attend_at_once(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Compute attention by torch's fused operator.

    torch.autocast on a CPU would round to bfloat16, in which the backward pass
    over many small products takes twice the time of float32's.
    """
    with torch.autocast("cpu", enabled=False) if narrow_products(query) else OPEN:
        return F.scaled_dot_product_attention(query, key, value, mask, dropout)


def attend_both_ways(
    own: Heads,
    across: Heads | None,
    layout: Layout = TRAINING,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Parts:
    """Compute history and future attention (paper, eq. 3 and 7), two softmaxes.

    ``future[s] = attention(query[s], key[opposite(s)], value[opposite(s)])`` for every
    stream s is computed without moving a key: a stream's keys answer its own queries
    and those of the stream that reads it side by side, and the second half of the
    answers is handed back.  With 2 streams l r the batch is

        keys l: queries l, r  ->  history of l, future of r
        keys r: queries r, l  ->  history of r, future of l

    Args:
        own: heads with which streams read themselves.
        across: heads with which they read each other: ``own`` again in the paper, where
            both take one product; None where they do not.
        layout: who reads whom.
        mask: (BD or 1, H or 1, D · Q, T'), added to the logits of the queries that
            read *this stream's* keys, its own first.
        dropout: rate on the attention weights.
    """
    if across is None:
        if mask is not None:
            mask = mask.chunk(layout.directions, dim=2)[0]
        return Parts(attend(*own, mask, dropout), None)
    readers = layout.read_by(across.query)
    if across is own:
        queries = torch.cat([own.query, readers], dim=2)
        answers = attend(queries, own.key, own.value, mask, dropout)
        history, future = answers.chunk(2, dim=2)
    else:
        first, second = (None, None) if mask is None else mask.chunk(2, dim=2)
        history = attend(*own, first, dropout)
        future = attend(readers, across.key, across.value, second, dropout)
    return Parts(history, layout.reads(future))
