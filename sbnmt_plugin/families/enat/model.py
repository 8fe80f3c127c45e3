"""ENAT: non-autoregressive translation whose decoder reads a rough translation.

Guo, Tan, He, Qin, Xu, Liu: Non-Autoregressive Neural Machine Translation with Enhanced
Decoder Input, AAAI 2019.  All words are predicted at once (eq. 3, 4), by
:mod:`enat.decoder`, whose input is a sequence stretched to their number by
:func:`enat.decoder.stretch`: what ``--enat-input`` says, of

* ``copy``: the source's embeddings, which is NART without fertilities;
* ``map``: those, mapped among the target's by :mod:`embedding_mapping` (eq. 6);
* ``phrase``: the embeddings of a translation looked up in a phrase table, which the
  data brings as ``lookup_tokens``.

One dictionary and one matrix of embeddings serve both languages.  How many words there
are is a multiple of the input's: α is counted in training, by the first worker alone.

Departs from the paper, which sets α by hand, to 1.1 from English and 0.9 into it.
"""

from dataclasses import dataclass
from typing import Any

import torch
from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer.transformer_legacy import transformer_iwslt_de_en
from torch import Tensor

from sbnmt_plugin.families.enat.decoder import DecoderInput, ENATDecoder
from sbnmt_plugin.families.enat.embedding_mapping import Mapping
from sbnmt_plugin.network.transformer import (
    SIZES,
    FamilyTransformer,
    register_architectures,
)
from sbnmt_plugin.task_options import TRAINING, Scope, flag_of, option

COPY, MAP, PHRASE = INPUTS = "copy", "map", "phrase"


@dataclass
class ENATConfig(TransformerConfig):
    """Options of fairseq's Transformer and ours; defaults are the paper's."""

    enat_input: ChoiceEnum(INPUTS) = option(  # type: ignore[valid-type]
        PHRASE,
        "what the decoder reads: the source's embeddings (copy), these mapped to the "
        "target's (map), or the translation by a phrase table (phrase)",
    )
    enat_align_weight: float = option(
        0.1,
        "mu, the weight of the sentence-level alignment (eq. 7), for map",
        Scope(TRAINING),
    )
    enat_adversary_weight: float = option(
        1.0,
        "lambda, the weight of the word-level adversary (eq. 8, 9), for map",
        Scope(TRAINING),
    )
    enat_raw_weights: bool = option(
        False, "stretch the input with the paper's weights, which do not sum to 1"
    )


