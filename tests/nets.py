"""Every family under test: its inputs, its loss, and its scores of each sentence."""

from functools import partial

import torch
import torch.nn.functional as F
from helpers import (
    S,
    abd_model,
    dictionary,
    enat_model,
    fake_task,
    live_of,
    rnn_model,
    sb_model,
    source,
    streams,
    target,
    two_way_model,
)
from searching import generate

from sbnmt_plugin.families.ba.attention import HISTORIES
from sbnmt_plugin.families.enat.criterion import ENATCrossEntropy
from sbnmt_plugin.families.enat.search import ParallelGenerator
from sbnmt_plugin.families.two_way.criterion import TwoWayCrossEntropy
from sbnmt_plugin.layout import L2R, R2L
from sbnmt_plugin.network.protocol import said
from sbnmt_plugin.search.options import SearchOptions, Symbols
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.training.criterion import SBLabelSmoothedCrossEntropy

EXACT = {"rtol": 0, "atol": 1e-10}
LENGTHS, STEPS, ROUGH = (7, 4, 6), (5, 3, 4), (3, 6, 2)  # S, T and Z, </s> counted
MU, LAMBDA, EPSILON = 0.3, 0.7, 0.1  # weights of L_align and L_adv, label smoothing
WORDS = dictionary()
PAD, EOS, UNK = WORDS.pad(), WORDS.eos(), WORDS.unk()
NEVER = PAD, WORDS.bos(), *(WORDS.index(tag) for tag in TAGS)
SYMBOLS = Symbols(pad=PAD, eos=EOS, unk=UNK, starts=(EOS,), never=NEVER)


def map_model(**options):
    """Make an ENAT model whose decoder reads mapped source embeddings."""
    weights = {"enat_align_weight": MU, "enat_adversary_weight": LAMBDA}
    return enat_model("map", **{**weights, **options})


FUSIONS = {
    "tanh": {"sb_lambda": 0.7},
    "relu": {"sb_lambda": 0.7},
    "linear": {"sb_lambda": 0.7, "sb_learn_lambda": True},
    "gate": {},
}
SB = {name: partial(sb_model, sb_fusion=name, **more) for name, more in FUSIONS.items()}
FAMILIES = {
    **{f"sb {name}": make for name, make in SB.items()},
    "abd": abd_model,
    **{f"ba {name}": partial(rnn_model, name) for name in HISTORIES},
    "two-way": two_way_model,
    "enat phrase": enat_model,
    "enat copy": partial(enat_model, "copy"),
    "enat map": map_model,
}
VARIANTS = {
    **FAMILIES,
    "sb learned": partial(sb_model, sb_learn_lambda=True),
    "sb zero": partial(sb_model, sb_lambda=0.0),
    "sb before": partial(sb_model, decoder_normalize_before=True),
    "sb positions": partial(sb_model, decoder_learned_pos=True),
    "sb shared": partial(sb_model, share_all_embeddings=True),
    "sb dropout": partial(sb_model, sb_future_dropout=0.5),
    "sb shift": partial(sb_model, sb_future_shift=True),
    "sb reader": partial(sb_model, sb_reader=True),
    "sb reader relu": partial(
        sb_model, sb_fusion="relu", sb_reader=True, sb_future_shift=True
    ),
    "sb reader learned": partial(sb_model, sb_reader=True, sb_learn_lambda=True),
    "sb reader thawed": partial(  # as 0.2.0 could
        sb_model, sb_reader=True, sb_freeze_writer=False
    ),
    "abd before": partial(abd_model, decoder_normalize_before=True),
    "abd positions": partial(abd_model, decoder_learned_pos=True),
    "abd shared": partial(abd_model, share_all_embeddings=True),
    "abd narrow": partial(abd_model, decoder_output_dim=6),
}


def variants(family):
    """Return the names of a family's variants in which both streams matter."""
    return [name for name in VARIANTS if name.startswith(family) and name != "sb zero"]


def lookup(lengths=ROUGH):
    """Make rough translations (B, Z), padded on the right."""
    generator = torch.Generator().manual_seed(8)
    rows = torch.full((len(lengths), max(lengths)), PAD)
    for row, length in zip(rows, lengths):
        row[: length - 1] = torch.randint(4, 13, (length - 1,), generator=generator)
        row[length - 1] = EOS
    return rows


def inputs(model):
    """Make the arguments of a model's forward pass, with what its family reads."""
    net = source(model)
    if getattr(model, "reads_lookup", False):
        net["lookup_tokens"] = lookup()
    both = said(model, "bidirectional")
    return {**net, "prev_output_tokens": streams(model) if both else target(STEPS)}


