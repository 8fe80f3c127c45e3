"""The two texts of the two-way model as axes of its grid: see :mod:`two_way.model`."""

from argparse import Namespace
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.dataclass import FairseqDataclass
from fairseq.models import FairseqDecoder
from fairseq.models.transformer import TransformerConfig, TransformerDecoderBase
from torch import Tensor, nn

from sbnmt_plugin.families.two_way.lstm_2d import TwoDimensionalLSTM, masked_maximum
from sbnmt_plugin.layout import Layout, live_places
from sbnmt_plugin.network.encoder import POSITIONS, UnlimitedEncoder
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.network.transformer import own_options
from sbnmt_plugin.task_options import option

TABLE = 1024  # positions that are made at the start; being sinusoidal they have no end


@dataclass
class TwoWayConfig(FairseqDataclass):
    """Options of both stacks, by fairseq's names, and of the grid, as in the paper."""

    decoder_embed_dim: int = option(512, "channels of both stacks")
    decoder_ffn_embed_dim: int = option(2048, "inner channels of both stacks")
    decoder_layers: int = option(4, "layers of either stack")
    decoder_attention_heads: int = option(8, "heads of either stack")
    decoder_normalize_before: bool = option(False, "apply layernorm before each block")
    dropout: float = option(0.3, "dropout in the stacks")
    attention_dropout: float = option(0.0, "dropout on attention weights")
    activation_dropout: float = option(0.0, "dropout after the activation")
    two_way_units: int = option(750, "units of the two-way model's grid")


def axis(cfg: Any, dictionary: Any) -> TransformerDecoderBase:
    """A stack that reads a text causally: fairseq's decoder without a source."""
    channels, padding = cfg.decoder_embed_dim, dictionary.pad()
    options = {x.name: getattr(cfg, x.name) for x in own_options(TwoWayConfig)}
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


class TwoWayEncoder(UnlimitedEncoder):
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
        padding, order = self.words_first(src_tokens)
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


@dataclass
class GridState:
    """State of N hypotheses: see :class:`protocol.DecoderState`.

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
        """Start with the row below the first: see :meth:`protocol.Decoder.start`.

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

    def step(self, tokens: Tensor, state: GridState) -> tuple[NextTokens, None]:
        """See :meth:`protocol.Decoder.step`."""
        read, _ = self.axis.extract_features(tokens, None, state.cache)
        beam = state.layout.beam
        target = self.grid.target(read[:, -1:]).unflatten(0, (-1, beam))  # (B, K, 1, …)
        inputs = (state.source[:, None] + target).flatten(0, 1)
        state.z, state.c = self.grid.row(inputs, state.z, state.c)
        padding = state.padding.repeat_interleave(beam, 0)[..., None]
        logits = self.forth(masked_maximum(state.z, padding, 1))
        return NextTokens.of_logits(logits), None

    def forward(
        self, prev_output_tokens: Tensor, encoder_out: Any, live: Tensor | None = None
    ) -> tuple[Tensor, dict[str, Any]]:
        """Score both texts, teacher-forced.

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
        """Return the longest target."""
        return POSITIONS


def rows_at(x: Tensor, live: Tensor) -> Tensor:
    """Pick entries (n, Z) of (B, T, Z), at places of the time-major grid (T, B)."""
    return x.transpose(0, 1).flatten(0, 1).index_select(0, live)
