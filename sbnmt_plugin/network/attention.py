"""Synchronous bidirectional self-attention, and cross-attention over shared keys.

Both modules subclass fairseq's ``MultiheadAttention``: they have its parameters
under its names and replace only the product of queries, keys and values.  The
same code trains, scores and decodes; the only difference is the grid on which rows are
put, see :mod:`grid`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from sbnmt_plugin.network.dot_product import (
    Heads,
    attend,
    attend_both_ways,
    split_heads,
)
from sbnmt_plugin.network.grid import AttentionGrid
from sbnmt_plugin.numerics import attention_dtype, wide


class Reader(nn.Module):
    """Projections with which a stream reads the other, beside those of its own past.

    Its output is 0 at first, since ``out_proj`` starts at 0, and wherever there is
    nothing to read, since no projection has a bias.  Not in the paper.

    Args:
        channels: C.
        wrap: applied to each projection (fairseq's quantisation noise).
    """

    def __init__(self, channels: int, wrap: Callable[[nn.Linear], Any]) -> None:
        super().__init__()

        def projection() -> Any:
            made = nn.Linear(channels, channels, bias=False)
            nn.init.xavier_uniform_(made.weight, gain=2**-0.5)  # as fairseq's three
            return wrap(made)

        self.q_proj, self.k_proj, self.v_proj = (projection() for _ in range(3))
        self.out_proj = projection()
        nn.init.zeros_(self.out_proj.weight)

    def forward(
        self, rows: Tensor, grid: AttentionGrid, shift: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute queries, keys and values of rows (n, C).

        Args:
            grid: places of the rows.
            shift: whether a key has the value of the step before.

        Returns:
            rows (n, C), and twice (T', BD, C).
        """
        queries = self.q_proj(rows)
        if shift:
            (keys,) = grid.past(self, self.k_proj(rows))
            return queries, keys, grid.past_before(self, self.v_proj(rows))
        keys, values = grid.past(self, self.k_proj(rows), self.v_proj(rows))
        return queries, keys, values


class SBSelfAttention(MultiheadAttention):
    """Synchronous bidirectional multi-head attention (paper, equations 8-10).

    Args:
        fusion: contributions of history and future, per head; the output projection
            takes their sum, or with a reader that of the history.
        shift: whether the future finds at key j the value of j - 1: where the other
            stream has written my last word, the word that it wrote before it, which is
            my next one.  Not in the paper, whose future finds j's own value; then it
            takes two layers to read on (one that moves each value by a place).
        reader: projections with which the directions read each other, where they do
            not do it as each reads itself.  Not in the paper.
        others: as fairseq's ``MultiheadAttention``.

    Attributes:
        watcher: where set, called with queries and keys of reading across, the mask,
            history and future; not while streams are written alone, as in rescoring.
    """

    watcher: Any = None
    shift: bool = False
    ablated = "future"

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        fusion: nn.Module,
        shift: bool = False,
        reader: Reader | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(embed_dim, num_heads, self_attention=True, **kwargs)
        self.fusion = fusion
        self.shift = shift
        self.reader = reader

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        incremental_state: AttentionGrid | None = None,
        need_weights: bool = False,
        attn_mask: Tensor | None = None,
    ) -> tuple[Tensor, None]:
        """Attend to the own stream's past and the opposite stream's past.

        Args:
            query: rows (n, C).
            key, value: the query (fairseq's call passes them).
            key_padding_mask, attn_mask: None; the grid knows them.
            incremental_state: the grid on which the rows are put.

        Returns:
            rows (n, C), and None where fairseq returns weights.
        """
        assert incremental_state is not None, "rows without a grid"
        grid = incremental_state
        dtype = attention_dtype(query)
        # In the backward pass the three gradients are added up in the opposite order.
        # Another order rounds differently, and trains another model.
        rows, value = self.q_proj(query), self.v_proj(query)
        past = grid.past(self, self.k_proj(query), value)
        own = self._heads(dtype, grid, rows, *past)
        across = None
        # with a λ of 0 nothing of the other stream is added: nothing is read
        read = self.fusion.adds or self.watcher is not None or self.reader is not None
        if grid.layout.directions == 2 and read:
            across = self._across(query, own, value, grid)
        dropout = self.dropout_module.p if self.training else 0.0
        mask = grid.mask(dtype, self.num_heads)
        parts = attend_both_ways(own, across, grid.layout, mask, dropout)
        if self.watcher is not None and across is not None:
            self.watcher(across.query, across.key, mask, *parts)
        history, future = self.fusion(*parts)
        reader = self.reader
        if future is not None and reader is None:
            history = history + future
        found = self.out_proj(grid.joined(history).to(query.dtype))
        if future is not None and reader is not None:
            found = found + reader.out_proj(grid.joined(future).to(query.dtype))
        return found, None

    def ablate(self) -> RemovableHandle:
        """Fuse without a future: see :class:`protocol.Ablatable`."""
        return self.fusion.register_forward_pre_hook(lambda _, pair: (pair[0], None))

    def _across(
        self, rows: Tensor, own: Heads, value: Tensor, grid: AttentionGrid
    ) -> Heads:
        """Return the heads with which the directions read each other."""
        dtype = own.key.dtype
        if self.reader is not None:
            return self._heads(dtype, grid, *self.reader(rows, grid, self.shift))
        if self.shift:
            before = grid.past_before(self, value)
            return own._replace(value=split_heads(before, self.num_heads, dtype))
        return own

    def _heads(
        self, dtype: torch.dtype, grid: AttentionGrid, rows: Tensor, *past: Tensor
    ) -> Heads:
        """Split queries, rows (n, C), and keys and values, twice (T', BD, C)."""
        queries = grid.queries(rows, self.num_heads).to(dtype)
        return Heads(queries, *(split_heads(x, self.num_heads, dtype) for x in past))