def batch(model):
    """Make the batch that the task hands to a model's criterion."""
    net = inputs(model)
    prev = net["prev_output_tokens"]
    lengths = prev.ne(PAD).sum(1)
    ends = lengths[:, None] - 1
    labels = F.pad(prev[:, 1:], (0, 1), value=PAD).scatter(1, ends, EOS)
    return {
        "net_input": net,
        "target": labels,
        "stream_target": labels,
        "live": live_of(prev),
        "stream_lengths": lengths.tolist(),
        "ntokens": int(lengths.sum()),
        "nsentences": len(net["src_tokens"]),
    }


def criterion(kind, directions=(L2R,), smoothing=EPSILON, sentence_avg=False):
    """Make a criterion for streams of these directions."""
    task = fake_task()
    task.directions = directions
    return kind(task, sentence_avg, smoothing)


def criterion_of(model, **options):
    """Make the criterion by which a model is trained."""
    if said(model, "bidirectional"):
        return criterion(SBLabelSmoothedCrossEntropy, (L2R, R2L), **options)
    kinds = {"two_way": TwoWayCrossEntropy, "enat_transformer": ENATCrossEntropy}
    family = getattr(model, "family", None)
    return criterion(kinds.get(family, SBLabelSmoothedCrossEntropy), **options)


def forward(model, prev, net_input=None):
    """Return (B, T, V) logits and (B, T, S) attention weights α of BA-NMT."""
    logits, extra = model(**(net_input or source(model)), prev_output_tokens=prev)
    return logits, extra["attn"][0]


def spread(rows, live, shape):
    """Put rows (n, V) at their places of (B, T, V), 0 elsewhere."""
    grid = rows.new_zeros(shape[0] * shape[1], rows.size(-1)).index_copy(0, live, rows)
    return grid.view(shape[1], shape[0], -1).transpose(0, 1)


def both(model, net_input, prev):
    """Return the two-way model's log p(e|f) (B, I, V_e) and log p(f|e) (B, J, V_f).

    They are 0 at padding, which is on the right.
    """
    live = live_of(prev)
    forth, extra = model(**net_input, prev_output_tokens=prev, live=live)
    back, labels, places = extra["back"]
    return (
        spread(forth.log_softmax(-1), live, prev.shape),
        spread(back.log_softmax(-1), places, labels.shape),
    )


def by_sentence(model, net):
    """Return all that a model says of each sentence, without padding.

    That is logits of a stream or two, of the two-way model log p of both texts, of
    BA-NMT also its attention to the source's words.
    """
    net = dict(net)
    real, prev = net["src_tokens"].ne(PAD), net["prev_output_tokens"]
    if said(model, "family") == "two_way":
        forth, back = both(model, net, net.pop("prev_output_tokens"))
        parts = zip(forth, prev, back, real)
        return [[x[y.ne(PAD)], z[: n.sum()]] for x, y, z, n in parts]
    logits, extra = model(**net)
    rows = [row[own] for row, own in zip(logits, prev.ne(PAD))]
    streams_each = len(rows) // len(real)
    found = [rows[i : i + streams_each] for i in range(0, len(rows), streams_each)]
    if said(model, "family") == "rnnsearch":
        for own, alpha, steps, words in zip(found, extra["attn"][0], prev, real):
            assert not alpha[:, ~words].any()
            own.append(alpha[steps.ne(PAD)][:, words])
    return found


def sentences():
    """Yield each sentence's number, source (J',) and decoder input (I',), unpadded."""
    tokens, prev = source(two_way_model())["src_tokens"], target(STEPS)
    for b, (places, steps) in enumerate(zip(LENGTHS, STEPS)):
        yield b, tokens[b, S - places :], prev[b, :steps]


def net(tokens):
    """Return the input of a model for source tokens (B, S) of unknown lengths."""
    return {"src_tokens": tokens, "src_lengths": None}


def options(**others):
    """Return options of ENAT's search: a beam of 5, one direction."""
    return SearchOptions(**{"beam": 5, "directions": (0,), "max_len_b": 30, **others})


def net_of(model):
    """Make the input of a search, which has no decoder input."""
    found = inputs(model)
    del found["prev_output_tokens"]
    return found


def searched(model, asked, net=None, led=None):
    """Search with an ENAT model: hypotheses of each source, best first."""
    net = net_of(model) if net is None else net
    generator = ParallelGenerator([model], SYMBOLS, asked)
    generator.teacher = led
    return generator.generate([model], {"net_input": net})


def answers_of(model, net=None, **more):
    """Return the answers of a model's own search."""
    if said(model, "writes_at_once"):
        return searched(model, options(), net)
    directions = (L2R, R2L) if said(model, "bidirectional") else (L2R,)
    return generate([model], net, directions, **more)
