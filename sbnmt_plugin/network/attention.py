"""Synchronous bidirectional self-attention, and cross-attention over shared keys.

Both modules subclass fairseq's ``MultiheadAttention``: they have its parameters
under its names and replace only the product of queries, keys and values.  The
same code trains, scores and decodes; what differs is how rows are put on a grid, which
:mod:`grid` knows.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from sbnmt_plugin.network.dot_product import attend, attend_at_once, attend_both_ways
from sbnmt_plugin.network.grid import AttentionGrid
from sbnmt_plugin.network.reader import Reader
from sbnmt_plugin.numerics import (
    additive,
    attention_dtype,
    by_onednn,
    narrow_products,
    wide,
)


class SBSelfAttention(MultiheadAttention):
    """Synchronous bidirectional multi-head attention (paper, equations 8-10).

    Args:
        fusion: gives what history and future contribute, per head; their sum, or with
            a reader the first alone, is what the output projection takes.
        shift: whether the future finds at key j the value of j - 1: where the other
            stream has written my last word, the word that it wrote before it, which is
            my next one.  Not in the paper, whose future finds j's own value; then it
            takes two layers to read on (one that moves each value by a place).
        reader: what the directions read each other with, where they do not do it as
            each reads itself; its ``out_proj`` then adds the future to what the output
            projection makes of the history.  Not in the paper.
        others: as fairseq's ``MultiheadAttention``.

    Attributes:
        watcher: where set, called with what :func:`attend_both_ways` takes and gives:
            the queries and keys of reading across, mask, history and future.
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
            query: rows (1, n, C).
            key, value: the query (fairseq's call passes them).
            key_padding_mask, attn_mask: None; the grid knows them.
            incremental_state: the grid that the rows are put on.

        Returns:
            rows (1, n, C), and None where fairseq returns weights.
        """
        assert incremental_state is not None, "rows without a grid"
        grid = incremental_state
        dtype = attention_dtype(query)
        q = grid.queries(self.q_proj(query))  # (Q, BD, C)
        value = self.v_proj(query)
        k, v = grid.past(self, self.k_proj(query), value)
        q, k, v = (self._heads(x.to(dtype)) for x in (q, k, v))
        across = None
        if grid.layout.directions == 2:
            across = self._across(query, q, k, value, grid)
        dropout = self.dropout_module.p if self.training else 0.0
        mask = grid.mask(dtype, self.num_heads)
        parts = attend_both_ways(q, k, v, grid.layout, mask, dropout, across)
        if self.watcher is not None and len(parts) == 2:  # rescoring has no opposite
            asked, keys, *_ = across or (q, k)
            self.watcher(asked, keys, mask, *parts)
        kept, *added = self.fusion(*parts)  # (BD, H, Q, C/H)
        if added and self.reader is None:
            kept = kept + added.pop()
        found = self.out_proj(self._joined(kept, grid, query.dtype))
        if added and self.reader is not None:
            read = self._joined(added.pop(), grid, query.dtype)
            found = found + self.reader.out_proj(read)
        return found, None

    def ablate(self) -> RemovableHandle:
        """Fuse with a future of zeros: see :class:`protocol.Ablatable`."""

        def forget(_: Any, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            history, *future = parts
            return history, *(torch.zeros_like(part) for part in future)

        return self.fusion.register_forward_pre_hook(forget)

    def _across(
        self, rows: Tensor, q: Tensor, k: Tensor, value: Tensor, grid: AttentionGrid
    ) -> tuple[Tensor, Tensor, Tensor] | None:
        """What the directions read each other with, if not with what is their own."""
        if self.reader is not None:
            found = self.reader(rows, grid, self.shift)
            asked, keys, values = (self._heads(x.to(k.dtype)) for x in found)
            return asked, keys, values
        if self.shift:
            return q, k, self._heads(grid.past_before(self, value).to(k.dtype))
        return None

    def _joined(self, x: Tensor, grid: AttentionGrid, dtype: torch.dtype) -> Tensor:
        """(BD, H, Q, C/H) -> rows (1, n, C)."""
        return grid.joined(x.unflatten(0, (-1, grid.layout.directions))).to(dtype)

    def _heads(self, x: Tensor) -> Tensor:
        """(Q, BD, C) -> (BD, H, Q, C/H)."""
        return x.view(*x.shape[:2], self.num_heads, -1).permute(1, 2, 0, 3)


class EncoderSelfAttention(MultiheadAttention):
    """fairseq's attention of an encoder, in the numbers in which attention is computed.

    It differs from fairseq's where these are not the products'.  fairseq would round to
    bfloat16 between its steps there, with kernels that a batch of one and a larger
    one do not share: most values would depend on a sentence's company.  And it calls
    its projections, where fairseq reads their weights, so that they may be oneDNN's.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        **others: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend to the source.

        Args:
            query, key, value: rows (S, B, C), the same.
            key_padding_mask: (B, S) True at padding.
            need_weights, attn_mask, others: for fairseq's, which is taken where they
                ask for more than an encoder does.

        Returns:
            (S, B, C); and None, or what fairseq's gives.
        """
        dtype = attention_dtype(query)
        own = dtype == query.dtype and not narrow_products(query)
        if (own and not by_onednn(query)) or need_weights or attn_mask is not None:
            found: tuple[Tensor, Tensor | None] = super().forward(
                query,
                key,
                value,
                key_padding_mask=key_padding_mask,
                need_weights=need_weights,
                attn_mask=attn_mask,
                **others,
            )
            return found
        q, k, v = (
            x.to(dtype).unflatten(-1, (self.num_heads, -1)).permute(1, 2, 0, 3)
            for x in (self.q_proj(query), self.k_proj(query), self.v_proj(query))
        )  # (B, H, S, C/H)
        mask = None
        if key_padding_mask is not None:
            mask = additive(key_padding_mask[:, None, None], dtype)
        dropout = self.dropout_module.p if self.training else 0.0
        out = attend_at_once(q, k, v, mask, dropout)  # one way, of whatever lengths
        out = out.permute(2, 0, 1, 3).flatten(2)
        return self.out_proj(out.to(query.dtype)), None


class GroupedCrossAttention(MultiheadAttention):
    """Cross-attention of all rows of a sentence to one copy of its encoder output.

    The queries of all rows of a sentence are grouped on its keys;
    fairseq copies the encoder output to every row instead.

    Attributes:
        memory: name of what is read: see :meth:`grid.AttentionGrid.memory_mask`.
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
            query: rows (1, n, C).
            key: encoder output (S, B, C').
            key_padding_mask: (B, S) True at padding.
            incremental_state: the grid that the rows are put on.

        Returns:
            rows (1, n, C); and the weights where asked for: (H, N, T, S), in search
            (H, N, 1, S), with ``need_head_weights``, else their mean over the heads.
        """
        assert incremental_state is not None, "rows without a grid"
        grid = incremental_state
        dtype = attention_dtype(query)

        def keys_and_values() -> tuple[Tensor, Tensor]:
            k, v = (
                x.to(dtype).unflatten(-1, (self.num_heads, -1)).permute(1, 2, 0, 3)
                for x in (self.k_proj(key), self.v_proj(key))
            )
            return k, v  # (B, H, S, C/H)

        k, v = grid.encoder(self, keys_and_values)
        queries = grid.queries(self.q_proj(query))  # (Q, BD, C)
        steps = len(queries)
        # (Q, BD, C) -> (Q, B, D, H, C/H) -> (B, H, DQ, C/H)
        q = queries.view(steps, len(k), -1, self.num_heads, self.head_dim)
        q = q.permute(1, 3, 2, 0, 4).flatten(2, 3).to(dtype)
        mask = grid.memory_mask(self.memory, key_padding_mask, dtype, self.num_heads)
        dropout = self.dropout_module.p if self.training else 0.0
        out = attend(q, k, v, mask, dropout)
        out = grid.joined(out.unflatten(2, (-1, steps)).transpose(1, 2))
        out = self.out_proj(out.to(query.dtype))
        if not need_weights:
            return out, None
        q, k = (x.to(wide(dtype)) for x in (q, k))  # half precision would overflow
        logits = q @ k.transpose(-1, -2) * self.scaling  # (B, H, DQ, S)
        if mask is not None:
            logits = logits + mask
        weights = logits.softmax(-1)
        weights = weights.unflatten(2, (-1, steps)).permute(1, 0, 2, 3, 4).flatten(1, 2)
        weights = grid.weights(weights)
        return out, weights if need_head_weights else weights.mean(0)
