"""fairseq's incremental decoders, as the search wants them.

A teacher is the case D = 1 of the search.  fairseq's own Transformer therefore decodes
with the attention, the cache and the one copy of encoder keys of an SB-NMT model:
:func:`adopt` gives a view on the same weights, in which both attentions of every layer
are ours.  Any other decoder keeps fairseq's ways in a :class:`FairseqDecoder`.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.models.transformer import TransformerDecoder, TransformerDecoderBase
from fairseq.modules import MultiheadAttention
from fairseq.modules.transformer_layer import (
    TransformerDecoderLayer,
    TransformerDecoderLayerBase,
)
from torch import Tensor, nn

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.attention import GroupedCrossAttention, SBSelfAttention
from sbnmt_plugin.network.decoder import SBTransformerDecoder
from sbnmt_plugin.network.decoder_layer import SBDecoderLayer
from sbnmt_plugin.network.fusion import Interpolation
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.network.protocol import Decoder

DECODERS = (TransformerDecoder, TransformerDecoderBase)
LAYERS = (TransformerDecoderLayer, TransformerDecoderLayerBase)


def searchable(model: Any) -> Decoder[Any]:
    """Return the decoder of a model in the form that the search wants.

    Decoders of ours, and fairseq's Transformer as :func:`adopt` shows it, read one
    encoder output a sentence.  For any other it is copied to every row, as in fairseq's
    own generator.
    """
    decoder = adopt(model.decoder)
    return decoder if isinstance(decoder, Decoder) else FairseqDecoder(model)


def adopt(decoder: Any) -> Any:
    """View fairseq's Transformer decoder as one that the search can group.

    Parameters are shared, not copied, and the decoder itself stays as it is.  Anything
    that is not exactly fairseq's Transformer, layers and attention included, is
    returned unchanged, and decodes in fairseq's way.
    """
    if type(decoder) not in DECODERS or not all(map(understood, decoder.layers)):
        return decoder
    if decoder.adaptive_softmax is not None or decoder.cross_self_attention:
        return decoder
    alone = Interpolation("linear", 0)
    layers: Any = nn.ModuleList(
        view(
            layer,
            SBDecoderLayer,
            self_attn=view(layer.self_attn, SBSelfAttention, fusion=alone, reader=None),
            encoder_attn=view(layer.encoder_attn, GroupedCrossAttention),
        )
        for layer in decoder.layers
    )
    for layer in layers:
        layer.need_attn = False
    return view(decoder, SBTransformerDecoder, layers=layers)


def understood(layer: Any) -> bool:
    """Tell whether a layer and its attention are fairseq's own, nothing wrapped."""
    if type(layer) not in LAYERS:
        return False
    attention = layer.self_attn, layer.encoder_attn
    wrapped = any("forward" in vars(module) for module in (layer, *attention))
    return not wrapped and {*map(type, attention)} == {MultiheadAttention}


def view(module: nn.Module, kind: type[nn.Module], **parts: nn.Module | None) -> Any:
    """View a module with another class's methods and some submodules replaced.

    Args:
        kind: the other class.
        parts: submodules by name; None leaves one out.
    """
    made = kind.__new__(kind)
    vars(made).update(vars(module))
    vars(made)["_modules"] = {**module._modules, **parts}
    return made


class CopiedSource:
    """fairseq's incremental state, and an encoder output with a copy for every row.

    Args:
        model: fairseq's.
        encoder_out: one entry a sentence.
        layout: how many rows each sentence has.
    """

    def __init__(self, model: Any, encoder_out: Any, layout: Layout) -> None:
        self.model = model
        self.incremental: dict[str, Any] = {}
        self.encoder_out = encoder_out
        self.layout = layout
        self.rows: int | None = None

    def copy(self, tokens: Tensor) -> None:
        """Give each of the N rows its copy, before the first step."""
        if self.rows is None:
            self.rows = tokens.size(0)
            order = torch.arange(self.rows, device=tokens.device)
            self._reorder(order // self.layout.group)

    def _reorder(self, order: Tensor) -> None:
        self.encoder_out = self.model.encoder.reorder_encoder_out(
            self.encoder_out, order
        )

    def select(self, rows: Tensor) -> None:
        """Go on with these rows: see :class:`protocol.DecoderState`."""
        self.model.decoder.reorder_incremental_state_scripting(self.incremental, rows)
        if rows.numel() != self.rows:
            self.rows = rows.numel()
            self._reorder(rows)


class FairseqDecoder:
    """A decoder that keeps fairseq's ways: see :class:`protocol.Decoder`.

    Args:
        model: fairseq's, whose ``get_normalized_probs`` gives the probabilities.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def start(
        self, encoder_out: Any, layout: Layout, weights: bool = False
    ) -> CopiedSource:
        """Start: see :meth:`protocol.Decoder.start`; weights are fairseq's choice."""
        return CopiedSource(self.model, encoder_out, layout)

    def step(
        self, tokens: Tensor, state: CopiedSource
    ) -> tuple[NextTokens, Tensor | None]:
        """Score the next tokens: see :meth:`protocol.Decoder.step`."""
        state.copy(tokens)
        logits, extra = self.model.decoder(
            tokens, encoder_out=state.encoder_out, incremental_state=state.incremental
        )
        output = logits[:, -1:], extra
        lprobs = self.model.get_normalized_probs(output, log_probs=True)
        # recurrent decoders give attention as it is, Transformers in a dictionary
        attention = extra if isinstance(extra, Tensor) else (extra or {}).get("attn")
        if isinstance(attention, list):
            attention = attention[0]
        last = None if attention is None else attention[:, -1]
        return NextTokens.of_lprobs(lprobs[:, 0]), last
