"""ABD-NMT: asynchronous bidirectional decoding, on a Transformer.

Zhang, Su, Qin, Liu, Ji, Wang: Asynchronous Bidirectional Decoding for Neural Machine
Translation, AAAI 2018; a row of the SB-NMT paper's tables 3, 4 and 6.  A backward
decoder writes the whole text R2L; its states are a second memory of the forward
decoder, which writes the answer L2R.  In training the R2L stream is a teacher's text,
y_pr, so both decoders are teacher-forced; in the search it is the backward decoder's
own best hypothesis (see :mod:`abd.search`).

Departs from the paper, whose decoder is an RNN and whose training lets the backward
decoder write greedily in every update: this is the authors' later release, which is
parallel over a text's tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.models import register_model
from torch import Tensor

from sbnmt_plugin.families.abd.decoder import BackwardDecoder, ForwardDecoder
from sbnmt_plugin.layout import L2R, R2L, Layout
from sbnmt_plugin.network.transformer import FamilyTransformer, register_architectures

ALONE = Layout(directions=1)  # each decoder's rows: a stream a sentence


@register_model("abd_transformer")
class ABDTransformerModel(FamilyTransformer):
    """Transformer of fairseq's with a backward decoder.

    Encoder, embeddings and output matrix are those of both decoders.  Train and decode
    with ``--task sb_translation``.

    Attributes:
        decoder: writes L2R.
        backward_decoder: writes R2L, as deep as the other.
    """

    searched_by = "asynchronous"
    bidirectional = True
    family = "abd_transformer"
    own = "backward_decoder.sb_version"

    def __init__(self, args: Any, encoder: Any, decoder: ForwardDecoder) -> None:
        super().__init__(args, encoder, decoder)
        self.backward_decoder = BackwardDecoder(
            self.cfg,
            decoder.dictionary,
            decoder.embed_tokens,
            output_projection=decoder.output_projection,
        )

    @classmethod
    def build_decoder(cls, args: Any, tgt_dict: Any, embed_tokens: Any) -> Any:
        return ForwardDecoder(args, tgt_dict, embed_tokens)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        live: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Score both streams, teacher-forced.

        Nothing of the L2R stream reaches the R2L one.  The gradient of the L2R loss
        flows through the backward decoder's states into it, and into the encoder.

        Args:
            prev_output_tokens: (2B, T), row 2b + d the input of direction d.
            live: (n,) as for :meth:`decoder.SBTransformerDecoder.forward`.

        Returns:
            (2B, T, V) logits, and an empty dictionary.
        """
        streams = self.decoder.packed(prev_output_tokens, live=live)
        # place t · 2B + 2b + d of both streams is place t · B + b of its own
        own = [
            streams.places[streams.places % 2 == direction] // 2
            for direction in (L2R, R2L)
        ]
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths)
        self.decoder.check(prev_output_tokens, encoder_out, streams)
        reverse_tokens = prev_output_tokens[R2L::2]
        memories = self.with_reverse(encoder_out, reverse_tokens, own[R2L])
        tokens = prev_output_tokens[L2R::2]
        packed = self.decoder.packed(tokens, ALONE, own[L2R])
        rows, _ = self.decoder.live_rows(tokens, memories, packed)
        _, reverse = memories["encoder_out"]
        both = torch.stack([packed.on_grid(rows), reverse], dim=2)  # (T, B, 2, C)
        logits = self.decoder.output_layer(streams.rows(both.flatten(1, 2)))
        return logits if live is not None else streams.give(logits), {}

    def forced_inputs(
        self, encoder_out: Any, tokens: Tensor, directions: int
    ) -> tuple[Any, Tensor, Layout]:
        """See :meth:`protocol.Model.forced_inputs`: L2R, reading the other texts."""
        return self.with_reverse(encoder_out, tokens[R2L::2]), tokens[L2R::2], ALONE

    def with_reverse(
        self, encoder_out: Any, tokens: Tensor, live: Tensor | None = None
    ) -> dict[str, list[Tensor]]:
        """Return the forward decoder's memories: the source, and R2L texts.

        Args:
            encoder_out: fairseq's, of B sentences.
            tokens: (B, T) the tag and the text from its end, padded on the right.
            live: (n,) the places that are no padding, where they are known.

        Returns:
            ``encoder_out``, (S, B, C') and R (T, B, C), and ``encoder_padding_mask``,
            (B, S) and (B, T).  R are the states from which the backward decoder's
            words are predicted, the one that ends included.
        """
        decoder = self.backward_decoder
        packed = decoder.packed(tokens, ALONE, live)
        rows, _ = decoder.live_rows(tokens, encoder_out, packed)
        names = "encoder_out", "encoder_padding_mask"
        added = packed.on_grid(rows), packed.padding
        return {name: [encoder_out[name][0], x] for name, x in zip(names, added)}


register_architectures(ABDTransformerModel)
