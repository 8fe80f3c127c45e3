"""The recurrent encoder and decoder of RNNsearch* and BA-NMT: see :mod:`ba.model`.

Equations are those of Xue et al. there.
"""

from dataclasses import dataclass
from typing import Any

import torch
from fairseq.models import FairseqDecoder
from fairseq.modules import FairseqDropout
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sbnmt_plugin.families.ba.attention import HISTORIES, HistoryAttention, Memory
from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.encoder import POSITIONS, UnlimitedEncoder
from sbnmt_plugin.network.next_tokens import NextTokens


class RNNEncoder(UnlimitedEncoder):
    """Encoder with a GRU in each direction; h_j joins both states (eq. 1-3).

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
        padding, order = self.words_first(src_tokens)
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


@dataclass
class RNNState:
    """State of N hypotheses: see :class:`protocol.DecoderState`.

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

    Attributes:
        projects_rows: its logits are one linear layer on its features.
    """

    projects_rows = True

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
        """Start with s_0 and empty histories: see :meth:`protocol.Decoder.start`."""
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

    def step(self, tokens: Tensor, state: RNNState) -> tuple[NextTokens, Tensor | None]:
        """See :meth:`protocol.Decoder.step`."""
        features, weights = self.advance(tokens[:, -1:], state)
        following = NextTokens.of_logits(self.output_layer(features[:, 0]))
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
        """Take the same steps teacher-forced, one hypothesis a sentence.

        Args:
            prev_output_tokens: (B, T).

        Returns:
            (B, T, E), and fairseq's dictionary: ``attn`` holds (B, T, S).
        """
        state = self.start(encoder_out, Layout(directions=1))
        features, weights = self.advance(prev_output_tokens, state)
        return features, {"attn": [weights]}

    def output_layer(self, features: Tensor, **others: Any) -> Tensor:
        """Project features (…, E) to logits (…, V)."""
        logits: Tensor = self.output_projection(features)
        return logits

    def max_positions(self) -> int:
        """Return the longest target."""
        return POSITIONS
