"""Answers of a batch, in the shape of fairseq's hypotheses, on the CPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from fairseq import utils
from torch import Tensor

from sbnmt_plugin.layout import NAMES, R2L, Layout
from sbnmt_plugin.numerics import DEAD
from sbnmt_plugin.search.backpointers import Array, BackPointers
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.pool import Pool, ranking
from sbnmt_plugin.search.records import Hypothesis, Record


def answers_of(
    pool: Pool,
    pointers: BackPointers,
    sample: dict[str, Any],
    symbols: Symbols,
    options: SearchOptions,
) -> tuple[list[list[Hypothesis]], list[Record]]:
    """Return each sentence's answers, and each direction's best hypothesis.

    Args:
        pool: of the B sentences.
        pointers: of their batch.
        sample: fairseq's batch.

    Returns:
        At least one answer a sentence, best first; who wrote the best one, and best
        hypotheses by the name of their direction, without one that never finished any.

    Raises:
        FloatingPointError: nothing has a score, because the model gives none.
        ValueError: nothing can end, because of lengths and bans.
    """
    ranked, places = (x.cpu().numpy() for x in ranking(pool, options.answering))
    none = np.flatnonzero(ranked[:, 0] == DEAD)
    if none.size:
        refuse(pointers.broken(none), sample, int(none[0]))
    results: list[list[Hypothesis]] = []
    records: list[Record] = []
    sources = sample["net_input"]["src_tokens"]
    kept = np.zeros((len(sources), pool.score[0].numel()), bool)
    kept[:, :: pool.score.size(2)] = True  # each direction's best, for the record
    np.put_along_axis(kept, places, True, axis=1)
    found = hypotheses(pool, kept, pointers, sources, symbols, options)
    for entries, order in zip(found, places.tolist()):
        results.append([entries[place] for place in order if place in entries])
        best: dict[str, Hypothesis] = {}
        for entry in entries.values():
            best.setdefault(entry["direction"], dict(entry))
        records.append((results[-1][0]["direction"], best))
    return results, records


def refuse(broken: bool, sample: dict[str, Any], place: int) -> None:
    """Say why the sentence at a place of a batch has no answer, by fairseq's number.

    Raises:
        FloatingPointError, ValueError: see :func:`answers_of`.
    """
    ids = sample.get("id")
    which = "a sentence" if ids is None else f"sentence {int(ids[place])}"
    if broken:
        raise FloatingPointError(
            f"no hypothesis of {which} has a finite score: the model's "
            "probabilities are not numbers (too high a learning rate? fp16 range?)"
        )
    raise ValueError(
        f"no hypothesis of {which} can end: no token is left that "
        "--no-repeat-ngram-size, --min-len, --max-len-a, --max-len-b and the "
        "prefix allow, or --unkpen leaves none a finite score; loosen them"
    )


def hypotheses(
    pool: Pool,
    kept: Array,
    pointers: BackPointers,
    sources: Tensor,
    symbols: Symbols,
    options: SearchOptions,
) -> list[dict[int, Hypothesis]]:
    """Make fairseq's dict of entries, in natural order, by sentence and place.

    Args:
        kept: (B, DP) bool, which places are wanted, if there is an entry.

    Returns:
        A dict for each sentence.  Places are those of :func:`pool.ranking`, so a
        direction's best comes first.
    """
    score, ended = pool.score.cpu().numpy(), pool.ended.cpu().numpy()
    at = np.nonzero(kept.reshape(score.shape) & (score > DEAD))
    sentence, order, entry = at
    lengths, ranks = np.divmod(ended[at], pool.beam)
    totals = pointers.totals((sentence, order, ranks), lengths)
    paths = pointers.walk((sentence, order, ranks), lengths - 1)
    each = np.arange(len(lengths))
    tokens, gained = (np.pad(x, ((0, 0), (0, 1))) for x in (paths.tokens, paths.gained))
    tokens[each, lengths - 1] = symbols.eos
    gained[each, lengths - 1] = pointers.columns["ending"][
        lengths - 1, sentence, order, ranks
    ]
    backwards = np.array(options.directions)[order] == R2L
    natural = natural_order(lengths, tokens.shape[1], backwards)
    tokens, gained = (np.take_along_axis(x, natural, 1) for x in (tokens, gained))
    texts = apart(tokens, lengths)
    columns: dict[str, Sequence[Any]] = {
        "tokens": texts,
        "score": torch.from_numpy(score[at]).unbind(),
        "total": torch.from_numpy(totals).unbind(),
        "attention": [None] * len(lengths),
        "alignment": [torch.empty(0)] * len(lengths),
        "positional_scores": apart(gained, lengths),
        "direction": [NAMES[options.directions[i]] for i in order],
        "partner_tokens": partners(pointers, options.layout, at, lengths, ranks),
    }
    attention = pointers.columns.get("attention")
    if attention is not None:
        steps = np.arange(tokens.shape[1])
        looks = attention[steps, sentence[:, None], order[:, None], paths.asked]
        looks = np.take_along_axis(looks, natural[..., None], 1)  # (E, T, S)
        looked = apart(looks, lengths)
        columns["attention"] = [x.t() for x in looked]
        soft = options.print_alignment == "soft"
        extract = utils.extract_soft_alignment if soft else utils.extract_hard_alignment
        columns["alignment"] = [
            extract(look, source, text, symbols.pad, symbols.eos)
            for look, source, text in zip(looked, sources.cpu()[sentence], texts)
        ]
    found: list[dict[int, Hypothesis]] = [{} for _ in sources]
    places = order * score.shape[2] + entry
    for b, place, *values in zip(sentence.tolist(), places.tolist(), *columns.values()):
        found[b][place] = dict(zip(columns, values))
    return found


def natural_order(lengths: Array, longest: int, backwards: Array) -> Array:
    """Return where each token of a text stands among those that were written, (E, T).

    ``</s>`` stays the last: see :func:`layout.reverse_tokens`.

    Args:
        lengths: (E,) L.
        backwards: (E,) bool, whether the text was written from right to left.
    """
    place = np.arange(longest)
    turned = lengths[:, None] - 2 - place
    return np.where(backwards[:, None] & (turned >= 0), turned, place)


def apart(values: Array, lengths: Array) -> tuple[Tensor, ...]:
    """Split off the first L of each row's values (E, T, …), as tensors of their own."""
    shown = np.arange(values.shape[1]) < lengths[:, None]
    parts: tuple[Tensor, ...] = torch.from_numpy(values[shown]).split(lengths.tolist())
    return parts


def partners(
    pointers: BackPointers,
    layout: Layout,
    at: Sequence[Array],
    lengths: Array,
    ranks: Array,
) -> Sequence[Tensor | None]:
    """Return the partner's live prefix at each entry's end, in the order of writing."""
    if layout.directions == 1:
        return [None] * len(lengths)
    shape = pointers.sentences, layout.directions, layout.beam
    rows = layout.partners(torch.arange(math.prod(shape))).view(shape).numpy()
    place = np.unravel_index(rows[at[0], at[1], ranks], shape)
    return apart(pointers.walk(place, lengths - 1).tokens, lengths - 1)
