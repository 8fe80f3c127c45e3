"""Finished hypotheses scored once more, in both directions and without interaction.

With W of ``--sb-rescore`` the answers are ranked by

    score + W · (log p_l2r(y | x) + log p_r2l(y | x)) / lp(L)

where score is the search's, and each p reads its own history alone: what λ = 0 makes of
the model.  All candidates of a sentence are scored in one pass, both ways, every text
once; what the search has scored without any interaction is taken from it.  Not in the
paper, whose answer is the best of the search's own scores.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.layout import NAMES, Layout, live_places
from sbnmt_plugin.network.kv_cache import select_sentences
from sbnmt_plugin.network.protocol import Forced
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.records import Hypothesis, Record
from sbnmt_plugin.search.scorer import Scorer, mean_probability

POSITIONS_AT_A_TIME = 2**13  # of the target; more than that is done in several passes

Text = tuple[int, ...]  # with </s>, in natural order
Stream = tuple[Text, int]  # a text and the direction in which it is scored


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
    decoders = [forced(scorer.decoder) for scorer in scorers]
    # --unkpen is in the search's scores and not in the model's
    interacts = options.unkpen != 0 or any(decoder.interacts for decoder in decoders)
    asked, places = sought(found, interacts)
    scored = alone(scorers, asked, symbols, options.temperature)
    hypotheses = [hypothesis for own in found for hypothesis in own]
    known = torch.stack([h["total"] for h in hypotheses]).to(scored)
    index = torch.tensor(places, device=scored.device)
    total = torch.cat([known, scored]).index_select(0, index).view(-1, 2)
    lengths = [len(hypothesis["tokens"]) for hypothesis in hypotheses]
    worth = options.penalty.worth(torch.tensor(lengths, device=total.device))
    gained = options.penalty.score(total.sum(1), worth)
    score = torch.stack([h["score"] for h in hypotheses]) + options.rescore * gained
    columns = score.unbind(), *(x.unbind() for x in total.unbind(1))
    for hypothesis, new, l2r, r2l in zip(hypotheses, *columns):
        hypothesis["pool_score"] = hypothesis["score"]
        hypothesis.update(score=new, l2r=l2r, r2l=r2l)
    values = iter(score.tolist())
    return [list(itertools.islice(values, len(own))) for own in found]


def sought(
    found: list[list[Hypothesis]], interacts: bool
) -> tuple[list[list[Stream]], list[int]]:
    """What has to be scored, and where each score will stand.

    Args:
        found: hypotheses of each sentence, n in all.
        interacts: whether the search's scores depend on the other stream; else they are
            those of the own direction alone.

    Returns:
        streams: of each sentence, every one once.
        places: of the L2R and the R2L score of every hypothesis, where first the
            search's own n stand, then those of the streams.
    """
    lengths = [len(hypothesis["tokens"]) for own in found for hypothesis in own]
    words = torch.cat([h["tokens"] for own in found for h in own]).tolist()
    rest = iter(words)
    said = iter([tuple(itertools.islice(rest, length)) for length in lengths])
    streams: list[list[Stream]] = []
    places: list[int] = []
    first, count = 0, len(lengths)
    for own in found:
        texts = list(itertools.islice(said, len(own)))
        known: dict[Stream, int] = {}
        if not interacts:
            names = (NAMES.index(hypothesis["direction"]) for hypothesis in own)
            known = {pair: first + i for i, pair in enumerate(zip(texts, names))}
        wanted = [(text, direction) for text in texts for direction in (0, 1)]
        streams.append([pair for pair in dict.fromkeys(wanted) if pair not in known])
        known |= {pair: count + i for i, pair in enumerate(streams[-1])}
        places += [known[pair] for pair in wanted]
        first, count = first + len(own), count + len(streams[-1])
    return streams, places


def forced(decoder: Any) -> Forced:
    """A decoder that scores given texts.

    Raises:
        ValueError: it cannot.
    """
    if not isinstance(decoder, Forced):
        raise ValueError(
            f"--sb-rescore is not supported by {type(decoder).__name__}, which cannot "
            "score given texts: leave it out"
        )
    return decoder


def backwards(text: Text) -> Text:
    """A text in the other direction: see :func:`layout.reverse_tokens`."""
    return *text[-2::-1], text[-1]


def alone(
    scorers: list[Scorer],
    streams: list[list[Stream]],
    symbols: Symbols,
    temperature: float,
) -> Tensor:
    """Log-probabilities of texts in a direction each, without interaction.

    Args:
        streams: of each sentence, perhaps none.

    Returns:
        (streams of all sentences,) in float64.
    """
    device = scorers[0].encoder_out["encoder_out"][0].device
    totals = [torch.zeros(0, dtype=torch.float64, device=device)]
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
        if most:
            some = streams[first:last]
            totals += _one_pass(scorers, some, first, symbols, temperature)
        first = last
    return torch.cat(totals)


def _one_pass(
    scorers: list[Scorer],
    streams: list[list[Stream]],
    first: int,
    symbols: Symbols,
    temperature: float,
) -> list[Tensor]:
    """:func:`alone` of some sentences, all of which get as many rows as any other.

    Args:
        first: place of the first of the B' sentences among the scorers'.

    Returns:
        (streams,) of each sentence.
    """
    most = max(map(len, streams))
    nothing = (symbols.eos,), 0
    # row b · most + stream
    filled = [
        pair for own in streams for pair in [*own, *[nothing] * (most - len(own))]
    ]
    labels = [backwards(text) if direction else text for text, direction in filled]
    width = max(map(len, labels))
    filling = [symbols.pad] * width
    target = torch.tensor([[*row, *filling[len(row) :]] for row in labels])
    lengths = torch.tensor([len(row) for row in labels])
    real = torch.arange(width) < lengths[:, None]
    starts = torch.tensor([[symbols.starts[direction]] for _, direction in filled])
    inputs = torch.cat([starts, target[:, :-1]], 1).masked_fill(~real, symbols.pad)
    sentences = torch.arange(first, first + len(streams))
    device = scorers[0].encoder_out["encoder_out"][0].device
    inputs, target, live, sentences = (
        x.to(device) for x in (inputs, target, live_places(real), sentences)
    )
    layout = Layout(directions=1, beam=most)  # rows of a sentence: no partners
    outputs = []
    for scorer in scorers:
        encoder_out = select_sentences(scorer.encoder_out, sentences)
        outputs.append(
            forced(scorer.decoder).log_probabilities(
                inputs, target, live, layout, encoder_out, temperature
            )
        )
    each = mean_probability(outputs).to(torch.float64)
    total = each.new_zeros(width * len(labels)).index_copy(0, live, each)
    total = total.view(width, len(streams), most).sum(0)
    return [total[b, : len(own)] for b, own in enumerate(streams)]
