"""Log-probabilities of given texts, token by token: the one path that scores texts.

Each text stands alone: it reads its own words before, and the source.  All texts of
some sentences are scored in one teacher-forced pass of every model, which computes a
beginning that several of them share once.  A pass has a bounded number of positions, so
that its memory does not depend on the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.layout import Layout, live_places
from sbnmt_plugin.network.fairseq_decoder import searchable
from sbnmt_plugin.network.grid import PrefixTrees
from sbnmt_plugin.network.kv_cache import select_sentences
from sbnmt_plugin.network.protocol import Forced, name_of
from sbnmt_plugin.search.options import Symbols
from sbnmt_plugin.search.scorer import Scorer, mean_probability

POSITIONS_AT_A_TIME = 2**12  # of the target; more than that is done in several passes

Text = tuple[int, ...]  # with </s>, in natural order
Stream = tuple[Text, int]  # a text and the direction in which it is scored


def check_scores_texts(model: Any, flag: str) -> None:
    """Refuse a model that cannot score given texts.

    Args:
        flag: that names it.

    Raises:
        ValueError: with it.
    """
    if not isinstance(searchable(model), Forced):
        raise ValueError(
            f"{flag} must be a Transformer, which scores a whole text at once, but is "
            f"{name_of(model)}: choose another"
        )


def backwards(text: Text) -> Text:
    """Reverse a text: see :func:`layout.reverse_tokens`."""
    return *text[-2::-1], text[-1]


@torch.no_grad()
def score_texts(
    scorers: list[Scorer],
    streams: list[list[Stream]],
    symbols: Symbols,
    device: torch.device,
) -> Tensor:
    """Score texts by the mean probability of some models, without interaction.

    Args:
        scorers: of all B sentences.
        streams: of each sentence, perhaps none.
        symbols: ``starts`` has the first decoder input of every direction in use.
        device: of the models.

    Returns:
        (B, K, T) natural log-probabilities in float64, K the most streams of a
        sentence, T the longest text: of each token in the order in which its direction
        writes, ``</s>`` last, and 0 behind it.  Where a sentence has fewer streams
        than K, its last rows are of no text.
    """
    most = max(map(len, streams), default=0)
    width = max((len(text) for own in streams for text, _ in own), default=0)
    parts = [torch.zeros(0, most, width, dtype=torch.float64, device=device)]
    for first, last in passes(streams):
        found = _one_pass(scorers, streams, first, last, symbols, device)
        missing = width - found.size(2), most - found.size(1)
        parts.append(F.pad(found, (0, missing[0], 0, missing[1])))
    return torch.cat(parts)


def passes(streams: list[list[Stream]]) -> Iterator[tuple[int, int]]:
    """Divide sentences into runs of at most :data:`POSITIONS_AT_A_TIME`, or of one.

    Yields:
        First sentence of each run, and the one behind its last.
    """
    first = 0
    while first < len(streams):
        last, widest, most = first, 0, 0
        while last < len(streams):
            width = max([widest, *(len(text) for text, _ in streams[last])])
            count = max(most, len(streams[last]))
            size = width * count * (last + 1 - first)
            if last > first and size > POSITIONS_AT_A_TIME:
                break
            last, widest, most = last + 1, width, count
        yield first, last
        first = last


def _one_pass(
    scorers: list[Scorer],
    streams: list[list[Stream]],
    first: int,
    last: int,
    symbols: Symbols,
    device: torch.device,
) -> Tensor:
    """Score some sentences, first … last - 1, with as many rows for each: (B', K', T').

    The tensors that it needs reach the device in one transfer.
    """
    some = streams[first:last]
    most = max(map(len, some))
    if not most:
        return torch.zeros(last - first, 0, 0, dtype=torch.float64, device=device)
    nothing = (symbols.eos,), 0
    # row b · K' + stream
    filled = [pair for own in some for pair in [*own, *[nothing] * (most - len(own))]]
    labels = [backwards(text) if direction else text for text, direction in filled]
    width = max(map(len, labels))
    filling = [symbols.pad] * width
    padded = [[*row, *filling[len(row) :]] for row in labels]
    target = torch.from_numpy(np.array(padded, np.int64))  # faster than from a list
    starts = torch.tensor([[symbols.starts[direction]] for _, direction in filled])
    real = target.ne(symbols.pad)
    inputs = torch.cat([starts, target[:, :-1]], 1).masked_fill(~real, symbols.pad)
    live, shown = shared_beginnings(inputs.view(-1, most, width), real)
    places = live_places(real)
    rows, order = shown[places].sort()
    places = places[order]
    tokens = target.t().flatten()[places]
    host = inputs, live, shown, places, rows, tokens, torch.arange(first, last)
    there = torch.cat([x.flatten() for x in host]).to(device)
    parts = there.split([x.numel() for x in host])
    inputs, live, shown, places, rows, tokens, sentences = parts
    inputs = inputs.view(-1, width)
    layout = Layout(directions=1, beam=most)  # rows of a sentence: no partners
    shape = width, len(inputs)
    outputs = [
        scorer.decoder.log_probabilities(
            inputs,
            PrefixTrees(live, places, shown, shape, layout),
            *(rows, tokens),
            select_sentences(scorer.encoder_out, sentences),
        )
        for scorer in scorers
    ]
    each = mean_probability(outputs).to(torch.float64)
    grid = each.new_zeros(shown.numel()).index_copy(0, places, each)
    return grid.view(width, last - first, most).permute(1, 2, 0)


def shared_beginnings(inputs: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Find the beginnings that streams of a sentence share.

    Args:
        inputs: (B, K, T) decoder input.
        real: (BK, T) True where a stream has a token.

    Returns:
        live: (n,) places of the time-major grid (T, BK) that are computed: of streams
            that have begun alike, the first one's.
        shown: (T · BK,) number of the row that each place shows, 0 at padding.
    """
    alike = inputs[:, :, None].eq(inputs[:, None])  # (B, K, K, T)
    alike = alike.cumprod(-1, dtype=torch.uint8)
    own = torch.arange(inputs.size(1))[:, None]
    # the first that is alike, (B, K, T): argmax takes several times as long
    first = len(own) - (alike * (len(own) - own).short()).amax(2).long()
    live = live_places(real & first.eq(own).flatten(0, 1))
    numbers = torch.zeros(real.numel(), dtype=torch.long)
    numbers[live] = torch.arange(len(live))
    grid = numbers.view(inputs.size(2), len(inputs), -1).permute(1, 2, 0)  # (B, K, T)
    shown = grid.gather(1, first).flatten(0, 1).masked_fill(~real, 0)
    return live, shown.t().flatten()
