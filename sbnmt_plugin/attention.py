"""Synchronous bidirectional self-attention, and cross-attention over shared keys.

Both modules subclass fairseq's ``MultiheadAttention``: they have its parameters
under its names and replace only the product of queries, keys and values.  The
same code trains, scores and decodes, on rows: a row is a live position of a stream in
training, the last step of a hypothesis in search.  What differs is how rows are laid
out for attention, which :class:`Streams` and :class:`DecoderCache` know:

             rows               queries of a stream  its keys        mask
    training labels of a batch  the T steps          the T steps     causal, padding
    search   N hypotheses       K hypotheses         K slots a step  ancestors

Padding is put in for attention alone: every other layer works on live rows only.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from sbnmt_plugin.directions import TRAINING, Layout, opposite

FIRST_CAPACITY = 32  # steps a cache holds before it doubles


class Streams(dict):  # type: ignore[type-arg]
    """The rows of a training batch: what is no padding in 2B streams of T steps.

    Rows are time-major.  With the streams ``a b c`` and ``d e`` they are a d b e c.

    Args:
        padding: (2B, T) True at padding.

    Attributes:
        directions: 2.
    """

    directions = TRAINING.directions

    def __init__(self, padding: Tensor) -> None:
        super().__init__()
        self.padding = padding
        self.shape = padding.size(1), padding.size(0)
        live = (~padding).t().flatten().nonzero().squeeze(1)  # of T · 2B places
        self.live = None if live.numel() == padding.numel() else live
        self._mask: Tensor | None = None
        self._source: Tensor | None = None

    def take(self, x: Tensor) -> Tensor:
        """(2B, T, C) -> the live rows, (1, n, C)."""
        return self.rows(x.transpose(0, 1))

    def rows(self, grid: Tensor) -> Tensor:
        """(T, 2B, C) -> the live rows, (1, n, C)."""
        flat = grid.flatten(0, 1)
        return (flat if self.live is None else flat.index_select(0, self.live))[None]

    def queries(self, x: Tensor) -> Tensor:
        """Rows (1, n, C) -> (T, 2B, C), zero at padding."""
        if self.live is None:
            return x[0].unflatten(0, self.shape)
        grid = x.new_zeros(self.padding.numel(), x.size(-1))
        return grid.index_copy(0, self.live, x[0]).unflatten(0, self.shape)

    def past(self, owner: nn.Module, *new: Tensor) -> list[Tensor]:
        """As :meth:`queries`, for each."""
        return [self.queries(x) for x in new]

    def give(self, x: Tensor) -> Tensor:
        """Rows (1, n, C) -> (2B, T, C), zero at padding."""
        return self.queries(x).transpose(0, 1)

    def weights(self, weights: Tensor) -> Tensor:
        """Cross-attention (H, 2B, T, S), as it is."""
        return weights

    def mask(self, dtype: torch.dtype) -> Tensor:
        """:func:`causal_mask`, one for all layers."""
        if self._mask is None or self._mask.dtype != dtype:
            padding, steps = self.padding, self.padding.size(1)
            self._mask = causal_mask(padding, steps, dtype, padding.device)
        return self._mask

    def source_mask(self, padding: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        """:func:`source_mask`, one for all layers."""
        if padding is not None and (
            self._source is None or self._source.dtype != dtype
        ):
            self._source = source_mask(padding, dtype)
        return self._source

    def encoder(self, owner: nn.Module, compute: Any) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder output."""
        return compute()


