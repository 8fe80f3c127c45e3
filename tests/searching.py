"""Searches with small random networks of any family but ENAT."""

from functools import partial

import torch
from helpers import source

from sbnmt_plugin.layout import L2R, PAIRINGS, R2L
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.penalties import LengthPenalty
from sbnmt_plugin.search.registry import search_for

gnmt, power = (partial(LengthPenalty, name) for name in ("gnmt", "power"))


def make_generator(models, directions=(L2R, R2L), **options):
    """Make the search of these models, with short hypotheses of different words."""
    symbols = Symbols.of(models[0].decoder.dictionary, directions)
    options.setdefault("max_len_b", 8)
    # random networks repeat themselves; without that, texts and lengths differ
    options.setdefault("no_repeat_ngram_size", 1)
    if isinstance(options.get("pairing"), str):
        options["pairing"] = PAIRINGS[options["pairing"]]
    chosen = SearchOptions(directions=directions, **options)
    return search_for(models)(models, symbols, chosen)


def generate(models, net_input=None, directions=(L2R, R2L), **options):
    """Search with these models: a list of hypotheses for each source, best first."""
    generator = make_generator(models, directions, **options)
    return generator.generate(models, {"net_input": net_input or source(models[0])})


def texts(results):
    """Return the token ids of every hypothesis of every source."""
    return [[h["tokens"].tolist() for h in hypotheses] for hypotheses in results]


def assert_same_answers(ones, others, *keys):
    """Check that two searches give the same texts and scores, in the same order.

    Args:
        keys: what else of a hypothesis must be the same.
    """
    assert texts(ones) == texts(others)
    for one, other in zip(ones, others):
        for left, right in zip(one, other):
            for key in ("score", *keys):
                torch.testing.assert_close(left[key], right[key], rtol=0, atol=1e-10)
