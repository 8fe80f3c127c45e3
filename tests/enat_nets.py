"""The ENAT model under test: its inputs, its loss and its search."""

import torch
from helpers import dictionary, enat_model, fake_task, live_of, source, target

from sbnmt_plugin.families.enat.criterion import ENATCrossEntropy
from sbnmt_plugin.families.enat.search import ParallelGenerator
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.symbols import TAGS

EXACT = {"rtol": 0, "atol": 1e-10}
LENGTHS, STEPS, ROUGH = (7, 4, 6), (5, 3, 4), (3, 6, 2)  # S, T and Z, </s> counted
MU, LAMBDA, EPSILON = 0.3, 0.7, 0.1  # weights of L_align and L_adv, label smoothing
WORDS = dictionary()
PAD, EOS, UNK = WORDS.pad(), WORDS.eos(), WORDS.unk()
NEVER = PAD, *(WORDS.index(tag) for tag in TAGS)
SYMBOLS = Symbols(pad=PAD, eos=EOS, unk=UNK, starts=(EOS,), never=NEVER)


def lookup(lengths=ROUGH):
    """Make rough translations (B, Z), padded on the right."""
    generator = torch.Generator().manual_seed(8)
    rows = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in zip(rows, lengths):
        row[: length - 1] = torch.randint(4, 13, (length - 1,), generator=generator)
        row[length - 1] = EOS
    return rows


def batch(model, steps=STEPS):
    """Make the model's input; rough translations are in it if the model reads them."""
    net = {"src_tokens": source(model)["src_tokens"], "src_lengths": None}
    if model.reads_lookup:
        net["lookup_tokens"] = lookup()
    return {**net, "prev_output_tokens": target(steps)}


def map_model(**options):
    """Make a model whose decoder reads mapped source embeddings."""
    weights = {"enat_align_weight": MU, "enat_adversary_weight": LAMBDA}
    return enat_model("map", **{**weights, **options})


def sample(model):
    """Make the batch that the task hands to a criterion."""
    net = batch(model)
    prev = net["prev_output_tokens"]
    labels = torch.cat([prev[:, 1:], prev.new_full((3, 1), PAD)], 1)
    for row, steps in zip(labels, STEPS):
        row[steps - 1] = EOS
    return {
        "net_input": net,
        "target": labels,
        "live": live_of(prev),
        "stream_lengths": list(STEPS),
        "ntokens": sum(STEPS),
        "nsentences": 3,
    }


def criterion(sentence_avg=False):
    """Make ENAT's criterion."""
    task = fake_task()
    task.directions = (0,)
    return ENATCrossEntropy(task, sentence_avg, EPSILON, 0, True)


def options(**others):
    """Return options of the search: a beam of 5, one direction."""
    return SearchOptions(**{"beam": 5, "directions": (0,), "max_len_b": 30, **others})


def net_of(model):
    """Make the input of a search, which has no decoder input."""
    net = batch(model)
    del net["prev_output_tokens"]
    net["src_lengths"] = net["src_tokens"].ne(PAD).sum(1)
    return net


def searched(model, asked, net=None, led=None):
    """Search with the model: a list of hypotheses for each source, best first."""
    net = net_of(model) if net is None else net
    generator = ParallelGenerator([model], SYMBOLS, asked)
    generator.teacher = led
    return generator.generate([model], {"net_input": net})
