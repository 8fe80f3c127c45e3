"""Two-way translation: one model of both translation directions, on a grid.

Bahar, Brix, Ney: Two-Way Neural Machine Translation: A Proof of Concept for
Bidirectional Translation Modeling using a Two-Dimensional Grid.  Both texts are read
by causal stacks, h and s; an LSTM runs over all pairs of their places (see
:mod:`two_dimensional`); a maximum along either axis predicts the other text::

    p(e_i | e_<i, f) = softmax(W_e max_j z_{j,i} + b_e)
    p(f_j | f_<j, e) = softmax(W_f max_i z_{j,i} + b_f)

Two-way is source and target, not left and right: the model writes both from the left.
There is one path, from the source to the target.  A checkpoint serves the exchanged
languages by exchanging its weights as it is loaded: see :func:`transpose_weights`.

Departs from the paper in what J and I count: ``</s>`` too.  With words alone z_{J,i}
would not have read f_J, and e could not depend on it.
"""

from argparse import Namespace
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import (
    FairseqDecoder,
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    register_model,
    register_model_architecture,
)
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from omegaconf import OmegaConf, open_dict
from torch import Tensor, nn

from sbnmt_plugin import hub
from sbnmt_plugin.checkpoints import exchanged_languages
from sbnmt_plugin.layout import Layout, live_places
from sbnmt_plugin.network.bidirectional import tag_indices
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.network.two_dimensional import (
    TwoDimensionalLSTM,
    masked_maximum,
    mix_negated,
)

POSITIONS = 100_000  # sinusoidal ones have no end
TABLE = 1024  # positions that are made at the start
# what changes places with what where the languages do
AXES = (
    ("encoder.axis.", "decoder.axis."),
    ("decoder.grid.source.weight", "decoder.grid.target.weight"),
    ("decoder.grid.source_past.", "decoder.grid.target_past."),
    ("decoder.forth.", "decoder.back."),
)


