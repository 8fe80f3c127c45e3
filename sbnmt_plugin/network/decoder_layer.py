"""fairseq's Transformer decoder layer with synchronous bidirectional self-attention."""

from __future__ import annotations

from typing import Any, TypeVar

from fairseq.distributed import fsdp_wrap
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from fairseq.modules.quant_noise import quant_noise
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import nn

from sbnmt_plugin.network.attention import (
    GroupedCrossAttention,
    Reader,
    SBSelfAttention,
)
from sbnmt_plugin.network.fusion import build_fusion

Cross = TypeVar("Cross", bound=GroupedCrossAttention)


def wrapped(layer: nn.Module, cfg: Any) -> nn.Module:
    """Wrap a layer as fairseq's decoders do: ``--checkpoint-activations``, FSDP."""
    if cfg.checkpoint_activations:
        layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
    least = 0 if cfg.checkpoint_activations else cfg.min_params_to_wrap
    made: nn.Module = fsdp_wrap(layer, min_num_params=least)
    return made


class SBDecoderLayer(TransformerDecoderLayerBase):
    """A decoder layer whose self-attention reads both streams (paper, eq. 11-12).

    Cross-attention, feed-forward layer and norms are the plain Transformer's and
    act on each row alone.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.need_attn = False  # weights only where the decoder asks for them

    def build_self_attention(
        self,
        embed_dim: int,
        cfg: Any,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
    ) -> nn.Module:
        return SBSelfAttention(
            embed_dim,
            cfg.decoder.attention_heads,
            fusion=self.build_fusion(embed_dim, cfg),
            shift=getattr(cfg, "sb_future_shift", False),
            reader=self.build_reader(embed_dim, cfg),
            dropout=cfg.attention_dropout,
            q_noise=self.quant_noise,
            qn_block_size=self.quant_noise_block_size,
        )

    def build_fusion(self, embed_dim: int, cfg: Any) -> nn.Module:
        """Build the fusion of history and future, or its substitute."""
        return build_fusion(cfg, embed_dim)

    def build_reader(self, embed_dim: int, cfg: Any) -> Reader | None:
        """Build the reader where the options ask for one."""
        if not getattr(cfg, "sb_reader", False):
            return None
        noise = self.quant_noise, self.quant_noise_block_size
        return Reader(embed_dim, lambda projection: quant_noise(projection, *noise))

    def build_encoder_attention(self, embed_dim: int, cfg: Any) -> nn.Module:
        return self.build_cross_attention(
            GroupedCrossAttention, cfg, cfg.encoder.embed_dim
        )

    def build_cross_attention(
        self, kind: type[Cross], cfg: Any, channels: int, **parts: nn.Module
    ) -> Cross:
        """Build attention to an encoder's output.

        Args:
            kind: its class.
            channels: C', of the output.
            parts: arguments that this class has beside fairseq's.
        """
        return kind(
            self.embed_dim,
            cfg.decoder.attention_heads,
            kdim=channels,
            vdim=channels,
            dropout=cfg.attention_dropout,
            encoder_decoder_attention=True,
            q_noise=self.quant_noise,
            qn_block_size=self.quant_noise_block_size,
            **parts,
        )

    def make_generation_fast_(self, need_attn: bool = False, **kwargs: Any) -> None:
        """Do nothing: the decoder asks for weights where it wants them."""
