"""SB-NMT: the model, its options and its architectures."""

from argparse import Namespace
from dataclasses import dataclass
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig
from torch import Tensor

from sbnmt_plugin.checkpoints import Checkpoint
from sbnmt_plugin.families.sb.initialisation import (
    ACROSS,
    adopt_transformer,
    adopt_writer,
    check_across,
    freezes_writer,
)
from sbnmt_plugin.network.decoder import SBTransformerDecoder
from sbnmt_plugin.network.fusion import DEFAULT_LAMBDA, FUSIONS
from sbnmt_plugin.network.transformer import (
    FamilyTransformer,
    register_architectures,
    tag_indices,
    writable,
)
from sbnmt_plugin.task_options import TRAINING, Scope, option


@dataclass
class SBTransformerConfig(TransformerConfig):
    """fairseq's Transformer options and ours."""

    sb_fusion: ChoiceEnum(FUSIONS) = option(  # type: ignore[valid-type]
        "tanh", "how history and future are joined (eq. 4-6)"
    )
    sb_lambda: Optional[float] = option(
        None,
        f"lambda, the weight of the future. Default: {DEFAULT_LAMBDA}. Not with "
        "--sb-fusion gate",
        Scope(start_of="sb_learn_lambda"),
    )
    sb_learn_lambda: bool = option(
        False, "learn lambda, one value per channel and layer"
    )
    sb_future_dropout: float = option(
        0.3,
        "dropout on the future in training, before its non-linearity. The authors' "
        "code has it, the paper does not mention it",
        Scope(TRAINING),
    )
    sb_future_shift: bool = option(
        False,
        "where attention finds a word of the other stream, read the word written "
        "before it. One layer is then enough to read on from a common word",
    )
    sb_reader: bool = option(
        False,
        "add projections for reading the other stream to the model of "
        "--finetune-from-model, and train only them. With lambda = 0 the model stays "
        "what it was",
    )


@register_model("sb_transformer")
class SBTransformerModel(FamilyTransformer):
    """Synchronous bidirectional NMT (Zhou, Zhang, Zong, TACL 2019).

    fairseq's Transformer, encoder, embeddings and options included, with
    :class:`SBTransformerDecoder`.  Train and decode with ``--task sb_translation``.
    """

    bidirectional = reads_across = True
    function = "sb_fusion", "sb_lambda", "sb_future_shift"
    family = "sb_transformer"
    config = SBTransformerConfig

    @classmethod
    def build_model(cls, args: Any, task: Any) -> "SBTransformerModel":
        """Build as the parent does, and freeze what a reader leaves as it is.

        Raises:
            ValueError: see :meth:`transformer.FamilyTransformer.build_model`; a
                reader beside a gate, which would change what a stream writes alone.
        """
        model: SBTransformerModel = super().build_model(args, task)
        if freezes_writer(args):
            if args.sb_fusion == "gate":
                raise ValueError(
                    "--sb-reader keeps what a stream writes alone, which --sb-fusion "
                    "gate would change: take tanh, linear or relu"
                )
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(any(part in name for part in ACROSS))
        return model

    @classmethod
    def settle(cls, args: Any) -> None:
        """Set the paper's λ where a fusion has one and the command says none."""
        if args.sb_fusion != "gate" and args.sb_lambda is None:
            with writable(args):
                args.sb_lambda = DEFAULT_LAMBDA

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
        **others: Any,
    ) -> Any:
        """Encode and decode; ``live`` and others are for the decoder's forward."""
        encoder_out = self.encoder(src_tokens, src_lengths=src_lengths)
        return self.decoder(prev_output_tokens, encoder_out=encoder_out, **others)

    def check_starts(
        self, settings: Any, starts: list[tuple[Checkpoint, bool]]
    ) -> None:
        """See :meth:`protocol.Model.check_starts`.

        Raises:
            ValueError: the writer is frozen, and no checkpoint is given; that of one
                that a training goes on from was not, or the other way round; so with a
                learned λ; it has one or a reader, and this model reads without.
        """
        frozen = freezes_writer(settings)
        if frozen and not starts:
            raise ValueError(
                "--sb-reader keeps the weights that a training starts from, but "
                "nothing is given to start from: add --finetune-from-model MODEL"
            )
        for checkpoint, anew in starts:
            path, saved = checkpoint.path, Namespace(**checkpoint.settings)
            if frozen and getattr(saved, "sb_direction", None) != "both":
                raise ValueError(
                    f"--sb-reader keeps the weights of {path}, which must write both "
                    "directions, but writes one: start from a model of --sb-direction "
                    "both and --sb-lambda 0"
                )
            check_across(checkpoint.shapes, self.state_dict(), self.decoder.interacts)
            before = freezes_writer(saved), getattr(saved, "sb_learn_lambda", False)
            wanted = frozen, settings.sb_learn_lambda
            for flag, then, now in zip(ACROSS.values(), before, wanted):
                if not anew and then != now:
                    raise ValueError(
                        f"{path} has an optimiser of other weights, with which a "
                        f"training {'with' if now else 'without'} {flag} cannot go on: "
                        f"start anew, with --finetune-from-model {path} and another "
                        "--save-dir"
                    )

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


register_architectures(SBTransformerModel)
