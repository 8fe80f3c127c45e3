"""Restrictions of what may come next and what may answer: bans, lengths, prefixes."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.layout import L2R, R2L, Layout
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.numerics import DEAD
from sbnmt_plugin.search.beam import Batch
from sbnmt_plugin.search.options import SearchOptions, Symbols

LONGEST = 2**20  # tokens of a source that is imagined


def longest_outputs(
    models: list[Any], source: Tensor, symbols: Symbols, options: SearchOptions
) -> Tensor:
    """Return the most words of each answer, (B,): int(a · source length + b).

    The length counts ``</s>``.  fairseq takes that of the longest source of a batch.
    A source without words has an empty answer, where fairseq makes one up.

    Args:
        source: (B, S).

    Raises:
        ValueError: fewer words than there must be.
    """
    # fairseq's LSTM says 1e5
    longest = int(min(model.max_decoder_positions() for model in models)) - 1
    lengths = source.ne(symbols.pad).sum(1).to(torch.float64)
    found = options.max_len_a * lengths + float(options.max_len_b)
    found = found.clamp(-longest, longest).long()  # int64 has no 1e19
    words = (source.ne(symbols.pad) & source.ne(symbols.eos)).any(1)
    if (least := int(found.masked_fill(~words, longest).min())) < options.min_len:
        raise ValueError(
            f"--min-len must be ≤ the longest output allowed, but is "
            f"{options.min_len} where --max-len-a, --max-len-b and the decoder's "
            f"positions allow {least}: lower it or raise those"
        )
    return found.masked_fill(~words, 0)


def check_longest(search: Any, positions: int) -> None:
    """Refuse a search that allows no source an output, or one that is too short.

    Args:
        search: that has models, symbols and options.
        positions: most tokens of a source.

    Raises:
        ValueError: see :func:`longest_outputs`, for the source of the longest output.
    """
    options, symbols = search.options, search.symbols
    longest = min(positions, LONGEST) if options.max_len_a > 0 else 1
    source = torch.full((1, longest), symbols.unk)
    longest_outputs(search.models, source, symbols, options)


def ban_repeated_ngrams(logits: Tensor, tokens: Tensor, size: int, banned: int) -> None:
    """Make every token impossible that would complete an n-gram a second time.

    Departs from fairseq, whose n = 1 bans nothing on a CPU.

    Args:
        logits: (N, V), changed in place.
        tokens: (N, t) generated so far, without the start symbol.
        size: n.
        banned: an id that is impossible anyway.
    """
    if tokens.size(1) < size:
        return
    seen = tokens.unfold(1, size, 1)  # (N, t - n + 1, n)
    last = tokens[:, tokens.size(1) - size + 1 :]  # (N, n - 1)
    repeats = (seen[..., :-1] == last[:, None]).all(-1)
    logits.scatter_(1, seen[..., -1].masked_fill(~repeats, banned), DEAD)


def restrict(
    following: NextTokens,
    batch: Batch,
    step: int,
    symbols: Symbols,
    options: SearchOptions,
) -> None:
    """Give every token that may not come next -inf, in place.

    That is what is never generated, an end before ``--min-len``, what repeats an
    n-gram, all but the end at ``max_len``, and L2R all but a forced prefix, which may
    repeat n-grams.  ``<unk>`` loses ``--unkpen``.  What no option asks for costs
    nothing.
    """
    layout, logits = options.layout, following.logits
    logits.index_fill_(1, batch.never, DEAD)
    if options.unkpen:
        logits[:, symbols.unk] -= options.unkpen
    within = step < batch.prefix.size(1)
    if within:
        word = batch.prefix[:, step, None, None].expand(-1, layout.beam, 1)
        own = layout.split(logits)[:, L2R]  # (B, K, V), a view
        forced = own.gather(2, word)
    if step < options.min_len:
        early = (batch.max_len > 0).repeat_interleave(layout.group)
        logits[:, symbols.eos].masked_fill_(early, DEAD)
    if options.no_repeat_ngram_size > 0:
        size = options.no_repeat_ngram_size
        ban_repeated_ngrams(logits, batch.tokens[:, 1:], size, symbols.pad)
    if step >= batch.first_end:
        over = (batch.max_len <= step).repeat_interleave(layout.group)
        ending = logits[:, symbols.eos].clone()
        logits.masked_fill_(over[:, None], DEAD)
        logits[:, symbols.eos] = ending
    if within:
        bound = (word != symbols.pad) & (batch.max_len > step)[:, None, None]
        kept = torch.where(bound, forced, own.gather(2, word))
        own.masked_fill_(bound, DEAD).scatter_(2, word, kept)


def lacks_prefix(batch: Batch, pad: int, layout: Layout) -> Tensor:
    """Tell which R2L texts do not begin with the forced prefix; (B, K) bool."""
    width = batch.prefix.size(1)
    written = layout.split(batch.tokens)[:, R2L, :, 1:]  # (B, K, t)
    natural = F.pad(written.flip(-1), (0, width), value=pad)[..., :width]
    prefix = batch.prefix[:, None]
    return ((natural != prefix) & (prefix != pad)).any(-1)
