"""Encoders: attention in the dtype of our decoders, and sources of any length."""

from __future__ import annotations

from typing import Any

from fairseq.models import FairseqEncoder
from fairseq.modules import MultiheadAttention
from torch import Tensor

from sbnmt_plugin.network.dot_product import attend_at_once
from sbnmt_plugin.numerics import (
    additive,
    attention_dtype,
    by_onednn,
    narrow_products,
)

POSITIONS = 100_000  # as many as fairseq's LSTM takes


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


class UnlimitedEncoder(FairseqEncoder):
    """An encoder whose ``encoder_out`` is time-major, and all else sentence-major."""

    def words_first(self, src_tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Where there is padding, and the columns that put it behind the words, (B, S).

        Args:
            src_tokens: (B, S), padded on either side.
        """
        padding = src_tokens.eq(self.dictionary.pad())
        return padding, padding.byte().sort(dim=1, stable=True).indices

    def reorder_encoder_out(
        self, encoder_out: dict[str, list[Tensor]], new_order: Tensor
    ) -> dict[str, list[Tensor]]:
        """fairseq's; sentences may be copied."""
        return {
            name: [x.index_select(int(name == "encoder_out"), new_order) for x in found]
            for name, found in encoder_out.items()
        }

    def max_positions(self) -> int:
        """Of the source."""
        return POSITIONS
