"""The answers of a finished sentence, in the shape of fairseq's hypotheses."""

from __future__ import annotations

from typing import Any

import torch
from fairseq import utils
from torch import Tensor

from sbnmt_plugin.layout import NAMES, R2L, reverse_tokens
from sbnmt_plugin.numerics import DEAD
from sbnmt_plugin.search.batch import Batch
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.pool import Pool, ranking
from sbnmt_plugin.search.records import Hypothesis


def answers_of(
    batch: Batch, place: int, source: Tensor, symbols: Symbols, options: SearchOptions
) -> tuple[list[Hypothesis], dict[str, Hypothesis]]:
    """The answers of a sentence, and each direction's best hypothesis.

    Args:
        batch: with the sentence's pool.
        place: of the sentence in it.
        source: (S,) its tokens.

    Returns:
        At least one answer, best first; best hypotheses by the name of their direction,
        without one that never finished any.

    Raises:
        FloatingPointError: nothing has a score, because the model gives none.
        ValueError: nothing can end, because of lengths and bans.
    """
    pool = batch.pool.select(batch.index.new_tensor([place]))
    score, index = ranking(pool, options.answering)
    size = pool.score.size(2)
    answers = [
        hypothesis(pool, i // size, i % size, source, symbols, options)
        for value, i in zip(score[0].tolist(), index[0].tolist())
        if value > DEAD
    ]
    if not answers and bool(batch.broken[place]):
        raise FloatingPointError(
            "no hypothesis of a sentence has a finite score: the model's "
            "probabilities are not numbers (too high a learning rate? fp16 range?)"
        )
    if not answers:
        raise ValueError(
            "no hypothesis of a sentence can end: no token is left that "
            "--no-repeat-ngram-size, --min-len, --max-len-a, --max-len-b and the "
            "prefix allow, or --unkpen and --temperature leave none a finite "
            "score; loosen them"
        )
    best = {
        NAMES[direction]: hypothesis(pool, order, 0, source, symbols, options)
        for order, direction in enumerate(options.directions)
        if pool.score[0, order, 0] > DEAD
    }
    return answers, best


def hypothesis(
    pool: Pool,
    order: int,
    entry: int,
    source: Tensor,
    symbols: Symbols,
    options: SearchOptions,
) -> Hypothesis:
    """fairseq's dict for an entry of a sentence's pool, tokens in natural order.

    Args:
        pool: of one sentence.
        order: place of the entry's direction among those of the search.
        entry: its place, of P.
    """
    direction = options.directions[order]
    length = int(pool.length[0, order, entry])
    values = {name: x[0, order, entry, :length] for name, x in pool.fields.items()}
    partner = values.get("partner")
    attention = values.get("attention")
    if direction == R2L:
        for name in ("tokens", "scores"):
            values[name] = reverse_tokens(values[name])
        if attention is not None:
            attention = reverse_tokens(attention)
    alignment: Any = torch.empty(0)
    if attention is not None:
        extract = (
            utils.extract_soft_alignment
            if options.print_alignment == "soft"
            else utils.extract_hard_alignment
        )
        alignment = extract(
            attention, source, values["tokens"], symbols.pad, symbols.eos
        )
    return {
        "tokens": values["tokens"],
        "score": pool.score[0, order, entry],
        "total": pool.total[0, order, entry],
        "attention": None if attention is None else attention.t(),
        "alignment": alignment,
        "positional_scores": values["scores"],
        "direction": NAMES[direction],
        "partner_tokens": None if partner is None else partner[:-1],
    }
