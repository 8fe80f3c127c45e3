"""Finished hypotheses scored once more, in both directions and without interaction.

With W of ``--sb-rescore`` the answers are ranked by

    score + W · (log p_l2r(y | x) + log p_r2l(y | x)) / lp(L)

where score is the search's, and each p reads its own history alone: what λ = 0 makes of
the model.  All candidates of a sentence are scored in one pass, both ways, every text
once.  Not in the paper, whose answer is the best of the search's own scores.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sbnmt_plugin.layout import Layout, live_places, reverse_tokens
from sbnmt_plugin.network.kv_cache import select_sentences
from sbnmt_plugin.network.protocol import Forced
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.records import Hypothesis, Record
from sbnmt_plugin.search.scorer import Scorer, mean_probability

POSITIONS_AT_A_TIME = 2**13  # of the target; more than that is done in several passes

Texts = list[Tensor]  # of a sentence, each (L,) with </s>, in natural order


def rank_anew(
    scorers: list[Scorer],
    results: list[list[Hypothesis]],
    records: list[Record],
    symbols: Symbols,
    options: SearchOptions,
) -> None:
    """Rescore the answers and the record of each sentence and rank them, in place.

    Ties stay as the search has them.  Arguments are those of :func:`rescore`.
    """
    found = [[*a, *best.values()] for a, (_, best) in zip(results, records)]
    rescore(scorers, found, symbols, options)
    for index, hypotheses in enumerate(found):
        results[index].sort(key=_worse)
        best: dict[str, Hypothesis] = {}
        for hypothesis in sorted(hypotheses, key=_worse):
            best.setdefault(hypothesis["direction"], hypothesis)
        records[index] = results[index][0]["direction"], best


def _worse(hypothesis: Hypothesis) -> float:
    """By which the best hypothesis is the least."""
    return -float(hypothesis["score"])


def rescore(
    scorers: list[Scorer],
    found: list[list[Hypothesis]],
    symbols: Symbols,
    options: SearchOptions,
) -> None:
    """Add what both directions say of each hypothesis, and to its score W times that.

    Args:
        scorers: of all B sentences.
        found: hypotheses of each sentence; changed: ``score`` becomes the new one,
            ``pool_score`` is the old one, ``l2r`` and ``r2l`` are log-probabilities.

    Raises:
        ValueError: a decoder that cannot score given texts.
    """
    texts: list[Texts] = []
    places: list[list[int]] = []
    for hypotheses in found:
        known: dict[tuple[int, ...], int] = {}
        keys = [tuple(h["tokens"].tolist()) for h in hypotheses]
        places.append([known.setdefault(key, len(known)) for key in keys])
        texts.append([hypotheses[0]["tokens"].new_tensor(key) for key in known])
    totals = both_ways(scorers, texts, symbols, options.temperature)
    for hypotheses, total, own in zip(found, totals, places):
        for hypothesis, place in zip(hypotheses, own):
            l2r, r2l = total[place]
            length = torch.tensor(len(hypothesis["tokens"]), device=total.device)
            gained = options.penalty.score(l2r + r2l, length)
            hypothesis["pool_score"] = hypothesis["score"]
            hypothesis["l2r"], hypothesis["r2l"] = l2r, r2l
            hypothesis["score"] = hypothesis["score"] + options.rescore * gained


def both_ways(
    scorers: list[Scorer], texts: list[Texts], symbols: Symbols, temperature: float
) -> list[Tensor]:
    """Log-probabilities of texts, without interaction.

    Returns:
        (texts, 2) of each sentence, in float64: L2R, R2L.
    """
    totals: list[Tensor] = []
    first = 0
    while first < len(texts):
        last, widest, most = first, 0, 0
        while last < len(texts):
            width = max(widest, *(len(text) for text in texts[last]))
            count = max(most, len(texts[last]))
            size = 2 * width * count * (last + 1 - first)
            if last > first and size > POSITIONS_AT_A_TIME:
                break
            last, widest, most = last + 1, width, count
        part = texts[first:last]
        sentences = torch.arange(first, last, device=part[0][0].device)
        totals += _one_pass(scorers, part, sentences, symbols, temperature)
        first = last
    return totals


def _one_pass(
    scorers: list[Scorer],
    texts: list[Texts],
    sentences: Tensor,
    symbols: Symbols,
    temperature: float,
) -> list[Tensor]:
    """:func:`both_ways` of some sentences, all of which get as many rows as any other.

    Args:
        sentences: (B',) their places among the scorers'.
    """
    most = max(map(len, texts))
    nothing = texts[0][0].new_tensor([symbols.eos])
    filled = [text for own in texts for text in [*own, *[nothing] * (most - len(own))]]
    labels = [
        stream for text in filled for stream in (text, reverse_tokens(text))
    ]  # row (b · most + candidate) · 2 + direction
    starts = [start for _ in filled for start in symbols.starts]
    lengths = torch.tensor([len(label) for label in labels], device=sentences.device)
    width = int(lengths.max())
    target = _padded(labels, width, symbols.pad)
    inputs = target.roll(1, 1)
    inputs[:, 0] = torch.tensor(starts, device=target.device)
    real = torch.arange(width, device=target.device) < lengths[:, None]
    inputs = inputs.masked_fill(~real, symbols.pad)
    live = live_places(real)
    layout = Layout(directions=1, beam=2 * most)  # rows of a sentence: no partners
    outputs = []
    for scorer in scorers:
        if not isinstance(scorer.decoder, Forced):
            raise ValueError(
                f"--sb-rescore is not supported by {type(scorer.decoder).__name__}, "
                "which cannot score given texts: leave it out"
            )
        encoder_out = select_sentences(scorer.encoder_out, sentences)
        outputs.append(
            scorer.decoder.log_probabilities(
                inputs, target, live, layout, encoder_out, temperature
            )
        )
    each = mean_probability(outputs).to(torch.float64)
    total = each.new_zeros(width * len(labels)).index_copy(0, live, each)
    total = total.view(width, len(texts), most, 2).sum(0)
    return [total[b, : len(own)] for b, own in enumerate(texts)]


def _padded(rows: list[Tensor], width: int, pad: int) -> Tensor:
    """Rows of different lengths as one tensor (N, T)."""
    padded = rows[0].new_full((len(rows), width), pad)
    for row, tokens in zip(padded, rows):
        row[: len(tokens)] = tokens
    return padded