@register_model("enat_transformer")
class ENATModel(FamilyTransformer):
    """Transformer with a decoder that writes all words at once.

    Train and decode with ``--task sb_translation --sb-direction l2r``, on what a
    teacher has translated.

    Attributes:
        reads_lookup: whether it wants ``lookup_tokens``.
    """

    searched_by = "parallel"
    writes_at_once = True
    never_r2l = "writes all words at once"
    function = "enat_input", "enat_raw_weights"
    family = "enat_transformer"
    own = "tokens_written"
    config = ENATConfig

    def __init__(self, args: Any, encoder: Any, decoder: ENATDecoder) -> None:
        super().__init__(args, encoder, decoder)
        self.reads_lookup = str(args.enat_input) == PHRASE
        self.mapping: Mapping | None = None
        if str(args.enat_input) == MAP:
            weights = args.enat_align_weight, args.enat_adversary_weight
            self.mapping = Mapping(decoder.embed_dim, *weights)
        # tokens that this worker trained on, with </s>; whole numbers survive half()
        self.register_buffer("tokens_written", torch.zeros((), dtype=torch.int64))
        self.register_buffer("tokens_read", torch.zeros((), dtype=torch.int64))

    @classmethod
    def settle(cls, args: Any) -> None:
        """Refuse options that the family cannot honour.

        Raises:
            ValueError: with the flag.
        """
        for name in ("enat_align_weight", "enat_adversary_weight"):
            flag, value = flag_of(name), getattr(args, name)
            if not 0 <= value < float("inf"):
                raise ValueError(f"{flag} must be ≥ 0 and finite, but is {value}")
            if value != getattr(ENATConfig, name) and str(args.enat_input) != MAP:
                raise ValueError(
                    f"{flag} {value:g} is for --enat-input map, but it is "
                    f"{args.enat_input}, which has no such term: leave it out"
                )
        if not args.share_all_embeddings:
            raise ValueError(
                "an enat_transformer has one matrix of embeddings for both languages: "
                "add --share-all-embeddings, on data binarised with --joined-dictionary"
            )
        if args.no_token_positional_embeddings:
            raise ValueError(
                "--no-token-positional-embeddings is not for an enat_transformer, "
                "which tells its words apart by their positions: leave it out"
            )

    @classmethod
    def build_decoder(cls, args: Any, tgt_dict: Any, embed_tokens: Any) -> ENATDecoder:
        return ENATDecoder(args, tgt_dict, embed_tokens)

    def check_task(self, cfg: Any, training: bool) -> None:
        """See :meth:`protocol.Model.check_task`: files that it needs, or does not."""
        if self.reads_lookup and cfg.enat_table is None:
            raise ValueError(
                "--enat-input phrase reads what a phrase table gives, but there is "
                "none: add --enat-table with the file of sbnmt phrase-table"
            )
        if cfg.nat_teacher is not None and training and not cfg.eval_bleu:
            raise ValueError(
                "--nat-teacher scores translations, and training makes none without "
                "--eval-bleu: add it, or leave --nat-teacher out"
            )

    def read(
        self, src_tokens: Tensor, lookup_tokens: Tensor | None = None
    ) -> DecoderInput:
        """Encode B sentences, and make the decoder's input of them.

        Args:
            src_tokens: (B, S).
            lookup_tokens: (B, Z) their rough translations, ``</s>`` last, for phrase.
        """
        padding = self.encoder.padding_idx
        tokens: Any = lookup_tokens if self.reads_lookup else src_tokens
        rough = self.decoder.embed(tokens)
        if self.mapping is not None:
            rough = self.mapping(rough)
        lengths = src_tokens.ne(padding).sum(1)
        return DecoderInput(
            states=self.encoder(src_tokens, lengths)["encoder_out"][0],
            padding=src_tokens.eq(padding),
            rough=rough,
            real=tokens.ne(padding),
        )

    def expected(self, real: Tensor) -> Tensor:
        """Compute T₀ = round(α Z), (B,), of inputs ``real`` (B, Z).

        α is 1 before training.
        """
        written, read = self.tokens_written.double(), self.tokens_read.double()
        alpha = torch.where(read > 0, written / read.clamp(min=1), 1.0)
        return (alpha * real.sum(1) + 0.5).floor().long()

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Any,
        prev_output_tokens: Tensor,
        lookup_tokens: Tensor | None = None,
        with_terms: bool = False,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Score all places; of the text they know its length alone.

        Args:
            prev_output_tokens: (B, T) start symbol and text, padded on the right.
            with_terms: whether the criterion adds the terms of map.

        Returns:
            (B, T, V); for map ``terms`` (B,), see :meth:`Mapping.terms`.

        Raises:
            ValueError: in training, nobody adds them.
        """
        padding, end = self.decoder.padding_idx, self.decoder.dictionary.eos()
        written = prev_output_tokens.ne(padding)
        inputs = self.read(src_tokens, lookup_tokens)
        if self.training:
            self.tokens_written += written.sum()
            self.tokens_read += inputs.real.sum()
        extra: dict[str, Any] = {}
        if self.mapping is not None and self.training and not with_terms:
            raise ValueError(
                "--enat-input map must be trained with --criterion enat_cross_entropy, "
                "which adds both terms of the map, but is trained with another: add it"
            )
        if self.mapping is not None and with_terms:
            target = prev_output_tokens[:, 1:]
            extra["terms"] = self.mapping.terms(
                self.decoder.embed(src_tokens),
                src_tokens.ne(padding) & src_tokens.ne(end),
                self.decoder.embed(target),
                target.ne(padding),
            )
        return self.decoder(inputs, written), extra


def small(args: Any) -> None:
    """Set the paper's sizes for IWSLT: 5 + 5 layers, 256 channels, 4 heads."""
    for side in ("encoder", "decoder"):
        for name, value in (("embed_dim", 256), ("layers", 5), ("attention_heads", 4)):
            key = f"{side}_{name}"
            setattr(args, key, getattr(args, key, value))
    transformer_iwslt_de_en(args)


register_architectures(ENATModel, {**SIZES, "_iwslt_de_en": small})
