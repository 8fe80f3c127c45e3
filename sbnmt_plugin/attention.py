"""Synchronous bidirectional self-attention, and cross-attention over shared keys.

Both modules subclass fairseq's ``MultiheadAttention``: they have its parameters
under its names and replace only the product of queries, keys and values.  The
same code trains, scores and decodes; with a :class:`DecoderCache` the queries
are one step long and the keys are those of all steps so far.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from sbnmt_plugin.directions import TRAINING, Layout, opposite

FIRST_CAPACITY = 32  # steps a cache holds before it doubles


class DecoderCache(dict):  # type: ignore[type-arg]
    """Keys and values of the steps so far, handed to fairseq as incremental state.

    Entries are kept by attention module: time-major buffers (capacity, N, C) for
    self-attention, which grow by doubling, and the encoder's keys and values
    (B, H, S, C/H), one copy a sentence, for cross-attention.

    Cached steps stay as computed with the partner of their time, also after
    hypotheses have been re-paired (algorithm, section 6).

    Args:
        layout: what the rows are.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.length = 0  # steps in the buffers, set by advance()
        self._steps: dict[nn.Module, list[Tensor]] = {}
        self._encoder: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def append(self, owner: nn.Module, *new: Tensor) -> list[Tensor]:
        """Write this step's rows (1, N, C) and return all steps, (t + 1, N, C)."""
        buffers = self._steps.get(owner)
        if buffers is None:
            buffers = [x.new_empty(FIRST_CAPACITY, *x.shape[1:]) for x in new]
        elif buffers[0].size(0) == self.length:
            buffers = [torch.cat([x, torch.empty_like(x)]) for x in buffers]
        self._steps[owner] = buffers
        for buffer, x in zip(buffers, new):
            buffer[self.length] = x[0]
        return [buffer[: self.length + 1] for buffer in buffers]

    def advance(self) -> None:
        """Count the step that all layers have now written."""
        self.length += 1

    def encoder(self, owner: nn.Module, compute: Any) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder output, computed at the first step."""
        if owner not in self._encoder:
            self._encoder[owner] = compute()
        return self._encoder[owner]

    def select(self, rows: Tensor) -> None:
        """Make row i what row ``rows[i]`` was.

        Args:
            rows: (N',) row numbers, parents of the hypotheses that live on.  Fewer
                than before where sentences have finished: whole ones are left out.
        """
        shrunk = False
        for buffers in self._steps.values():
            shrunk = rows.numel() != buffers[0].size(1)
            for i, buffer in enumerate(buffers):
                moved = buffer[: self.length].index_select(1, rows)
                if shrunk:
                    buffers[i] = buffer.new_empty(buffer.size(0), *moved.shape[1:])
                buffers[i][: self.length] = moved
        if shrunk:
            sentences = rows[:: self.layout.group] // self.layout.group
            for owner, pair in self._encoder.items():
                keys, values = (x.index_select(0, sentences) for x in pair)
                self._encoder[owner] = (keys, values)


def attend_both_ways(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    layout: Layout,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """History and future attention (paper, equations 3 and 7), two softmaxes.

    ``future[row] = attention(query[row], key[opposite(row)], value[opposite(row)])``
    is computed without moving a key: every row's keys answer its own queries and
    those of the opposite row side by side, and the second half of the answers is
    handed back.  With 2 rows l r the batch is

        keys l: queries l, r  ->  history of l, future of r
        keys r: queries r, l  ->  history of r, future of l

    Args:
        query: (N, H, T, C/H).
        key, value: (N, H, T', C/H), T' = T in training, all steps so far in search.
        mask: (N or 1, 1, T, T') bool, True where query i may see key j of *this
            row's* keys; the same for both queries that read them.
        dropout: rate on the attention weights.

    Returns:
        history, future: (N, H, T, C/H) each.
    """
    if layout.pairing == "best" and layout.beam > 1:
        history = F.scaled_dot_product_attention(query, key, value, mask, dropout)
        return history, _attend_to_best(query, key, value, layout, dropout)
    steps = query.size(2)
    queries = torch.cat([query, opposite(query, layout.beam)], dim=2)
    if mask is not None:
        mask = mask.repeat(1, 1, 2, 1)
    both = F.scaled_dot_product_attention(queries, key, value, mask, dropout)
    history, future = both.split(steps, dim=2)
    return history, opposite(future, layout.beam)


def _attend_to_best(
    query: Tensor, key: Tensor, value: Tensor, layout: Layout, dropout: float
) -> Tensor:
    """Future attention where all K hypotheses look at the other side's first.

    The K single-step queries of a direction become K queries to one set of keys.
    """
    flipped = opposite(query, layout.beam)  # row (d, k) now asks the keys of d
    asked = flipped.squeeze(2).unflatten(0, (-1, layout.beam))  # (BD, K, H, C/H)
    best_key, best_value = (x[:: layout.beam] for x in (key, value))
    answers = F.scaled_dot_product_attention(
        asked.transpose(1, 2), best_key, best_value, None, dropout
    )  # (BD, H, K, C/H)
    return opposite(answers.transpose(1, 2).flatten(0, 1).unsqueeze(2), layout.beam)


def causal_mask(padding: Tensor | None, steps: int, device: torch.device) -> Tensor:
    """Key j is visible to query i if j ≤ i and j is not padding: M_hist and M_fut.

    The tag at j = 0 is never padding, so no row is empty.

    Args:
        padding: (N, T) True at padding of each row's own stream, or None.

    Returns:
        (N or 1, 1, T, T) bool.
    """
    mask = torch.ones(steps, steps, dtype=torch.bool, device=device).tril()
    mask = mask[None, None]
    return mask if padding is None else mask & ~padding[:, None, None, :]


class SBSelfAttention(MultiheadAttention):  # type: ignore[misc]
    """Synchronous bidirectional multi-head attention (paper, equations 8-10).

    Args:
        fusion: module that joins history and future per head, before the output
            projection.
        others: as fairseq's ``MultiheadAttention``.

    Attributes:
        watcher: where set, called with queries, keys, history and future; see
            :mod:`trace`.
    """

    watcher: Any = None

    def __init__(
        self, embed_dim: int, num_heads: int, fusion: nn.Module, **kwargs: Any
    ) -> None:
        super().__init__(embed_dim, num_heads, self_attention=True, **kwargs)
        self.fusion = fusion

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        incremental_state: DecoderCache | None = None,
        need_weights: bool = False,
        attn_mask: Tensor | None = None,
    ) -> tuple[Tensor, None]:
        """Attend to the own stream's past and the opposite stream's past.

        Args:
            query: (T, N, C), one step (1, N, C) with a cache.
            key, value: the query (fairseq's call passes them).
            key_padding_mask: (N, T) True at padding of the row's own stream.
            incremental_state: the cache in search.
            attn_mask: fairseq's additive causal mask; the boolean mask built
                here says the same and knows the padding too.

        Returns:
            (T, N, C), and None where fairseq returns weights.
        """
        steps, rows, _ = query.shape
        q = self.q_proj(query)
        k, v = self.k_proj(query), self.v_proj(query)
        if incremental_state is None:
            layout, mask = TRAINING, causal_mask(key_padding_mask, steps, query.device)
        else:
            layout, mask = incremental_state.layout, None
            k, v = incremental_state.append(self, k, v)
        q, k, v = (self._heads(x) for x in (q, k, v))
        dropout = self.dropout_module.p if self.training else 0.0
        history, future = attend_both_ways(q, k, v, layout, mask, dropout)
        if self.watcher is not None:
            self.watcher(q, k, history, future)
        fused = self.fusion(history, future)  # (N, H, T, C/H)
        joined = fused.permute(2, 0, 1, 3).reshape(steps, rows, self.embed_dim)
        return self.out_proj(joined), None

    def _heads(self, x: Tensor) -> Tensor:
        """(T, N, C) -> (N, H, T, C/H)."""
        return x.unflatten(-1, (self.num_heads, -1)).permute(1, 2, 0, 3)


class GroupedCrossAttention(MultiheadAttention):  # type: ignore[misc]
    """Cross-attention of all rows of a sentence to one copy of its encoder output.

    The queries of the G = D * K rows of a sentence are grouped on its keys;
    fairseq copies the encoder output to every row instead.
    """

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        incremental_state: DecoderCache | None = None,
        need_weights: bool = True,
        static_kv: bool = True,
        attn_mask: Tensor | None = None,
        need_head_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend to the source.

        Args:
            query: (T, N, C), N = B * G.
            key: encoder output (S, B, C').
            key_padding_mask: (B, S) True at padding.

        Returns:
            (T, N, C); and the weights where asked for: (H, N, T, S) with
            ``need_head_weights``, else their mean over the heads (N, T, S).
        """
        steps, rows, _ = query.shape

        def keys_and_values() -> tuple[Tensor, Tensor]:
            pair = self.k_proj(key), self.v_proj(key)  # (S, B, C)
            k, v = (
                x.unflatten(-1, (self.num_heads, -1)).permute(1, 2, 0, 3) for x in pair
            )
            return k, v  # (B, H, S, C/H)

        if incremental_state is None:
            k, v = keys_and_values()
        else:
            k, v = incremental_state.encoder(self, keys_and_values)
        sentences = k.size(0)
        # (T, BG, C) -> (T, B, G, H, C/H) -> (B, H, GT, C/H)
        q = self.q_proj(query).view(steps, sentences, -1, self.num_heads, self.head_dim)
        q = q.permute(1, 3, 2, 0, 4).flatten(2, 3)
        mask = None if key_padding_mask is None else ~key_padding_mask[:, None, None]
        dropout = self.dropout_module.p if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, mask, dropout)
        out = out.unflatten(2, (-1, steps)).permute(3, 0, 2, 1, 4)  # (T, B, G, H, C/H)
        out = self.out_proj(out.reshape(steps, rows, self.embed_dim))
        if not need_weights:
            return out, None
        logits = q @ k.transpose(-1, -2) * self.scaling  # (B, H, GT, S)
        if mask is not None:
            logits = logits.masked_fill(~mask, float("-inf"))
        weights = logits.softmax(-1, dtype=torch.promote_types(q.dtype, torch.float32))
        weights = weights.unflatten(2, (-1, steps)).permute(1, 0, 2, 3, 4).flatten(1, 2)
        return out, weights if need_head_weights else weights.mean(0)
