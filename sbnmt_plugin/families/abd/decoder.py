"""Decoders of ABD-NMT: both write one direction, and one of them reads the other.

With a a row of the forward decoder, H the source and R the backward decoder's states::

    a ← LN(a + SelfAtt(a))
    a ← LN(a + SrcAtt(a; H) + RevAtt(a; R))
    a ← LN(a + FFN(a))

Two softmaxes, one query, one residual.  The authors' first release joins both contexts
by concatenation: a matrix on a concatenation is the sum of two output projections.
Departs from their later release, a Transformer, which stacks RevAtt as a block of its
own between source attention and feed-forward layer: in parallel, fairseq's layer stays
as it is.  Both have the parameters of the SB-NMT paper's Table 6, within its rounding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from sbnmt_plugin.network.attention import GroupedCrossAttention
from sbnmt_plugin.network.decoder import SBTransformerDecoder
from sbnmt_plugin.network.decoder_layer import SBDecoderLayer
from sbnmt_plugin.network.fusion import Interpolation
from sbnmt_plugin.network.grid import AttentionGrid

Pair = tuple[Tensor, Tensor]  # of the source, and of the backward decoder


class ReverseAttention(GroupedCrossAttention):
    """RevAtt: attention to the states of the backward decoder."""

    memory = "reverse"
    ablated = "future"

    def ablate(self) -> RemovableHandle:
        """Add nothing of what is read: see :class:`protocol.Ablatable`."""
        return self.register_forward_hook(
            lambda _, given, found: (torch.zeros_like(found[0]), None)
        )


class TwoMemoryAttention(GroupedCrossAttention):
    """SrcAtt + RevAtt; without :attr:`reverse` it is a Transformer's source attention.

    Args:
        reverse: attention to the second memory.
        others: as fairseq's ``MultiheadAttention``, of the source attention.
    """

    def __init__(self, *others: Any, reverse: ReverseAttention, **more: Any) -> None:
        super().__init__(*others, **more)
        self.reverse = reverse

    def forward(  # type: ignore[override]
        self,
        query: Tensor,
        key: Pair,
        value: Any = None,
        key_padding_mask: tuple[Tensor | None, Tensor | None] = (None, None),
        incremental_state: AttentionGrid | None = None,
        **others: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend to both memories.

        Args:
            query: rows (n, C).
            key: (S, B, C'), of the source, and (T, B, C), R.
            value: left out.
            key_padding_mask: (B, S) and (B, T), True at padding.
            incremental_state: the grid that the rows are put on.
            others: as for :class:`GroupedCrossAttention`.

        Returns:
            rows (n, C); and the weights of the source attention where asked for.
        """
        source, reverse = key
        padding, reverse_padding = key_padding_mask
        out, weights = super().forward(
            query,
            source,
            key_padding_mask=padding,
            incremental_state=incremental_state,
            **others,
        )
        added, _ = self.reverse(
            query,
            reverse,
            key_padding_mask=reverse_padding,
            incremental_state=incremental_state,
            need_weights=False,
        )
        return out + added, weights


class OneStreamLayer(SBDecoderLayer):
    """A decoder layer of one direction: fairseq's, on rows."""

    def build_fusion(self, embed_dim: int, cfg: Any) -> nn.Module:
        """Return the fusion of a stream without a partner."""
        return Interpolation("linear", 0)


class ForwardLayer(OneStreamLayer):
    """A decoder layer that reads source and backward decoder."""

    def build_encoder_attention(self, embed_dim: int, cfg: Any) -> nn.Module:
        built = self.build_cross_attention
        reverse = built(ReverseAttention, cfg, cfg.decoder.output_dim)
        return built(TwoMemoryAttention, cfg, cfg.encoder.embed_dim, reverse=reverse)

    def forward(
        self,
        x: Tensor,
        encoder_out: Tensor | None = None,
        encoder_padding_mask: Tensor | None = None,
        reverse: Tensor | None = None,
        reverse_padding: Tensor | None = None,
        **others: Any,
    ) -> Any:
        """Apply fairseq's layer, with a second memory.

        Args:
            reverse: R, (T, B, C); an argument of its own, so that activation
                checkpointing sees that it wants a gradient.
            reverse_padding: (B, T) True at padding.
        """
        return super().forward(
            x, (encoder_out, reverse), (encoder_padding_mask, reverse_padding), **others
        )


class BackwardDecoder(SBTransformerDecoder):
    """Writes R2L: fairseq's decoder, on rows."""

    layer_class = OneStreamLayer


class ForwardDecoder(SBTransformerDecoder):
    """Writes L2R and reads source and backward decoder."""

    layer_class = ForwardLayer

    def memories(self, encoder_out: Any) -> dict[str, Tensor | None]:
        """Return both memories, each with its padding."""
        source, reverse = encoder_out["encoder_out"]
        padding, reverse_padding = encoder_out["encoder_padding_mask"]
        return {
            "encoder_out": source,
            "encoder_padding_mask": padding,
            "reverse": reverse,
            "reverse_padding": reverse_padding,
        }
