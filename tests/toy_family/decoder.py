"""A recurrent decoder of both directions, which needs only the plugin's protocol."""

import torch
from torch import nn

from sbnmt_plugin.layout import TRAINING
from sbnmt_plugin.network.next_tokens import NextTokens


class Memory:
    """The state of the decoder: a vector a row, and the source's a sentence."""

    def __init__(self, layout, source, hidden):
        self.layout = layout
        self.source = source  # (B, C)
        self.hidden = hidden  # (N, C)

    def select(self, rows):
        """Go on with these rows."""
        self.hidden = self.hidden[rows]
        group = self.layout.group
        self.source = self.source[rows[::group] // group]


class RecurrentDecoder(nn.Module):
    """A GRU a hypothesis; what comes next depends on its memory and its partner's."""

    def __init__(self, vocabulary, channels):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, channels)
        self.cell = nn.GRUCell(channels, channels)
        self.output = nn.Linear(2 * channels, vocabulary)

    def start(self, encoder_out, layout, weights=False):
        """Start without memories of what is written."""
        rows = encoder_out.repeat_interleave(layout.group, 0)
        return Memory(layout, encoder_out, torch.zeros_like(rows))

    def step(self, tokens, state):
        """Score what may come next."""
        return NextTokens.of_logits(self.read(tokens[:, -1], state)), None

    def read(self, words, state):
        """Read a word of every row: logits (N, V) of the next."""
        layout = state.layout
        source = state.source.repeat_interleave(layout.group, 0)
        state.hidden = self.cell(self.embed(words) + source, state.hidden)
        both = torch.cat([state.hidden, layout.partners(state.hidden)], dim=1)
        return self.output(both)

    def score(self, tokens, encoder_out, live):
        """Logits (n, V) of the live places of streams (2B, T), in training."""
        state = self.start(encoder_out, TRAINING)
        steps = [self.read(words, state) for words in tokens.unbind(1)]
        return torch.stack(steps).flatten(0, 1)[live]
