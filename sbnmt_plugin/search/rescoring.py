"""Rescoring of finished hypotheses, in both directions and without interaction.

With W of ``--sb-rescore`` the answers are ranked by

    score + W · (log p_l2r(y | x) + log p_r2l(y | x)) / lp(L)

where score is the search's, and each p reads its own history alone: what λ = 0 makes of
the model.  All of the pool, or its N best (``--sb-rescore-best``), are scored as given
texts, both ways, every text of a sentence once (:mod:`score_texts`); what the search
has scored without any interaction is taken from it.  Not in the paper, whose answer is
the best of the search's own scores.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch

from sbnmt_plugin.layout import NAMES
from sbnmt_plugin.network.protocol import Forced
from sbnmt_plugin.search.answers import refuse
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.records import Hypothesis, Record
from sbnmt_plugin.search.score_texts import Stream, score_texts
from sbnmt_plugin.search.scorer import Scorer


def rank_anew(
    scorers: list[Scorer],
    results: list[list[Hypothesis]],
    records: list[Record],
    sample: dict[str, Any],
    symbols: Symbols,
    options: SearchOptions,
) -> None:
    """Rescore the answers and the record of each sentence and rank them, in place.

    Ties stay as the search has them.  Other arguments are those of :func:`rescore`.

    Args:
        results: of each sentence, best first; the candidates among them stay.
        records: of each sentence, or none, where nobody wants them.
        sample: fairseq's batch.

    Raises:
        FloatingPointError: a score is no number, because the model gives none.
    """
    answers = [own[: options.most_answers] for own in results]
    others = [list(best.values()) for _, best in records] or [[] for _ in results]
    found = [[*own, *more] for own, more in zip(answers, others)]
    device = sample["net_input"]["src_tokens"].device
    scores = rescore(scorers, found, symbols, options, device)
    for index, hypotheses in enumerate(found):
        if any(map(math.isnan, scores[index])):
            refuse(True, sample, index)
        worse = [-score for score in scores[index]]  # the best is the least
        order = sorted(range(len(hypotheses)), key=worse.__getitem__)
        count = len(answers[index])
        results[index] = [hypotheses[i] for i in order if i < count]
        best: dict[str, Hypothesis] = {}
        for i in order:
            best.setdefault(hypotheses[i]["direction"], hypotheses[i])
        if records:
            records[index] = results[index][0]["direction"], best


def rescore(
    scorers: list[Scorer],
    found: list[list[Hypothesis]],
    symbols: Symbols,
    options: SearchOptions,
    device: torch.device,
) -> list[list[float]]:
    """Add what both directions say of each hypothesis, and to its score W times that.

    Args:
        scorers: of all B sentences.
        found: hypotheses of each sentence; changed: ``score`` becomes the new one,
            ``pool_score`` is the old one, ``l2r`` and ``r2l`` are log-probabilities.
        device: of the models.

    Returns:
        The new scores of each sentence's.

    Raises:
        ValueError: a decoder that cannot score given texts.
    """
    for scorer in scorers:
        if not isinstance(scorer.decoder, Forced):
            raise ValueError(
                f"--sb-rescore is not supported by {type(scorer.decoder).__name__}, "
                "which cannot score given texts: leave it out"
            )
    # --unkpen is in the search's scores and not in the model's
    interacts = options.unkpen != 0 or any(x.decoder.interacts for x in scorers)
    streams, places = texts_to_score(found, interacts)
    hypotheses = [hypothesis for own in found for hypothesis in own]
    known = torch.stack([hypothesis["total"] for hypothesis in hypotheses])
    scored = score_texts(scorers, streams, symbols, device).sum(2).flatten().cpu()
    total = torch.cat([known, scored])[torch.tensor(places)].view(-1, 2)
    lengths = [len(hypothesis["tokens"]) for hypothesis in hypotheses]
    worth = options.penalty.worth(torch.tensor(lengths))
    gained = total.sum(1) / worth
    score = torch.stack([h["score"] for h in hypotheses]) + options.rescore * gained
    columns = score.unbind(), *(x.unbind() for x in total.unbind(1))
    for hypothesis, new, l2r, r2l in zip(hypotheses, *columns):
        hypothesis["pool_score"] = hypothesis["score"]
        hypothesis.update(score=new, l2r=l2r, r2l=r2l)
    values = iter(score.tolist())
    return [list(itertools.islice(values, len(own))) for own in found]


def texts_to_score(
    found: list[list[Hypothesis]], interacts: bool
) -> tuple[list[list[Stream]], list[int]]:
    """List the texts that have to be scored, and where each score will stand.

    Args:
        found: hypotheses of each sentence, n in all.
        interacts: whether the search's scores depend on the other stream; else they are
            those of the own direction alone, and are not computed again.

    Returns:
        streams: of each sentence, every one once; K the most of a sentence.
        places: of the L2R and the R2L score of every hypothesis, where first the
            search's own n stand, then K for each sentence.
    """
    words = iter(torch.cat([h["tokens"] for own in found for h in own]).tolist())
    wanted: list[list[Stream]] = []
    known: list[dict[Stream, int]] = []
    streams: list[list[Stream]] = []
    count = 0
    for own in found:
        texts = [tuple(itertools.islice(words, len(h["tokens"]))) for h in own]
        written = zip(texts, (NAMES.index(h["direction"]) for h in own))
        here = {} if interacts else {x: count + i for i, x in enumerate(written)}
        wanted.append([(text, direction) for text in texts for direction in (0, 1)])
        known.append(here)
        streams.append([x for x in dict.fromkeys(wanted[-1]) if x not in here])
        count += len(own)
    most = max(map(len, streams), default=0)
    for b, missing in enumerate(streams):
        known[b] |= {x: count + b * most + i for i, x in enumerate(missing)}
    return streams, [there[x] for own, there in zip(wanted, known) for x in own]
