"""Encoders: attention in the dtype of our decoders, and a base for families' own."""

from __future__ import annotations

from typing import Any

from fairseq.models import FairseqEncoder
from fairseq.modules import MultiheadAttention
from torch import Tensor

from sbnmt_plugin.network.dot_product import attend_at_once, split_heads
from sbnmt_plugin.numerics import additive, attention_dtype, by_onednn, narrow_products

POSITIONS = 100_000  # as many as fairseq's LSTM takes


class EncoderSelfAttention(MultiheadAttention):
    """fairseq's attention of an encoder, in the dtype of our decoders' attention.

    It differs from fairseq's where the linear layers have another dtype.  fairseq would
    round to bfloat16 between its steps there, with kernels that depend on the size of
    the batch: most values would depend on the other sentences.  And it calls its
    projections, where fairseq reads their weights, so that oneDNN may compute them.
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
            need_weights, attn_mask, others: for fairseq's attention, which computes
                the answer where they ask for more than an encoder does.

        Returns:
            (S, B, C); and None, or fairseq's weights.
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
            split_heads(x, self.num_heads, dtype)
            for x in (self.q_proj(query), self.k_proj(query), self.v_proj(query))
        )  # (B, H, S, C/H)
        mask = None
        if key_padding_mask is not None:
            mask = additive(key_padding_mask[:, None, None], dtype)
        dropout = self.dropout_module.p if self.training else 0.0
        out = attend_at_once(q, k, v, mask, dropout)  # one way, of whatever lengths
        out = out.permute(2, 0, 1, 3).flatten(2)
        return self.out_proj(out.to(query.dtype)), None


class UnlimitedEncoder(FairseqEncoder):
    """Base of encoders that take padding on either side, and :data:`POSITIONS` tokens.

    Their ``encoder_out`` is time-major, and all else sentence-major.
    """

    def words_first(self, src_tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Find padding, and the order of columns that puts it behind the words.

        Args:
            src_tokens: (B, S), padded on either side.

        Returns:
            (B, S) True at padding, and (B, S) columns.
        """
        padding = src_tokens.eq(self.dictionary.pad())
        return padding, padding.byte().sort(dim=1, stable=True).indices

    def max_positions(self) -> int:
        """Return the length of the longest source."""
        return POSITIONS