class DecoderCache(dict):  # type: ignore[type-arg]
    """Keys and values of the steps so far, handed to fairseq as incremental state.

    Nothing is moved when hypotheses are re-paired.  At every step the K hypotheses
    of a direction fill K slots; :attr:`ancestors` says which of them belong to whom.
    With K = 2, after a step at which both continued hypothesis 1::

        slots       1  2 | 1  2       ancestors of row 0: 1 1
        step        0  0 | 1  1       ancestors of row 1: 1 2

    so row 0 sees slots 1, 1' and row 1 sees slots 1, 2', and slot 2 of step 0 has no
    descendants.  Cached steps stay as computed with the partner of their time, also
    after re-pairing (algorithm, section 6).

    Entries are kept by attention module: buffers (BD, capacity · K, C) for
    self-attention, which grow by doubling, and the encoder's keys and values
    (B, H, S, C/H), one copy a sentence, for cross-attention.

    Args:
        layout: what the rows are.

    Attributes:
        length: t, steps begun.
        ancestors: (N, t) the rank, at each step, of the slot that is row's own past.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.directions = layout.directions
        self.length = 0
        self.ancestors: Tensor | None = None
        self._mask: Tensor | None = None
        self._source: Tensor | None = None
        self._steps: dict[nn.Module, list[Tensor]] = {}
        self._encoder: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def begin(self, rows: Tensor) -> None:
        """Begin a step.

        Args:
            rows: a tensor of N rows, on the device of the search.
        """
        rank = torch.arange(rows.size(0), device=rows.device) % self.layout.beam
        if self.ancestors is None:
            self.ancestors = rank.new_empty(rank.size(0), 0)
        self.ancestors = torch.cat([self.ancestors, rank[:, None]], dim=1)
        self.length += 1
        self._mask = None

    def take(self, x: Tensor) -> Tensor:
        """(N, 1, C) -> rows (1, N, C)."""
        return x.transpose(0, 1)

    def rows(self, grid: Tensor) -> Tensor:
        """(K, BD, C) -> rows (1, N, C)."""
        return grid.transpose(0, 1).flatten(0, 1)[None]

    def queries(self, x: Tensor) -> Tensor:
        """Rows (1, N, C) -> (K, BD, C)."""
        return x[0].unflatten(0, (-1, self.layout.beam)).transpose(0, 1)

    def give(self, x: Tensor) -> Tensor:
        """Rows (1, N, C) -> (N, 1, C)."""
        return x.transpose(0, 1)

    def weights(self, weights: Tensor) -> Tensor:
        """Cross-attention (H, BD, K, S) -> (H, N, 1, S)."""
        return weights.flatten(1, 2).unsqueeze(2)

    def past(self, owner: nn.Module, *new: Tensor) -> list[Tensor]:
        """Write this step's rows (1, N, C); the slots of all steps, (t · K, BD, C)."""
        beam = self.layout.beam
        new = tuple(x[0] for x in new)
        buffers = self._steps.get(owner)
        if buffers is None:
            streams = new[0].size(0) // beam
            shape = streams, FIRST_CAPACITY * beam, new[0].size(1)
            buffers = [x.new_empty(shape, dtype=attention_dtype(x)) for x in new]
        elif buffers[0].size(1) < self.length * beam:
            buffers = [torch.cat([x, torch.empty_like(x)], dim=1) for x in buffers]
        self._steps[owner] = buffers
        end = self.length * beam
        for buffer, x in zip(buffers, new):
            buffer[:, end - beam : end] = x.unflatten(0, (-1, beam))
        return [buffer[:, :end].transpose(0, 1) for buffer in buffers]

    def source_mask(self, padding: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        """:func:`source_mask`, one for all layers and steps of the same sentences."""
        if padding is not None and (
            self._source is None or self._source.dtype != dtype
        ):
            self._source = source_mask(padding, dtype)
        return self._source

    def mask(self, dtype: torch.dtype) -> Tensor | None:
        """What each query sees: (BD, 1, D · K, t · K), 0 or -inf, the same for all
        layers; None with one hypothesis a direction, who sees all.

        The first K rows are those of the direction's own hypotheses, row (d, k)
        seeing its ancestors; the other K are the opposite's, who see what (d, k)
        sees, or with ``best`` pairing what (d, 0) sees.
        """
        layout = self.layout
        if layout.beam == 1 or self.ancestors is None:
            return None
        if self._mask is None or self._mask.dtype != dtype:
            ranks = torch.arange(layout.beam, device=self.ancestors.device)
            hidden = self.ancestors[..., None] != ranks  # (N, t, K)
            hidden = hidden.view(-1, 1, layout.beam, self.length * layout.beam)
            if layout.directions == 2:
                across = hidden
                if layout.pairing == "best":
                    across = hidden[:, :, :1].expand_as(hidden)
                hidden = torch.cat([hidden, across], dim=2)
            self._mask = additive(hidden, dtype)
        return self._mask

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
        if self.ancestors is None:
            return
        shrunk = rows.numel() != self.ancestors.size(0)
        self.ancestors = self.ancestors[rows]
        if not shrunk:
            return
        self._source = None
        beam, group = self.layout.beam, self.layout.group
        streams, sentences = rows[::beam] // beam, rows[::group] // group
        for buffers in self._steps.values():
            for i, buffer in enumerate(buffers):
                buffers[i] = buffer.index_select(0, streams)
        for owner, pair in self._encoder.items():
            keys, values = (x.index_select(0, sentences) for x in pair)
            self._encoder[owner] = (keys, values)


def attention_dtype(x: Tensor) -> torch.dtype:
    """In what numbers attention is computed and cached: float32 for bfloat16 on a CPU,
    which is faster there for few queries, and more exact; else as they are."""
    narrow = x.is_cpu and x.dtype == torch.bfloat16
    return torch.float32 if narrow else x.dtype


def additive(hidden: Tensor, dtype: torch.dtype) -> Tensor:
    """-inf where hidden, else 0: to be added to attention logits."""
    zeros = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device)
    return zeros.masked_fill_(hidden, float("-inf"))


