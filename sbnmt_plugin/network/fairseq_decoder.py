"""Any of fairseq's incremental decoders, given what the search asks for."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.network.onedirectional import adopt
from sbnmt_plugin.network.protocol import Decoder
from sbnmt_plugin.numerics import wide


def searchable(model: Any) -> Decoder[Any]:
    """The decoder of a model as the search wants it.

    A decoder of ours is one itself, and fairseq's Transformer is seen as one (see
    :mod:`onedirectional`); both read one encoder output a sentence.  For any other of
    fairseq's it is copied to every row, as in fairseq's own generator.
    """
    decoder = adopt(model.decoder)
    return decoder if isinstance(decoder, Decoder) else FairseqDecoder(model)


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
        """See :class:`protocol.DecoderState`."""
        self.model.decoder.reorder_incremental_state_scripting(self.incremental, rows)
        if rows.numel() != self.rows:
            self.rows = rows.numel()
            self._reorder(rows)


class FairseqDecoder:
    """See :class:`protocol.Decoder`.

    Args:
        model: fairseq's, whose ``get_normalized_probs`` decides what a probability is.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def start(
        self, encoder_out: Any, layout: Layout, weights: bool = False
    ) -> CopiedSource:
        """See :meth:`protocol.Decoder.start`; fairseq's decides on weights itself."""
        return CopiedSource(self.model, encoder_out, layout)

    def step(
        self, tokens: Tensor, state: CopiedSource, temperature: float = 1.0
    ) -> tuple[NextTokens, Tensor | None]:
        """See :meth:`protocol.Decoder.step`."""
        state.copy(tokens)
        logits, extra = self.model.decoder(
            tokens, encoder_out=state.encoder_out, incremental_state=state.incremental
        )
        logits = logits[:, -1:]
        if temperature != 1:
            logits = logits.to(wide(logits.dtype)) / temperature
        lprobs = self.model.get_normalized_probs((logits, extra), log_probs=True)
        # recurrent decoders give attention as it is, Transformers in a dictionary
        attention = extra if isinstance(extra, Tensor) else (extra or {}).get("attn")
        if isinstance(attention, list):
            attention = attention[0]
        last = None if attention is None else attention[:, -1]
        return NextTokens.of_lprobs(lprobs[:, 0]), last
