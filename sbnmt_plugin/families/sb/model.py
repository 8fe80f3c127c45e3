"""SB-NMT: the model, its options and its architectures."""

from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model, register_model_architecture
from fairseq.models.transformer import TransformerConfig
from fairseq.models.transformer.transformer_legacy import (
    base_architecture,
    tiny_architecture,
    transformer_iwslt_de_en,
    transformer_wmt_en_de,
    transformer_wmt_en_de_big,
)
from omegaconf import OmegaConf, open_dict
from torch import Tensor

from sbnmt_plugin.families.sb.initialisation import (
    READING,
    adopt_transformer,
    adopt_writer,
    freezes_writer,
)
from sbnmt_plugin.network.decoder import SBTransformerDecoder
from sbnmt_plugin.network.fusion import DEFAULT_LAMBDA, FUSIONS
from sbnmt_plugin.network.transformer import BidirectionalTransformer, tag_indices

DEFAULT_FUTURE_DROPOUT = 0.3


@dataclass
class SBTransformerConfig(TransformerConfig):
    """fairseq's Transformer options and ours."""

    sb_fusion: ChoiceEnum(FUSIONS) = field(  # type: ignore[valid-type]
        default="tanh",
        metadata={"help": "how history and future attention are fused (eq. 4-6)"},
    )
    sb_lambda: Optional[float] = field(
        default=None,
        metadata={
            "help": "λ, weight of the future; default: "
            f"{DEFAULT_LAMBDA}; not for --sb-fusion gate"
        },
    )
    sb_learn_lambda: bool = field(
        default=False,
        metadata={"help": "learn λ, one value per channel and layer"},
    )
    sb_future_dropout: float = field(
        default=DEFAULT_FUTURE_DROPOUT,
        metadata={"help": "dropout on the future attention, before its non-linearity"},
    )
    sb_future_shift: bool = field(
        default=False,
        metadata={
            "help": "the future attention returns, for a word of the other stream, the "
            "word before it: one layer is enough to read on from a common word"
        },
    )
    sb_reader: bool = field(
        default=False,
        metadata={
            "help": "add projections with which streams read each other to the model "
            "of --finetune-from-model, and train them and nothing else: with λ = 0 "
            "the model stays what it was"
        },
    )


@register_model("sb_transformer")
class SBTransformerModel(BidirectionalTransformer):
    """Synchronous bidirectional NMT (Zhou, Zhang, Zong, TACL 2019).

    fairseq's Transformer, encoder, embeddings and options included, with
    :class:`SBTransformerDecoder`.  Train and decode with ``--task sb_translation``.
    """

    searched_by = "synchronous"
    family = "sb_transformer"
    config = SBTransformerConfig

    @classmethod
    def build_model(cls, args: Any, task: Any) -> "SBTransformerModel":
        """Build from a namespace, on which resolved values are left to be saved.

        Raises:
            ValueError: see :meth:`transformer.FamilyTransformer.build_model`; a
                reader beside a gate, which would change what a stream writes alone.
        """
        sb_architecture(args)
        with open_dict(args) if OmegaConf.is_config(args) else nullcontext():
            if args.sb_fusion != "gate" and args.sb_lambda is None:
                args.sb_lambda = DEFAULT_LAMBDA
        model: SBTransformerModel = super().build_model(args, task)
        if freezes_writer(args):
            if args.sb_fusion == "gate":
                raise ValueError(
                    "--sb-reader keeps what a stream writes alone, which --sb-fusion "
                    "gate would change: take tanh, linear or relu"
                )
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(any(part in name for part in READING))
        return model

    @classmethod
    def build_decoder(cls, args: Any, tgt_dict: Any, embed_tokens: Any) -> Any:
        decoder = SBTransformerDecoder(args, tgt_dict, embed_tokens)
        given = {
            "--sb-future-shift": args.sb_future_shift,
            "--sb-reader": args.sb_reader,
        }
        asked = " and ".join(flag for flag, value in given.items() if value)
        if asked and not decoder.interacts:
            raise ValueError(
                f"{asked} must not be given with --sb-lambda 0, at which nothing is "
                "read: leave one or the other out (of a checkpoint, --model-overrides "
                "can set all)"
            )
        return decoder

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor,
        prev_output_tokens: Tensor,
        return_all_hiddens: bool = True,
        **others: Any,
    ) -> Any:
        """Encode and decode; ``live`` and others are for the decoder's forward."""
        encoder_out = self.encoder(
            src_tokens, src_lengths=src_lengths, return_all_hiddens=return_all_hiddens
        )
        return self.decoder(prev_output_tokens, encoder_out=encoder_out, **others)

    def upgrade_state_dict_named(
        self, state_dict: dict[str, Tensor], name: str
    ) -> None:
        """Accept weights of a Transformer, and of a model with another reader.

        See :mod:`sb.initialisation`.
        """
        super().upgrade_state_dict_named(state_dict, name)
        if "decoder.sb_version" not in state_dict:
            adopt_transformer(
                state_dict,
                self.state_dict(),
                self.encoder.dictionary.eos(),
                tag_indices(self.encoder.dictionary, self.family),
                tag_indices(self.decoder.dictionary, self.family),
            )
        adopt_writer(state_dict, self.state_dict(), self.decoder.interacts)


@register_model_architecture("sb_transformer", "sb_transformer")
def sb_architecture(args: Any) -> None:
    """Set the sizes of fairseq's ``transformer``."""
    for option in fields(SBTransformerConfig):
        if option.name.startswith("sb_"):
            value = getattr(args, option.name, option.default)
            setattr(args, option.name, value)
    base_architecture(args)


@register_model_architecture("sb_transformer", "sb_transformer_tiny")
def sb_tiny(args: Any) -> None:
    """Set the sizes of fairseq's ``transformer_tiny``: 64 channels, 2 + 2 layers."""
    tiny_architecture(args)
    sb_architecture(args)


@register_model_architecture("sb_transformer", "sb_transformer_iwslt_de_en")
def sb_iwslt_de_en(args: Any) -> None:
    """Set the sizes of fairseq's ``transformer_iwslt_de_en``."""
    transformer_iwslt_de_en(args)
    sb_architecture(args)


@register_model_architecture("sb_transformer", "sb_transformer_wmt_en_de")
def sb_wmt_en_de(args: Any) -> None:
    """Set the sizes of fairseq's ``transformer_wmt_en_de``."""
    transformer_wmt_en_de(args)
    sb_architecture(args)


@register_model_architecture("sb_transformer", "sb_transformer_wmt_en_de_big")
def sb_wmt_en_de_big(args: Any) -> None:
    """Set fairseq's ``transformer_wmt_en_de_big``, with the paper's dropout, 0.1."""
    args.dropout = getattr(args, "dropout", 0.1)
    transformer_wmt_en_de_big(args)
    sb_architecture(args)
