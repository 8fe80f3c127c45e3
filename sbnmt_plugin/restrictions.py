"""What may come next and what may answer: bans, lengths, a forced prefix."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.beam import DEAD
from sbnmt_plugin.directions import L2R, R2L
from sbnmt_plugin.state import Batch, SearchOptions, Symbols


def ban_repeated_ngrams(lprobs: Tensor, tokens: Tensor, size: int) -> None:
    """Make every token impossible that would complete an n-gram a second time.

    Departs from fairseq, whose n = 1 bans nothing on a CPU.

    Args:
        lprobs: (N, V), changed in place.
        tokens: (N, t) generated so far, without the start symbol.
        size: n.
    """
    if tokens.size(1) < size:
        return
    seen = tokens.unfold(1, size, 1)  # (N, t - n + 1, n)
    last = tokens[:, tokens.size(1) - size + 1 :]  # (N, n - 1)
    repeats = (seen[..., :-1] == last[:, None]).all(-1)
    rows, places = repeats.nonzero(as_tuple=True)
    lprobs[rows, seen[rows, places, -1]] = DEAD


def restrict(
    lprobs: Tensor, batch: Batch, step: int, symbols: Symbols, options: SearchOptions
) -> Tensor:
    """Give every token that may not come next -inf.

    In this order: what is never generated, ``--unkpen``, ``--min-len``,
    repeated n-grams, the end at ``max_len``, a forced prefix.

    Args:
        lprobs: (N, V).

    Returns:
        (N, V).
    """
    layout = options.layout
    nan = lprobs.isnan()
    batch.broken |= layout.split(nan).flatten(1).any(1)
    lprobs = lprobs.masked_fill(nan, DEAD)
    lprobs[:, list(symbols.never)] = DEAD
    lprobs[:, symbols.unk] -= options.unkpen
    forced = lprobs.clone() if bool((batch.prefix_len > step).any()) else None
    if step < options.min_len:
        lprobs[:, symbols.eos] = DEAD
    if options.no_repeat_ngram_size > 0:
        ban_repeated_ngrams(lprobs, batch.tokens[:, 1:], options.no_repeat_ngram_size)
    over = (batch.max_len <= step).repeat_interleave(layout.group)
    ending = lprobs[:, symbols.eos].clone()
    lprobs.masked_fill_(over[:, None], DEAD)
    lprobs[:, symbols.eos] = ending
    if forced is not None:
        bound = (batch.prefix_len > step) & (batch.max_len > step)
        token = batch.prefix[:, step].repeat_interleave(layout.group)[:, None]
        only = torch.full_like(lprobs, DEAD).scatter(1, token, forced.gather(1, token))
        l2r_rows = torch.zeros_like(layout.split(over))
        l2r_rows[:, L2R] = bound[:, None]
        lprobs = torch.where(l2r_rows.flatten()[:, None], only, lprobs)
    return lprobs


def admit(
    total: Tensor, tokens: Tensor, batch: Batch, pad: int, options: SearchOptions
) -> Tensor:
    """Turn away R2L hypotheses whose text does not begin with the forced prefix.

    Args:
        total: (B, D, K) log-probabilities.
        tokens: (B, D, K, t) without ``</s>``, in the order they were written.

    Returns:
        (B, D, K), -inf where turned away.
    """
    width = batch.prefix.size(1)
    if width == 0 or R2L not in options.directions:
        return total
    place = options.directions.index(R2L)
    natural = tokens[:, place].flip(-1)[..., :width]
    natural = F.pad(natural, (0, width - natural.size(-1)), value=-1)
    free = batch.prefix == pad
    matches = ((natural == batch.prefix[:, None]) | free[:, None]).all(-1)
    total[:, place] = total[:, place].masked_fill(~matches, DEAD)
    return total
