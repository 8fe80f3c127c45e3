"""Decoder of ENAT: every word at once, from a rough translation of the source.

Guo, Tan, He, Qin, Xu, Liu: Non-Autoregressive Neural Machine Translation with Enhanced
Decoder Input, AAAI 2019.  Before the layers of a Transformer, in which self-attention
has no causal mask, stands attention by position alone (of NART: queries and keys are
the positions' encodings)::

    x ← x + Attention(p, p, x)
    x ← x + Attention(x, x, x) ;  x ← x + Attention(x, h, h) ;  x ← x + FFN(x)

each with dropout and norm.  The paper does not say which comes first.

The decoder's input is a sequence stretched from Z tokens to T (§4.2)::

    z_t = Σ_i ω_ti z̃_i ,   ω_ti ∝ exp(-(t - i T/Z)² / τ) ,   i, t from 1

i and t count tokens, wherever padding stands.

Departs from the paper, whose ω are not normalised: an input has a total weight of
0.74-1.02 at T/Z = 1.1, but of 0.44 at 1.5 and 0.04 at 2, where every second output is
all but empty.  Here those of an output sum to 1; ``raw`` gives the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from fairseq.models.transformer import TransformerDecoderBase
from fairseq.modules import LayerNorm, MultiheadAttention
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase
from torch import Tensor

from sbnmt_plugin.network.decoder_layer import wrapped
from sbnmt_plugin.numerics import DEAD, wide

TEMPERATURE = 0.3  # τ


def stretch_weights(
    read: Tensor, written: Tensor, raw: bool = False, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Compute ω, (B, T, Z), in this dtype.

    Args:
        read: (B, Z) True at inputs, False at padding.
        written: (B, T) True at outputs.
        raw: whether they are left as they are.
    """
    i, t = (places.cumsum(1, dtype=dtype) for places in (read, written))
    rate = t.amax(1, keepdim=True) / i.amax(1, keepdim=True).clamp(min=1)  # T/Z
    distance = t[:, :, None] - (i * rate)[:, None]
    logits = (-(distance**2) / TEMPERATURE).masked_fill(~read[:, None], DEAD)
    return logits.exp() if raw else logits.softmax(-1)


def stretch(inputs: Tensor, read: Tensor, written: Tensor, raw: bool = False) -> Tensor:
    """Stretch z̃ (B, Z, C) to z (B, T, C), in its dtype: see :func:`stretch_weights`."""
    weights = stretch_weights(read, written, raw, wide(inputs.dtype))
    return (weights @ inputs.to(weights.dtype)).to(inputs.dtype)


@dataclass
class DecoderInput:
    """Encoder states and rough translations of B sentences.

    Attributes:
        states: of the encoder, (S, B, C').
        padding: (B, S).
        rough: z̃, (B, Z, C).
        real: (B, Z) True at its tokens.
    """

    states: Tensor
    padding: Tensor
    rough: Tensor
    real: Tensor

    def select(self, sentences: Tensor) -> DecoderInput:
        """Select these sentences (N,), in this order."""
        return DecoderInput(
            states=self.states.index_select(1, sentences),
            padding=self.padding[sentences],
            rough=self.rough[sentences],
            real=self.real[sentences],
        )


class ENATDecoderLayer(TransformerDecoderLayerBase):
    """Layer of fairseq's behind positional attention."""

    def __init__(self, cfg: Any, no_encoder_attn: bool = False) -> None:
        super().__init__(cfg, no_encoder_attn)
        self.need_attn = False  # nobody asks for its weights
        self.positional_attn = MultiheadAttention(
            self.embed_dim, cfg.decoder.attention_heads, dropout=cfg.attention_dropout
        )
        self.positional_attn_layer_norm = LayerNorm(self.embed_dim, export=cfg.export)

    def forward(
        self,
        x: Tensor,
        states: Tensor,
        source_padding: Tensor,
        padding: Tensor,
        positions: Tensor,
    ) -> Tensor:
        """Apply one layer.

        Args:
            x: (T, B, C).
            states, source_padding: see :class:`DecoderInput`.
            padding: (B, T).
            positions: p, (T, B, C).
        """
        value = self.positional_attn_layer_norm(x) if self.normalize_before else x
        found, _ = self.positional_attn(
            positions, positions, value, key_padding_mask=padding, need_weights=False
        )
        x = x + self.dropout_module(found)
        if not self.normalize_before:
            x = self.positional_attn_layer_norm(x)
        x, _, _ = super().forward(
            x, states, source_padding, self_attn_padding_mask=padding
        )
        return x


class ENATDecoder(TransformerDecoderBase):
    """Decoder of fairseq's without a causal mask; see the module.

    Args:
        cfg: fairseq's options, and ``enat_raw_weights``.

    Attributes:
        projects_rows: its logits are one linear layer on its features.
    """

    projects_rows = True

    def __init__(self, cfg: Any, dictionary: Any, embed_tokens: Any) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        self.raw_weights = bool(cfg.enat_raw_weights)

    def build_decoder_layer(self, cfg: Any, no_encoder_attn: bool = False) -> Any:
        return wrapped(ENATDecoderLayer(cfg, no_encoder_attn), cfg)

    def embed(self, tokens: Tensor) -> Tensor:
        """Embed tokens as a network reads them: (…,) -> (…, C)."""
        embedded: Tensor = self.embed_scale * self.embed_tokens(tokens)
        return embedded if self.quant_noise is None else self.quant_noise(embedded)

    def extract_features(self, inputs: DecoderInput, written: Tensor) -> Tensor:
        """Compute the states from which the words are predicted, (B, T, C).

        Args:
            written: (B, T) True at the words that there are to be, ``</s>`` among
                them, padded on the right: all that is known of the text.
        """
        words = written.long() + self.padding_idx  # positions ask for padding alone
        positions = self.embed_positions(words)
        x = stretch(inputs.rough, inputs.real, written, self.raw_weights)
        x = x + positions
        if self.layernorm_embedding is not None:
            x = self.layernorm_embedding(x)
        x, places = (a.transpose(0, 1) for a in (self.dropout_module(x), positions))
        for layer in self.layers:
            x = layer(x, inputs.states, inputs.padding, ~written, places)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        return x.transpose(0, 1)

    def forward(self, inputs: DecoderInput, written: Tensor) -> Tensor:
        """Compute logits (B, T, V): see :meth:`extract_features`."""
        logits: Tensor = self.output_layer(self.extract_features(inputs, written))
        return logits
