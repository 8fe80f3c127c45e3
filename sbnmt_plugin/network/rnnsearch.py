"""BA-NMT and its baseline RNNsearch*: recurrent, one direction, with histories.

Xue, Feng, You, Zhang, Li: Neural Machine Translation with Bilingual History Involved
Attention.  An encoder of two GRUs, a decoder of two GRU cells with attention between
them (that of dl4mt-tutorial, session 2, which the paper names as its baseline), and
what :mod:`history` adds.  With y the embedding of the word before::

    s_0 = tanh(W_0 mean_j h_j + b_0) ;   q_i = GRU_1(y_{i-1}, s_{i-1})
    s_i = GRU_2(a_i, q_i)                                                   eq. 7
    t_i = tanh(W [y_{i-1}; s_i; a_i; h̄_i; s̄_i] + b)                         eq. 8
    p(y_i) = softmax(W_o dropout(t_i) + b_o)                                eq. 9, 10

Departs from the paper where it is silent or at odds with its baseline: the state that
asks is q_i, not s_{i-1}; t_i has a tanh; A = H, and G as well where nothing else is
said.  A matrix on a concatenation is the sum of the paper's.
"""

from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Optional

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import (
    FairseqDecoder,
    FairseqEncoder,
    FairseqEncoderDecoderModel,
    register_model,
    register_model_architecture,
)
from fairseq.modules import FairseqDropout
from omegaconf import OmegaConf, open_dict
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sbnmt_plugin import hub
from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.bidirectional import tag_indices
from sbnmt_plugin.network.history import HISTORIES, HistoryAttention, Memory
from sbnmt_plugin.network.next_tokens import NextTokens

POSITIONS = 100_000  # as many as fairseq's LSTM takes
FIRST = 0.1  # weights begin in ± this
SIZES = "embed_dim", "hidden_size"  # of encoder and decoder


@dataclass
class RNNSearchConfig(FairseqDataclass):
    """fairseq's names for sizes, and ours; defaults are the paper's."""

    encoder_embed_dim: int = field(
        default=512, metadata={"help": "encoder embedding dimension"}
    )
    encoder_hidden_size: int = field(
        default=512, metadata={"help": "of each of the encoder's two directions"}
    )
    decoder_embed_dim: int = field(
        default=512, metadata={"help": "decoder embedding dimension"}
    )
    decoder_hidden_size: int = field(
        default=512, metadata={"help": "of the decoder's state, and of its attention"}
    )
    dropout: float = field(
        default=0.2, metadata={"help": "dropout before the output matrix"}
    )
    share_decoder_input_output_embed: bool = field(
        default=False, metadata={"help": "share decoder input and output embeddings"}
    )
    share_all_embeddings: bool = field(
        default=False, metadata={"help": "share all embeddings (one dictionary)"}
    )
    ba_history: ChoiceEnum(list(HISTORIES)) = field(  # type: ignore[valid-type]
        default="none",
        metadata={"help": "what attention remembers of every source word"},
    )
    ba_history_size: Optional[int] = field(
        default=None,
        metadata={"help": "size of a history; default: --decoder-hidden-size"},
    )


