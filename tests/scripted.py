"""A model without a network: probabilities that depend on all that they may depend on.

The log-probability of a token is a hash of direction, own prefix and partner's prefix,
so a search that pairs, reorders or pads wrongly meets other numbers.
"""

from __future__ import annotations

import hashlib
from argparse import Namespace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.search.options import Symbols

BOS, PAD, EOS, UNK = 0, 1, 2, 3
VOCABULARY = 9  # 0 <s>, 1 pad, 2 </s>, 3 unk, 4-6 words, 7 8 tags
TAGS = (7, 8)
NEVER = (PAD, BOS, *TAGS)
SYMBOLS = Symbols(pad=PAD, eos=EOS, unk=UNK, starts=TAGS, never=NEVER)


def script_row(
    sentence: int,
    direction: int,
    own: list[int],
    partner: list[int],
    interact: bool = True,
    sharpness: float = 3.0,
    grid: int = 0,
) -> list[float]:
    """Log-probabilities of the next token.

    Args:
        grid: with a number, logits are multiples of 1 / grid, so that scores tie.
    """
    read = tuple(partner) if interact else None
    return list(known_row(sentence, direction, tuple(own), read, sharpness, grid))


@lru_cache(2**15)
def known_row(*given: Any) -> list[float]:
    """What :func:`script_row` returns; one search asks for the same row as another."""
    sentence, direction, own, read, sharpness, grid = given
    key = repr((sentence, direction, [*own], None if read is None else [*read]))
    logits = []
    for token in range(VOCABULARY):
        digest = hashlib.sha256(f"{key} {token}".encode()).digest()
        value = int.from_bytes(digest[:6], "big") / 2**48
        if grid:
            value = int(value * grid) / grid
        logits.append(sharpness * value)
    if grid:  # exact sums: powers of two instead of a softmax
        return [value - 2 * sharpness for value in logits]
    return torch.tensor(logits, dtype=torch.float64).log_softmax(0).tolist()


class Cache:
    """The decoder's state: remembers the sentences and the order of rows only."""

    def __init__(self, layout: Any, first: Tensor, read: Tensor | None = None) -> None:
        self.layout = layout
        self.first = first
        self.read = read
        self.tokens: Tensor | None = None

    def select(self, rows: Tensor) -> None:
        group = self.layout.group
        sentences = rows[::group] // group
        self.first = self.first[sentences]
        if self.read is not None:
            self.read = self.read[sentences]
        if self.tokens is not None:
            self.tokens = self.tokens[rows]


class ScriptedModel(nn.Module):
    """Looks like an SB-NMT model to the generator; sentence number = first token."""

    bidirectional = True

    def __init__(self, **script: Any) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        self.script = script
        self.encoder = Namespace(
            forward_torchscript=lambda net: {"first": net["src_tokens"][:, -2]}
        )
        self.decoder = ScriptedDecoder(self)

    def max_decoder_positions(self) -> int:
        return 50


class AsynchronousModel(ScriptedModel):
    """Looks like an ABD-NMT model; what comes next in L2R depends on what was read."""

    searched_by = "asynchronous"

    def __init__(self, **script: Any) -> None:
        super().__init__(**script)
        self.decoder.direction = 0
        self.backward_decoder = ScriptedDecoder(self, direction=1)

    def with_reverse(self, encoder_out: Any, tokens: Tensor) -> Any:
        return {**encoder_out, "read": tokens}


class ScriptedDecoder:
    """Of the direction of its place among two, or of one given."""

    def __init__(self, model: ScriptedModel, direction: int | None = None) -> None:
        self.model = model
        self.direction = direction

    def start(self, encoder_out: Any, layout: Any, weights: bool = False) -> Cache:
        return Cache(layout, encoder_out["first"], encoder_out.get("read"))

    def step(self, tokens: Tensor, state: Cache):
        layout = state.layout
        if state.tokens is not None:  # selected as the hypotheses were
            assert state.tokens.equal(tokens[:, :-1])
        state.tokens = tokens
        grouped = layout.split(tokens).tolist()
        rows = []
        for place, (sentence, directions) in enumerate(
            zip(state.first.tolist(), grouped)
        ):
            for d, hypotheses in enumerate(directions):
                d = d if self.direction is None else self.direction
                for rank, own in enumerate(hypotheses):
                    partner: list[int] = []
                    if state.read is not None:
                        row = state.read[place]
                        partner = row[row != PAD].tolist()
                    if layout.directions == 2:
                        other = layout.pairing.rank(rank)
                        partner = directions[1 - d][other][1:]
                    rows.append(
                        script_row(sentence, d, own[1:], partner, **self.model.script)
                    )
        scores = torch.tensor(rows, dtype=torch.float64)
        return NextTokens.of_lprobs(scores), None


def sample(sentences: list[int], lengths: list[int] | None = None) -> dict[str, Any]:
    """A batch whose sentences are numbered; lengths count </s>."""
    lengths = lengths or [3] * len(sentences)
    width = max(lengths)
    rows = []
    for sentence, length in zip(sentences, lengths):
        rows.append([PAD] * (width - length) + [4] * (length - 2) + [sentence, EOS])
    return {
        "id": torch.arange(len(sentences)),
        "net_input": {
            "src_tokens": torch.tensor(rows),
            "src_lengths": torch.tensor(lengths),
        },
    }
