"""Searches with small random networks of any family but ABD-NMT and ENAT."""

from helpers import source

from sbnmt_plugin.layout import L2R, PAIRINGS, R2L
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.symbols import TAGS


def make_generator(models, directions=(L2R, R2L), **options):
    """Make the search of these models, with short hypotheses of different words."""
    words = models[0].decoder.dictionary
    tags = tuple(words.index(tag) for tag in TAGS)
    starts = tags if len(directions) == 2 else (words.eos(),)
    symbols = Symbols(
        pad=words.pad(),
        eos=words.eos(),
        unk=words.unk(),
        starts=starts,
        never=(words.pad(), *tags),
    )
    options.setdefault("max_len_b", 8)
    # random networks repeat themselves; without that, texts and lengths differ
    options.setdefault("no_repeat_ngram_size", 1)
    if isinstance(options.get("pairing"), str):
        options["pairing"] = PAIRINGS[options["pairing"]]
    return Generator(models, symbols, SearchOptions(directions=directions, **options))


def generate(models, net_input=None, directions=(L2R, R2L), **options):
    """Search with these models: a list of hypotheses for each source, best first."""
    generator = make_generator(models, directions, **options)
    return generator.generate(models, {"net_input": net_input or source(models[0])})


def texts(results):
    """Return the token ids of every hypothesis of every source."""
    return [[h["tokens"].tolist() for h in hypotheses] for hypotheses in results]