class RNNEncoder(FairseqEncoder):
    """A GRU in each direction; h_j is both its states (eq. 1-3).

    Args:
        embedding: E channels.
        hidden: H, of a direction.
    """

    def __init__(self, dictionary: Any, embedding: nn.Embedding, hidden: int) -> None:
        super().__init__(dictionary)
        self.embed_tokens = embedding
        self.gru = nn.GRU(
            embedding.embedding_dim, hidden, batch_first=True, bidirectional=True
        )

    def forward(
        self, src_tokens: Tensor, src_lengths: Any = None, **others: Any
    ) -> dict[str, list[Tensor]]:
        """Encode B sentences, padded on either side.

        Args:
            src_tokens: (B, S).

        Returns:
            ``encoder_out``, h (S, B, 2H), and ``encoder_padding_mask`` (B, S), both
            with the columns of ``src_tokens``.
        """
        padding = src_tokens.eq(self.dictionary.pad())
        order = padding.byte().sort(dim=1, stable=True).indices  # words come first
        embedded = self.embed_tokens(src_tokens.gather(1, order))
        lengths = (~padding).sum(1).cpu()
        packed = pack_padded_sequence(embedded, lengths, True, enforce_sorted=False)
        states, _ = pad_packed_sequence(
            self.gru(packed)[0], True, total_length=src_tokens.size(1)
        )
        back = order.argsort(1)[..., None].expand_as(states)
        return {
            "encoder_out": [states.gather(1, back).transpose(0, 1)],
            "encoder_padding_mask": [padding],
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
class RNNState:
    """What the decoder keeps of N hypotheses: see :class:`protocol.DecoderState`.

    Attributes:
        layout: D = 1.
        memory: one entry a sentence.
        hidden: s, (N, H).
        histories: (B, K, S, G) each.
        weights: whether a step is to give them.
    """

    layout: Layout
    memory: Memory
    hidden: Tensor
    histories: list[Tensor]
    weights: bool

    def select(self, rows: Tensor) -> None:
        """See :meth:`protocol.DecoderState.select`."""
        beam = self.layout.beam
        self.histories = [
            x.flatten(0, 1)[rows].unflatten(0, (-1, beam)) for x in self.histories
        ]
        if rows.numel() != self.hidden.size(0):
            self.memory = self.memory.select(rows[::beam] // beam)
        self.hidden = self.hidden[rows]


class RNNSearchDecoder(FairseqDecoder):
    """The conditional GRU of dl4mt-tutorial, whose attention may have histories.

    Args:
        cfg: the model's options.
        embedding: E channels, of the target.
    """

    def __init__(self, cfg: Any, dictionary: Any, embedding: nn.Embedding) -> None:
        super().__init__(dictionary)
        size, hidden = embedding.embedding_dim, cfg.decoder_hidden_size
        states, names = 2 * cfg.encoder_hidden_size, HISTORIES[str(cfg.ba_history)]
        history_size = cfg.ba_history_size or hidden
        self.embed_tokens = embedding
        self.first = nn.Linear(states, hidden)
        self.asking = nn.GRUCell(size, hidden)  # GRU_1
        self.attention = HistoryAttention(hidden, states, hidden, history_size, names)
        self.answering = nn.GRUCell(states, hidden)  # GRU_2
        read = size + hidden + states + len(names) * history_size
        self.readout = nn.Linear(read, size)
        self.dropout = FairseqDropout(cfg.dropout)
        self.output_projection = nn.Linear(size, len(dictionary))
        if cfg.share_decoder_input_output_embed or cfg.share_all_embeddings:
            self.output_projection.weight = embedding.weight
        self.states = states

    def start(
        self, encoder_out: Any, layout: Layout, weights: bool = False
    ) -> RNNState:
        """s_0, and empty histories: see :meth:`protocol.Decoder.start`."""
        states = encoder_out["encoder_out"][0].transpose(0, 1)
        padding = encoder_out["encoder_padding_mask"][0]
        memory = self.attention.read(states, padding)
        words = (~padding).to(states)[..., None]
        hidden = self.first((states * words).sum(1) / words.sum(1)).tanh()
        return RNNState(
            layout=layout,
            memory=memory,
            hidden=hidden.repeat_interleave(layout.beam, 0),
            histories=self.attention.start(memory, layout.beam),
            weights=weights,
        )

    def step(
        self, tokens: Tensor, state: RNNState, temperature: float = 1.0
    ) -> tuple[NextTokens, Tensor | None]:
        """See :meth:`protocol.Decoder.step`."""
        features, weights = self.advance(tokens[:, -1:], state)
        logits = self.output_layer(features[:, 0])
        following = NextTokens.of_logits(logits, temperature)
        return following, weights[:, 0] if state.weights else None

    def advance(self, tokens: Tensor, state: RNNState) -> tuple[Tensor, Tensor]:
        """Read some words, one after the other.

        Args:
            tokens: (N, T).
            state: changed.

        Returns:
            dropout(t), (N, T, E), and α (N, T, S).
        """
        embedded = self.embed_tokens(tokens)
        beam, found = state.layout.beam, []
        for word in embedded.unbind(1):
            query = self.asking(word, state.hidden)
            weights, contexts, state.histories = self.attention(
                query.unflatten(0, (-1, beam)), state.memory, state.histories
            )
            contexts = contexts.flatten(0, 1)
            state.hidden = self.answering(contexts[:, : self.states], query)
            found.append((state.hidden, contexts, weights.flatten(0, 1)))
        hidden, contexts, weights = (torch.stack(x, 1) for x in zip(*found))
        read = self.readout(torch.cat([embedded, hidden, contexts], -1)).tanh()
        return self.dropout(read), weights

    def extract_features(
        self, prev_output_tokens: Tensor, encoder_out: Any = None, **others: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """Teacher-forced: the same steps, one hypothesis a sentence.

        Args:
            prev_output_tokens: (B, T).

        Returns:
            (B, T, E), and fairseq's dictionary: ``attn`` holds (B, T, S).
        """
        state = self.start(encoder_out, Layout(directions=1))
        features, weights = self.advance(prev_output_tokens, state)
        return features, {"attn": [weights]}

    def output_layer(self, features: Tensor, **others: Any) -> Tensor:
        """(…, E) -> (…, V)."""
        logits: Tensor = self.output_projection(features)
        return logits

    def max_positions(self) -> int:
        """Of the target."""
        return POSITIONS


@register_model("rnnsearch")
class RNNSearchModel(hub.Pretrained, FairseqEncoderDecoderModel):
    """RNNsearch*, SA-NMT, TA-NMT and BA-NMT: one model, by what attention remembers.

    Train and decode with ``--task sb_translation --sb-direction l2r`` (or ``r2l``).
    """

    searched_by = "synchronous"
    bidirectional = False

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Options without defaults: the architecture functions set those."""
        gen_parser_from_dataclass(parser, RNNSearchConfig(), delete_default=True)

    @classmethod
    def build_model(cls, args: Any, task: Any) -> "RNNSearchModel":
        """Build from a namespace, on which resolved values are left to be saved.

        Raises:
            ValueError: sizes that do not fit; a dictionary without tags (the wrong
                task: another's search knows no histories).
        """
        with open_dict(args) if OmegaConf.is_config(args) else nullcontext():
            architecture(args)
        check_sizes(args)
        words, others = task.source_dictionary, task.target_dictionary
        tag_indices(others, "rnnsearch")
        if args.share_all_embeddings and words != others:
            raise ValueError(
                "--share-all-embeddings needs one dictionary for both languages: "
                "binarise with --joined-dictionary, or leave it out"
            )
        target = embedding(others, args.decoder_embed_dim)
        source = target
        if not args.share_all_embeddings:
            source = embedding(words, args.encoder_embed_dim)
        encoder = RNNEncoder(words, source, args.encoder_hidden_size)
        model = cls(encoder, RNNSearchDecoder(args, others, target))
        for parameter in model.parameters():
            nn.init.uniform_(parameter, -FIRST, FIRST)
        for table in source, target:
            nn.init.zeros_(table.weight[table.padding_idx])
        return model


def embedding(dictionary: Any, channels: int) -> nn.Embedding:
    """Of all words; padding is zero, and stays so."""
    return nn.Embedding(len(dictionary), channels, dictionary.pad())


def check_sizes(args: Any) -> None:
    """Refuse sizes that do not fit.

    Raises:
        ValueError: with the flag.
    """
    names = [f"{side}_{size}" for side in ("encoder", "decoder") for size in SIZES]
    for name in (*names, "ba_history_size"):
        size = getattr(args, name)
        if size is not None and size < 1:
            flag = "--" + name.replace("_", "-")
            raise ValueError(f"{flag} must be ≥ 1, but is {size}")
    if args.share_all_embeddings and args.encoder_embed_dim != args.decoder_embed_dim:
        raise ValueError(
            "--share-all-embeddings needs --encoder-embed-dim and --decoder-embed-dim "
            f"to be equal, but they are {args.encoder_embed_dim} and "
            f"{args.decoder_embed_dim}"
        )


def architecture(args: Any, history: str = "none") -> None:
    """Defaults of :class:`RNNSearchConfig`, with these histories."""
    args.ba_history = getattr(args, "ba_history", history)
    for option in fields(RNNSearchConfig):
        if not option.name.startswith("_"):
            setattr(args, option.name, getattr(args, option.name, option.default))


ARCHITECTURES = {
    "rnnsearch": "none",
    "sa_nmt": "source",
    "ta_nmt": "target",
    "ba_nmt": "both",
}
for name, history in ARCHITECTURES.items():
    defaults = partial(architecture, history=history)
    register_model_architecture("rnnsearch", name)(defaults)
