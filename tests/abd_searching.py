"""ABD-NMT's search with small random networks."""

from helpers import source

from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.search.registry import search_for
from sbnmt_plugin.symbols import TAGS as NAMES_OF_TAGS


def generator_of(models, **options):
    """Make the search of these models, with short hypotheses of different words."""
    words = models[0].decoder.dictionary
    tags = tuple(words.index(tag) for tag in NAMES_OF_TAGS)
    symbols = Symbols(
        pad=words.pad(),
        eos=words.eos(),
        unk=words.unk(),
        starts=tags,
        never=(words.pad(), *tags),
    )
    options = {"max_len_b": 8, "no_repeat_ngram_size": 1, "beam": 4} | options
    return search_for(models)(models, symbols, SearchOptions(**options))


def generate(models, net_input=None, **options):
    """Search with these models: a list of hypotheses for each source, best first."""
    net_input = net_input or source(models[0])
    generator = generator_of(models, **options)
    return generator.generate(models, {"net_input": net_input})
