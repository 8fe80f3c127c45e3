"""Bases of families' models: their options, their defaults, fairseq's Transformer."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import Field, fields
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model_architecture
from fairseq.models.transformer import TransformerConfig, TransformerModel
from fairseq.models.transformer.transformer_legacy import (
    base_architecture,
    tiny_architecture,
    transformer_iwslt_de_en,
    transformer_wmt_en_de,
    transformer_wmt_en_de_big,
)
from omegaconf import OmegaConf, open_dict
from torch import Tensor

from sbnmt_plugin import hub
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.task_options import flag_of


class Family(hub.Pretrained):
    """A family's model: it stands before fairseq's class.

    Attributes:
        family: name of its architecture, for messages.
        config: its options.
    """

    family: str
    config: type[FairseqDataclass]

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add options without defaults, which the architecture functions set."""
        gen_parser_from_dataclass(
            parser, cls.config(), delete_default=True, with_prefix=""
        )


class FamilyTransformer(Family, TransformerModel):
    """A family's Transformer; train and decode it with ``sb_translation``.

    Attributes:
        own: name of a weight that no other family's checkpoints have; "" where it also
            starts from those of others.
    """

    own: str = ""
    config: type[TransformerConfig] = TransformerConfig

    @classmethod
    def build_model(cls, args: Any, task: Any) -> Any:
        """Build from a namespace, on which resolved values are left to be saved.

        Raises:
            ValueError: an option that the family cannot honour; a dictionary without
                tags (the wrong task).
        """
        set_defaults(args, cls.config)
        base_architecture(args)
        cls.settle(args)
        tag_indices(task.target_dictionary, cls.family)
        config = cls.config.from_namespace(
            Namespace(**args) if OmegaConf.is_config(args) else args
        )
        return super().build_model(config, task)

    @classmethod
    def settle(cls, args: Any) -> None:
        """Check the family's own options, and set those that depend on others.

        Raises:
            ValueError: with the flag.
        """

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


def tag_indices(dictionary: Any, family: str) -> list[int]:
    """Return the ids of ``<l2r>`` and ``<r2l>``.

    Raises:
        ValueError: the dictionary has no tags, so another task has loaded it.
    """
    indices = [dictionary.index(tag) for tag in TAGS]
    if dictionary.unk() in indices:
        raise ValueError(
            f"an {family} needs the tags <l2r> and <r2l> in its dictionary: add "
            "--task sb_translation to the command"
        )
    return indices


def refuse_below_one(args: Any, config: type[FairseqDataclass]) -> None:
    """Refuse sizes, a family's own options that are whole numbers, below 1.

    Raises:
        ValueError: with the flag.
    """
    for option in own_options(config):
        size = getattr(args, option.name)
        if option.type in (int, Optional[int]) and size is not None and size < 1:
            raise ValueError(f"{flag_of(option.name)} must be ≥ 1, but is {size}")


def writable(cfg: Any) -> AbstractContextManager[Any]:
    """Return a context in which settings of fairseq's take new names."""
    return open_dict(cfg) if OmegaConf.is_config(cfg) else nullcontext()


def own_options(config: type[FairseqDataclass]) -> list[Field[Any]]:
    """Return the options that a family adds to those of fairseq's class."""
    transformer = issubclass(config, TransformerConfig)
    known = fields(TransformerConfig if transformer else FairseqDataclass)
    others = {option.name for option in known}
    return [option for option in fields(config) if option.name not in others]


def set_defaults(args: Any, config: type[FairseqDataclass], **others: Any) -> None:
    """Set those of a family's own options that a command does not set.

    Args:
        others: defaults that differ from those of ``config``.
    """
    for option in own_options(config):
        default = others.get(option.name, option.default)
        setattr(args, option.name, getattr(args, option.name, default))


def wmt_en_de_big(args: Any) -> None:
    """Set fairseq's ``transformer_wmt_en_de_big``, with the SB-NMT paper's dropout."""
    args.dropout = getattr(args, "dropout", 0.1)
    transformer_wmt_en_de_big(args)


SIZES: dict[str, Callable[[Any], None]] = {  # by the end of an architecture's name
    "": base_architecture,
    "_tiny": tiny_architecture,
    "_iwslt_de_en": transformer_iwslt_de_en,
    "_wmt_en_de": transformer_wmt_en_de,
    "_wmt_en_de_big": wmt_en_de_big,
}


def register_architectures(
    model: type[FamilyTransformer], sizes: dict[str, Callable[[Any], None]] = SIZES
) -> None:
    """Register a family's architectures with fairseq, one for each entry of sizes."""

    def register(end: str, set_sizes: Callable[[Any], None]) -> None:
        @register_model_architecture(model.family, model.family + end)
        def defaults(args: Any) -> None:
            set_defaults(args, model.config)
            set_sizes(args)

    for end, function in sizes.items():
        register(end, function)
