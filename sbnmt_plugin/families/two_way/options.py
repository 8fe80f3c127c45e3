"""Options of the two-way model, their defaults and what they must keep to."""

from dataclasses import dataclass, field, fields
from typing import Any

from fairseq.dataclass import FairseqDataclass


@dataclass
class TwoWayConfig(FairseqDataclass):
    """Options of both stacks, by fairseq's names, and of the grid."""

    decoder_embed_dim: int = field(
        default=512, metadata={"help": "channels of both stacks"}
    )
    decoder_ffn_embed_dim: int = field(
        default=2048, metadata={"help": "inner channels of both stacks"}
    )
    decoder_layers: int = field(default=4, metadata={"help": "layers of either stack"})
    decoder_attention_heads: int = field(
        default=8, metadata={"help": "heads of either stack"}
    )
    decoder_normalize_before: bool = field(
        default=False, metadata={"help": "apply layernorm before each block"}
    )
    dropout: float = field(default=0.3, metadata={"help": "dropout in the stacks"})
    attention_dropout: float = field(
        default=0.0, metadata={"help": "dropout on attention weights"}
    )
    activation_dropout: float = field(
        default=0.0, metadata={"help": "dropout after the activation"}
    )
    two_way_units: int = field(default=750, metadata={"help": "units of the grid"})


OPTIONS = [option for option in fields(TwoWayConfig) if option.name[0] != "_"]


def check_options(args: Any) -> None:
    """Refuse sizes that do not fit.

    Raises:
        ValueError: with the flag.
    """
    for name in [option.name for option in OPTIONS if option.type is int]:
        if getattr(args, name) < 1:
            flag = "--" + name.replace("_", "-")
            raise ValueError(f"{flag} must be ≥ 1, but is {getattr(args, name)}")
    channels, heads = args.decoder_embed_dim, args.decoder_attention_heads
    if channels % heads:
        raise ValueError(
            f"--decoder-embed-dim must be a multiple of --decoder-attention-heads, but "
            f"is {channels} for {heads} heads"
        )


def architecture(args: Any, **sizes: Any) -> None:
    """Set the defaults of :class:`TwoWayConfig`, the paper's, but for these."""
    for option in OPTIONS:
        default = sizes.get(option.name, option.default)
        setattr(args, option.name, getattr(args, option.name, default))
