"""Base of the families that are fairseq's Transformers."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models.transformer import TransformerConfig, TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from omegaconf import OmegaConf
from torch import Tensor

from sbnmt_plugin import hub
from sbnmt_plugin.symbols import TAGS

REFUSED = {
    "adaptive_softmax_cutoff": "the search needs the full softmax",
    "adaptive_input": "the tags need rows of an ordinary embedding",
    "tie_adaptive_weights": "there is no adaptive softmax",
    "tie_adaptive_proj": "there is no adaptive softmax",
    "cross_self_attention": "self-attention reads target keys only",
    "no_cross_attention": "a translation has to see its source",
    "merge_src_tgt_embed": "it rewrites the dictionaries behind the task's back; "
    "binarise with --joined-dictionary and use --share-all-embeddings",
    "base_layers": "BASE layers mix rows of different sentences",
    "decoder_xformers_att_config": "its self-attention has a product of its own",
    "encoder_xformers_att_config": "its cross-attention shares one copy of the keys",
}


class FamilyTransformer(hub.Pretrained, TransformerModel):
    """A family's Transformer; train and decode it with ``sb_translation``.

    Attributes:
        family: name of its architecture, for messages.
        config: its options.
        own: name of a weight that no other family's checkpoints have; "" where it also
            starts from those of others.
    """

    family: str
    own: str = ""
    config: type[TransformerConfig] = TransformerConfig

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add options without defaults, which the architecture functions set."""
        gen_parser_from_dataclass(
            parser, cls.config(), delete_default=True, with_prefix=""
        )

    @classmethod
    def build_model(cls, args: Any, task: Any) -> Any:
        """Build from a namespace, whose defaults are those of ``transformer``.

        Raises:
            ValueError: an option that the family cannot honour; a dictionary without
                tags (the wrong task).
        """
        base_architecture(args)
        refuse_options(args, cls.family)
        tag_indices(task.target_dictionary, cls.family)
        config = cls.config.from_namespace(
            Namespace(**args) if OmegaConf.is_config(args) else args
        )
        return super().build_model(config, task)

    def upgrade_state_dict_named(
        self, state_dict: dict[str, Tensor], name: str
    ) -> None:
        """Refuse the weights of other models.

        Raises:
            ValueError: they lack the weight of :attr:`own`.
        """
        super().upgrade_state_dict_named(state_dict, name)
        if self.own and self.own not in state_dict:
            raise ValueError(
                f"an {self.family} starts from the weights of another, but this "
                f"checkpoint has no {self.own}: leave --finetune-from-model out"
            )


class BidirectionalTransformer(FamilyTransformer):
    """A Transformer of both directions."""

    bidirectional = True


def tag_indices(dictionary: Any, family: str) -> list[int]:
    """Return the ids of ``<l2r>`` and ``<r2l>``.

    Raises:
        ValueError: the dictionary has no tags, so another task has loaded it.
    """
    indices = [dictionary.index(tag) for tag in TAGS]
    if dictionary.unk() in indices:
        raise ValueError(
            f"an {family} needs the tags <l2r> and <r2l> in its dictionary: add "
            "--user-dir sbnmt_plugin --task sb_translation to the command"
        )
    return indices


def refuse_options(args: Any, family: str) -> None:
    """Refuse by name the options that these architectures cannot honour.

    Raises:
        ValueError: see :data:`REFUSED`.
    """
    for name, reason in REFUSED.items():
        if getattr(args, name, None):
            flag = "--" + name.replace("_", "-")
            raise ValueError(f"{family} does not support {flag}: {reason}")