class GroupedCrossAttention(MultiheadAttention):
    """Cross-attention of all rows of a sentence to one copy of its encoder output.

    The queries of all rows of a sentence are grouped on its keys; fairseq copies the
    encoder output to every row instead.

    Attributes:
        memory: name of the output: see :meth:`grid.AttentionGrid.memory_mask`.
    """

    memory = "source"

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        incremental_state: AttentionGrid | None = None,
        need_weights: bool = True,
        static_kv: bool = True,
        attn_mask: Tensor | None = None,
        need_head_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend to the source.

        Args:
            query: rows (n, C).
            key: encoder output (S, B, C').
            key_padding_mask: (B, S) True at padding.
            incremental_state: the grid on which the rows are put.

        Returns:
            rows (n, C); and, in search alone and where asked for, the weights: (H, N,
            1, S) with ``need_head_weights``, else their mean over the heads.
        """
        assert incremental_state is not None, "rows without a grid"
        grid = incremental_state
        dtype = attention_dtype(query)

        def keys_and_values() -> tuple[Tensor, Tensor]:
            k, v = (
                split_heads(x, self.num_heads, dtype)
                for x in (self.k_proj(key), self.v_proj(key))
            )
            return k, v  # (B, H, S, C/H)

        k, v = grid.encoder(self, keys_and_values)
        q = grid.grouped_queries(self.q_proj(query), self.num_heads, len(k)).to(dtype)
        mask = grid.memory_mask(self.memory, key_padding_mask, dtype, self.num_heads)
        dropout = self.dropout_module.p if self.training else 0.0
        out = attend(q, k, v, mask, dropout)
        out = self.out_proj(grid.grouped_joined(out).to(query.dtype))
        if not need_weights:
            return out, None
        q, k = (x.to(wide(dtype)) for x in (q, k))  # half precision would overflow
        logits = q @ k.transpose(-1, -2) * self.scaling  # (B, H, DQ, S)
        if mask is not None:
            logits = logits + mask
        weights = logits.softmax(-1)
        weights = weights.transpose(0, 1)  # (H, B, DQ, S)
        weights = grid.weights(weights)
        return out, weights if need_head_weights else weights.mean(0)