@dataclass
class TwoWayConfig(FairseqDataclass):
    """fairseq's names for sizes, of both stacks, and ours; defaults are the paper's."""

    decoder_embed_dim: int = field(
        default=512, metadata={"help": "channels of both stacks"}
    )
    decoder_ffn_embed_dim: int = field(
        default=2048, metadata={"help": "inner channels of both stacks"}
    )
    decoder_layers: int = field(default=4, metadata={"help": "of either stack"})
    decoder_attention_heads: int = field(
        default=8, metadata={"help": "of either stack"}
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


def axis(cfg: Any, dictionary: Any) -> TransformerDecoderBase:
    """A stack that reads a text causally: fairseq's decoder without a source."""
    channels, padding = cfg.decoder_embed_dim, dictionary.pad()
    options = {option.name: getattr(cfg, option.name) for option in OPTIONS}
    shape = Namespace(
        **options, decoder_output_dim=channels, max_target_positions=TABLE
    )
    embedding = nn.Embedding(len(dictionary), channels, padding)
    nn.init.normal_(embedding.weight, std=channels**-0.5)
    nn.init.zeros_(embedding.weight[padding])
    return TransformerDecoderBase(
        TransformerConfig.from_namespace(shape),
        dictionary,
        embedding,
        no_encoder_attn=True,
        output_projection=nn.Identity(),  # its readout is the grid's
    )


class TwoWayEncoder(FairseqEncoder):
    """Reads the source from the left: h_j has seen ``</s>`` f_1 … f_{j-1}."""

    def __init__(self, cfg: Any, dictionary: Any) -> None:
        super().__init__(dictionary)
        self.axis = axis(cfg, dictionary)

    def forward(
        self, src_tokens: Tensor, src_lengths: Any = None, **others: Any
    ) -> dict[str, list[Tensor]]:
        """Encode B sentences, padded on either side, ``</s>`` last.

        Args:
            src_tokens: (B, J).

        Returns:
            ``encoder_out``, h (J, B, C), ``encoder_padding_mask`` (B, J), and
            ``labels`` (B, J), what is to be predicted there; all are padded on the
            right.
        """
        padding = src_tokens.eq(self.dictionary.pad())
        order = padding.byte().sort(dim=1, stable=True).indices  # words come first
        labels, padding = src_tokens.gather(1, order), padding.gather(1, order)
        start = torch.full_like(labels[:, :1], self.dictionary.eos())
        inputs = torch.cat([start, labels[:, :-1]], 1)
        inputs = inputs.masked_fill(padding, self.dictionary.pad())
        states, _ = self.axis.extract_features(inputs, None)
        return {
            "encoder_out": [states.transpose(0, 1)],
            "encoder_padding_mask": [padding],
            "labels": [labels],
        }

    def reorder_encoder_out(
        self, encoder_out: dict[str, list[Tensor]], new_order: Tensor
    ) -> dict[str, list[Tensor]]:
        """fairseq's; sentences may be copied."""
        return {
            name: [x.index_select(int(name == "encoder_out"), new_order) for x in found]
            for name, found in encoder_out.items()
        }

    def max_positions(self) -> int:
        """Of the source."""
        return POSITIONS


@dataclass
class GridState:
    """What the decoder keeps of N hypotheses: see :class:`protocol.DecoderState`.

    Attributes:
        layout: D = 1.
        axis: the stack that reads the target.
        source: W_h h + b, (B, J, 5Z), one entry a sentence.
        padding: (B, J), of the source.
        z, c: the last row, (N, J, Z).
        cache: of the stack.
    """

    layout: Layout
    axis: TransformerDecoderBase
    source: Tensor
    padding: Tensor
    z: Tensor
    c: Tensor
    cache: dict[str, Any] = field(default_factory=dict)

    def select(self, rows: Tensor) -> None:
        """See :meth:`protocol.DecoderState.select`."""
        beam = self.layout.beam
        self.axis.reorder_incremental_state_scripting(self.cache, rows)
        if rows.numel() != self.z.size(0):
            sentences = rows[::beam] // beam
            self.source, self.padding = self.source[sentences], self.padding[sentences]
        self.z, self.c = self.z[rows], self.c[rows]


class TwoWayDecoder(FairseqDecoder):
    """Reads the target from the left, and holds the grid and both readouts.

    Args:
        cfg: the model's options.
        source: dictionary of the other text.
        dictionary: of the text that is written.
    """

    def __init__(self, cfg: Any, source: Any, dictionary: Any) -> None:
        super().__init__(dictionary)
        self.axis = axis(cfg, dictionary)
        units = cfg.two_way_units
        self.grid = TwoDimensionalLSTM(cfg.decoder_embed_dim, units)
        self.forth = nn.Linear(units, len(dictionary))  # W_e, b_e
        self.back = nn.Linear(units, len(source))  # W_f, b_f

    def start(
        self, encoder_out: Any, layout: Layout, weights: bool = False
    ) -> GridState:
        """The row below the first: see :meth:`protocol.Decoder.start`.

        Raises:
            ValueError: attention is wanted.
        """
        if weights:
            raise ValueError(
                "--print-alignment, as sbnmt aer, needs attention to the source, but a "
                "two_way model has none: leave it out"
            )
        source = self.grid.source(encoder_out["encoder_out"][0].transpose(0, 1))
        sentences, places, _ = source.shape
        rows = sentences * layout.beam, places, self.grid.units
        return GridState(
            layout=layout,
            axis=self.axis,
            source=source,
            padding=encoder_out["encoder_padding_mask"][0],
            z=source.new_zeros(rows),
            c=source.new_zeros(rows),
        )

    def step(
        self, tokens: Tensor, state: GridState, temperature: float = 1.0
    ) -> tuple[NextTokens, None]:
        """See :meth:`protocol.Decoder.step`."""
        read, _ = self.axis.extract_features(tokens, None, state.cache)
        beam = state.layout.beam
        target = self.grid.target(read[:, -1:]).unflatten(0, (-1, beam))  # (B, K, 1, …)
        inputs = (state.source[:, None] + target).flatten(0, 1)
        state.z, state.c = self.grid.row(inputs, state.z, state.c)
        padding = state.padding.repeat_interleave(beam, 0)[..., None]
        logits = self.forth(masked_maximum(state.z, padding, 1))
        return NextTokens.of_logits(logits, temperature), None

    def forward(
        self, prev_output_tokens: Tensor, encoder_out: Any, live: Tensor | None = None
    ) -> tuple[Tensor, dict[str, Any]]:
        """Teacher-forced on both texts.

        Args:
            prev_output_tokens: (B, I), padded on the right.
            live: (n,) the places that are no padding, where both readouts are wanted.

        Returns:
            Logits (B, I, V_e) and an empty dictionary; with ``live`` logits (n, V_e)
            of these places, and ``back``: logits (m, V_f), labels (B, J), and the
            places of those m logits among them, as in ``live``.
        """
        padding = encoder_out["encoder_padding_mask"][0]
        read, _ = self.axis.extract_features(prev_output_tokens, None)
        grid = self.grid.by_diagonals(
            self.grid.source(encoder_out["encoder_out"][0].transpose(0, 1)),
            self.grid.target(read),
        )  # (B, J, I, Z)
        forth = masked_maximum(grid, padding[:, :, None, None], 1)
        if live is None:
            return self.forth(forth), {}
        unwritten = prev_output_tokens.eq(self.dictionary.pad())
        back = masked_maximum(grid, unwritten[:, None, :, None], 2)
        places = live_places(~padding)
        logits = self.back(rows_at(back, places))
        extra = {"back": (logits, encoder_out["labels"][0], places)}
        return self.forth(rows_at(forth, live)), extra

    def max_positions(self) -> int:
        """Of the target."""
        return POSITIONS


def rows_at(x: Tensor, live: Tensor) -> Tensor:
    """Entries (n, Z) of (B, T, Z), at places of the time-major grid (T, B)."""
    return x.transpose(0, 1).flatten(0, 1).index_select(0, live)


@register_model("two_way")
class TwoWayModel(hub.Pretrained, FairseqEncoderDecoderModel):
    """One model of both translation directions.

    Train with ``--task sb_translation --sb-direction l2r --criterion
    two_way_cross_entropy``; decode with the languages of the training, or with them
    exchanged.

    Attributes:
        exchanged: whether weights that are loaded are those of the exchanged languages.
    """

    searched_by = "synchronous"
    bidirectional = False
    exchanged = False

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Options without defaults: the architecture functions set those."""
        gen_parser_from_dataclass(parser, TwoWayConfig(), delete_default=True)

    @classmethod
    def build_model(cls, args: Any, task: Any) -> "TwoWayModel":
        """Build from a namespace, on which resolved values are left to be saved.

        ``two_way_languages``, those of the training, are left there as well.

        Raises:
            ValueError: sizes that do not fit; a dictionary without tags (the wrong
                task); R2L; a checkpoint of other languages.
        """
        languages = [task.cfg.source_lang, task.cfg.target_lang]
        with open_dict(args) if OmegaConf.is_config(args) else nullcontext():
            architecture(args)
            args.two_way_languages = getattr(args, "two_way_languages", languages)
        check_options(args)
        source, target = task.source_dictionary, task.target_dictionary
        tag_indices(target, "two_way")
        model = cls(TwoWayEncoder(args, source), TwoWayDecoder(args, source, target))
        model.exchanged = exchanged_languages(args.two_way_languages, *languages)
        return model

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Any,
        prev_output_tokens: Tensor,
        live: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """See :meth:`TwoWayDecoder.forward`.

        Raises:
            ValueError: a criterion that trains one direction alone.
        """
        if live is None and self.training:
            raise ValueError(
                "a two_way model learns both translation directions at once: train it "
                "with --criterion two_way_cross_entropy"
            )
        encoder_out = self.encoder(src_tokens)
        return self.decoder(prev_output_tokens, encoder_out, live)

    def upgrade_state_dict_named(
        self, state_dict: dict[str, Tensor], name: str
    ) -> None:
        """Exchange the languages of a checkpoint, where the command does."""
        super().upgrade_state_dict_named(state_dict, name)
        if self.exchanged:  # until they are loaded
            transpose_weights(state_dict)
            self.exchanged = False


def transpose_weights(weights: dict[str, Tensor]) -> None:
    """Turn a model of f and e into the same model of e and f, in place.

    The axes change places, and so do the two pasts of every cell; with them the gate
    that mixes these changes its sign.  Twice is the model as it was.
    """
    places = {**dict(AXES), **{b: a for a, b in AXES}}
    found = {}
    for name, value in weights.items():
        start = next((x for x in places if name.startswith(x)), "")
        new = places.get(start, "") + name.removeprefix(start)
        found[new] = mix_negated(value) if ".grid." in name else value
    weights.clear()
    weights.update(found)


def check_options(args: Any) -> None:
    """Refuse sizes that do not fit, and R2L.

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
    if str(getattr(args, "sb_direction", "l2r")) == "r2l":
        raise ValueError(
            "--sb-direction r2l is not for two_way, which reads and writes both texts "
            "from the left: use --sb-direction l2r"
        )


def architecture(args: Any, **sizes: Any) -> None:
    """Defaults of :class:`TwoWayConfig`, but for these."""
    for option in OPTIONS:
        default = sizes.get(option.name, option.default)
        setattr(args, option.name, getattr(args, option.name, default))


TINY = {
    "decoder_embed_dim": 64,
    "decoder_ffn_embed_dim": 64,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "two_way_units": 64,
}
register_model_architecture("two_way", "two_way")(architecture)
register_model_architecture("two_way", "two_way_tiny")(partial(architecture, **TINY))
