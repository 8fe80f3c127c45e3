"""Finished hypotheses scored once more, in both directions and without interaction.

With W of ``--sb-rescore`` the answers are ranked by

    score + W · (log p_l2r(y | x) + log p_r2l(y | x)) / lp(L)

where score is the search's, and each p reads its own history alone: what λ = 0 makes of
the model.  All candidates of a sentence are scored in one pass, both ways, every text
once.  Not in the paper, whose answer is the best of the search's own scores.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from sbnmt_plugin.layout import Layout, live_places
from sbnmt_plugin.network.kv_cache import select_sentences
from sbnmt_plugin.network.protocol import Forced
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.records import Hypothesis, Record
from sbnmt_plugin.search.scorer import Scorer, mean_probability

POSITIONS_AT_A_TIME = 2**13  # of the target; more than that is done in several passes

Text = tuple[int, ...]  # with </s>, in natural order


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
    scores = rescore(scorers, found, symbols, options)
    for index, hypotheses in enumerate(found):
        worse = [-score for score in scores[index]]  # the best is the least
        order = sorted(range(len(hypotheses)), key=worse.__getitem__)
        count = len(results[index])
        results[index] = [hypotheses[i] for i in order if i < count]
        best: dict[str, Hypothesis] = {}
        for i in order:
            best.setdefault(hypotheses[i]["direction"], hypotheses[i])
        records[index] = results[index][0]["direction"], best


def rescore(
    scorers: list[Scorer],
    found: list[list[Hypothesis]],
    symbols: Symbols,
    options: SearchOptions,
) -> list[list[float]]:
    """Add what both directions say of each hypothesis, and to its score W times that.

    Args:
        scorers: of all B sentences.
        found: hypotheses of each sentence; changed: ``score`` becomes the new one,
            ``pool_score`` is the old one, ``l2r`` and ``r2l`` are log-probabilities.

    Returns:
        The new scores of each sentence's.

    Raises:
        ValueError: a decoder that cannot score given texts.
    """
    hypotheses = [hypothesis for own in found for hypothesis in own]
    lengths = [len(hypothesis["tokens"]) for hypothesis in hypotheses]
    words = iter(torch.cat([h["tokens"] for h in hypotheses]).tolist())
    said = iter([tuple(itertools.islice(words, length)) for length in lengths])
    keys = [list(itertools.islice(said, len(own))) for own in found]
    texts = [list(dict.fromkeys(own)) for own in keys]  # every text once
    firsts = itertools.accumulate(map(len, texts), initial=0)
    places = [
        first + known.index(key)
        for first, known, own in zip(firsts, texts, keys)
        for key in own
    ]
    total = both_ways(scorers, texts, symbols, options.temperature)
    total = total.index_select(0, torch.tensor(places, device=total.device))
    length = torch.tensor(lengths, device=total.device)
    gained = options.penalty.score(total.sum(1), length)
    score = torch.stack([h["score"] for h in hypotheses]) + options.rescore * gained
    columns = score.unbind(), *(x.unbind() for x in total.unbind(1))
    for hypothesis, new, l2r, r2l in zip(hypotheses, *columns):
        hypothesis["pool_score"] = hypothesis["score"]
        hypothesis.update(score=new, l2r=l2r, r2l=r2l)
    values = iter(score.tolist())
    return [list(itertools.islice(values, len(own))) for own in found]


def backwards(text: Text) -> Text:
    """A text in the other direction: see :func:`layout.reverse_tokens`."""
    return *text[-2::-1], text[-1]


def both_ways(
    scorers: list[Scorer],
    texts: list[list[Text]],
    symbols: Symbols,
    temperature: float,
) -> Tensor:
    """Log-probabilities of texts, without interaction.

    Args:
        texts: of each sentence.

    Returns:
        (texts of all sentences, 2), in float64: L2R, R2L.
    """
    totals: list[Tensor] = []
    first = 0
    while first < len(texts):
        last, widest, most = first, 0, 0
        while last < len(texts):
            width = max(widest, *map(len, texts[last]))
            count = max(most, len(texts[last]))
            size = 2 * width * count * (last + 1 - first)
            if last > first and size > POSITIONS_AT_A_TIME:
                break
            last, widest, most = last + 1, width, count
        totals += _one_pass(scorers, texts[first:last], first, symbols, temperature)
        first = last
    return torch.cat(totals)


def _one_pass(
    scorers: list[Scorer],
    texts: list[list[Text]],
    first: int,
    symbols: Symbols,
    temperature: float,
) -> list[Tensor]:
    """:func:`both_ways` of some sentences, all of which get as many rows as any other.

    Args:
        first: place of the first of the B' sentences among the scorers'.

    Returns:
        (texts, 2) of each sentence.
    """
    most = max(map(len, texts))
    nothing = (symbols.eos,)
    filled = [text for own in texts for text in [*own, *[nothing] * (most - len(own))]]
    # row (b · most + candidate) · 2 + direction
    labels = [stream for text in filled for stream in (text, backwards(text))]
    width = max(map(len, labels))
    filling = [symbols.pad] * width
    target = torch.tensor([[*row, *filling[len(row) :]] for row in labels])
    lengths = torch.tensor([len(row) for row in labels])
    real = torch.arange(width) < lengths[:, None]
    starts = torch.tensor(symbols.starts).repeat(len(filled))[:, None]
    inputs = torch.cat([starts, target[:, :-1]], 1).masked_fill(~real, symbols.pad)
    sentences = torch.arange(first, first + len(texts))
    device = scorers[0].encoder_out["encoder_out"][0].device
    inputs, target, live, sentences = (
        x.to(device) for x in (inputs, target, live_places(real), sentences)
    )
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