def attend_both_ways(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    directions: int = 2,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> tuple[Tensor, ...]:
    """History and future attention (paper, equations 3 and 7), two softmaxes.

    ``future[row] = attention(query[row], key[opposite(row)], value[opposite(row)])``
    is computed without moving a key: every direction's keys answer its own queries
    and the opposite's side by side, and the second half of the answers is handed
    back.  With 2 rows l r the batch is

        keys l: queries l, r  ->  history of l, future of r
        keys r: queries r, l  ->  history of r, future of l

    With one direction there is no future.

    Args:
        query: (BD, H, Q, C/H).
        key, value: (BD, H, T, C/H).
        mask: (BD or 1, 1, D · Q, T), added to the logits of the queries that read
            *this row's* keys, its own first.
        dropout: rate on the attention weights.

    Returns:
        history, and with two directions future: (BD, H, Q, C/H) each.
    """
    asking = [query, opposite(query)] if directions == 2 else [query]
    queries = torch.cat(asking, dim=2)
    answers = F.scaled_dot_product_attention(queries, key, value, mask, dropout)
    history, *future = answers.split(query.size(2), dim=2)
    return history, *(opposite(x) for x in future)


def causal_mask(
    padding: Tensor | None, steps: int, dtype: torch.dtype, device: torch.device
) -> Tensor:
    """M_hist and M_fut: query i sees key j if j ≤ i and j is not padding.

    Padding is that of the row whose keys are read, so both masks are the same, and
    follow each other for :func:`attend_both_ways`.  The tag at j = 0 is never padding,
    so no query sees nothing.

    Args:
        padding: (2B, T) True at padding of each row's own stream, or None.

    Returns:
        (2B or 1, 1, 2T, T), 0 or -inf.
    """
    hidden = torch.ones(steps, steps, dtype=torch.bool, device=device).triu(1)
    hidden = hidden.repeat(2, 1)[None, None]
    if padding is not None:
        hidden = hidden | padding[:, None, None, :]
    return additive(hidden, dtype)


def source_mask(padding: Tensor, dtype: torch.dtype) -> Tensor:
    """(B, S) True at padding -> (B, 1, 1, S), 0 or -inf."""
    return additive(padding[:, None, None], dtype)


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
        incremental_state: Streams | DecoderCache | None = None,
        need_weights: bool = False,
        attn_mask: Tensor | None = None,
    ) -> tuple[Tensor, None]:
        """Attend to the own stream's past and the opposite stream's past.

        Args:
            query: rows (1, n, C).
            key, value: the query (fairseq's call passes them).
            key_padding_mask, attn_mask: None; the state knows them.
            incremental_state: how the rows are laid out.

        Returns:
            rows (1, n, C), and None where fairseq returns weights.
        """
        assert incremental_state is not None, "rows without a layout"
        state = incremental_state
        dtype = attention_dtype(query)
        q = state.queries(self.q_proj(query))  # (Q, BD, C)
        k, v = state.past(self, self.k_proj(query), self.v_proj(query))
        q, k, v = (self._heads(x.to(dtype)) for x in (q, k, v))
        dropout = self.dropout_module.p if self.training else 0.0
        mask = state.mask(dtype)
        parts = attend_both_ways(q, k, v, state.directions, mask, dropout)
        if self.watcher is not None:
            self.watcher(q, k, mask, *parts)
        fused = self.fusion(*parts)  # (BD, H, Q, C/H)
        joined = state.rows(fused.permute(2, 0, 1, 3).flatten(2))
        return self.out_proj(joined.to(query.dtype)), None

    def _heads(self, x: Tensor) -> Tensor:
        """(Q, BD, C) -> (BD, H, Q, C/H)."""
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
        incremental_state: Streams | DecoderCache | None = None,
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
            incremental_state: how the rows are laid out.

        Returns:
            rows (1, n, C); and the weights where asked for: (H, N, T, S) with
            ``need_head_weights``, else their mean over the heads (N, T, S).
        """
        assert incremental_state is not None, "rows without a layout"
        state = incremental_state
        dtype = attention_dtype(query)

        def keys_and_values() -> tuple[Tensor, Tensor]:
            k, v = (
                x.to(dtype).unflatten(-1, (self.num_heads, -1)).permute(1, 2, 0, 3)
                for x in (self.k_proj(key), self.v_proj(key))
            )
            return k, v  # (B, H, S, C/H)

        k, v = state.encoder(self, keys_and_values)
        grid = state.queries(self.q_proj(query))  # (Q, BD, C)
        steps, streams, _ = grid.shape
        # (Q, BD, C) -> (Q, B, D, H, C/H) -> (B, H, DQ, C/H)
        q = grid.unflatten(2, (self.num_heads, -1)).unflatten(1, (k.size(0), -1))
        q = q.permute(1, 3, 2, 0, 4).flatten(2, 3).to(dtype)
        mask = state.source_mask(key_padding_mask, dtype)
        dropout = self.dropout_module.p if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, mask, dropout)
        out = out.unflatten(2, (-1, steps)).permute(3, 0, 2, 1, 4)  # (Q, B, D, H, C/H)
        out = state.rows(out.reshape(steps, streams, self.embed_dim))
        out = self.out_proj(out.to(query.dtype))
        if not need_weights:
            return out, None
        logits = q @ k.transpose(-1, -2) * self.scaling  # (B, H, DQ, S)
        if mask is not None:
            logits = logits + mask
        weights = logits.softmax(-1, dtype=torch.promote_types(dtype, torch.float32))
        weights = weights.unflatten(2, (-1, steps)).permute(1, 0, 2, 3, 4).flatten(1, 2)
        weights = state.weights(weights)
        return out, weights if need_head_weights else weights.mean(0)
