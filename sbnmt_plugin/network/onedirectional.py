"""fairseq's own Transformer decoder, seen as the decoder of one direction.

A teacher is the case D = 1 of the search, so it decodes with the attention, the cache
and the one copy of encoder keys of an SB-NMT model: a view on the same weights, in
which both attentions of every layer are ours.
"""

from __future__ import annotations

from typing import Any

from fairseq.models.transformer import TransformerDecoder, TransformerDecoderBase
from fairseq.modules import BaseLayer, MultiheadAttention
from fairseq.modules.transformer_layer import (
    TransformerDecoderLayer,
    TransformerDecoderLayerBase,
)
from torch import nn

from sbnmt_plugin.network.attention import GroupedCrossAttention, SBSelfAttention
from sbnmt_plugin.network.decoder import SBTransformerDecoder
from sbnmt_plugin.network.decoder_layer import SBDecoderLayer
from sbnmt_plugin.network.fusion import HistoryAlone

DECODERS = (TransformerDecoder, TransformerDecoderBase)
LAYERS = (TransformerDecoderLayer, TransformerDecoderLayerBase)


def adopt(decoder: Any) -> Any:
    """A view on fairseq's Transformer decoder that the search can group.

    Parameters are shared, not copied, and the decoder itself stays as it is.  Anything
    that is not exactly fairseq's Transformer, layers and attention included, is
    returned unchanged, and decodes in fairseq's way.

    Raises:
        ValueError: a layer that mixes rows of different sentences.
    """
    if any(isinstance(layer, BaseLayer) for layer in getattr(decoder, "layers", ())):
        raise ValueError(
            "--base-layers is not supported by the SB-NMT search: BASE layers mix rows "
            "of different sentences, so a translation would depend on its batch; use a "
            "model trained without them"
        )
    if type(decoder) not in DECODERS or not all(map(understood, decoder.layers)):
        return decoder
    if decoder.adaptive_softmax is not None or decoder.cross_self_attention:
        return decoder
    layers: Any = nn.ModuleList(
        view(
            layer,
            SBDecoderLayer,
            self_attn=view(
                layer.self_attn, SBSelfAttention, fusion=HistoryAlone(), reader=None
            ),
            encoder_attn=view(layer.encoder_attn, GroupedCrossAttention),
        )
        for layer in decoder.layers
    )
    for layer in layers:
        layer.need_attn = False
    return view(decoder, SBTransformerDecoder, layers=layers)


def understood(layer: Any) -> bool:
    """Whether a layer and its attention are fairseq's own, with nothing wrapped."""
    if type(layer) not in LAYERS:
        return False
    modules = layer, layer.self_attn, layer.encoder_attn
    return (
        type(layer.self_attn) is type(layer.encoder_attn) is MultiheadAttention
        and layer.self_attn.bias_k is None
        and not layer.self_attn.add_zero_attn
        and not any("forward" in vars(module) for module in modules)
    )


def view(module: nn.Module, kind: type[nn.Module], **parts: nn.Module | None) -> Any:
    """The module with the methods of another class and some submodules replaced, or
    left out (None)."""
    made = kind.__new__(kind)
    vars(made).update(vars(module))
    vars(made)["_modules"] = {**module._modules, **parts}
    return made
