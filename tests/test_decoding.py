"""The search on real networks: caches, scores, batches, interaction."""

import warnings
from dataclasses import replace

import pytest
import torch
from fairseq.modules import MultiheadAttention
from helpers import B, sb_model, source, transformer
from reference import a_place_later, attention_row, fused, projected
from searching import assert_same_answers, generate, gnmt, make_generator, texts
from torch.utils._python_dispatch import TorchDispatchMode

from sbnmt_plugin.layout import L2R, R2L, RANK, Layout
from sbnmt_plugin.network import attention, kv_cache
from sbnmt_plugin.network import dot_product as products
from sbnmt_plugin.network.attention import SBSelfAttention
from sbnmt_plugin.network.decoder import SBTransformerDecoder
from sbnmt_plugin.network.fairseq_decoder import adopt
from sbnmt_plugin.numerics import DEAD
from sbnmt_plugin.search import answers
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.symbols import TAGS

EXACT = {"rtol": 0, "atol": 1e-10}
SHUFFLED = replace(RANK, name="shuffled", shift=1)


class Replay:
    """Runs beside the search and keeps keys and values in plain Python lists."""

    def __init__(self, decoder, state, kind, pairing):
        self.decoder, self.state = decoder, state
        self.layout = state.layout
        self.kind = kind
        self.pairing = pairing
        self.layers = decoder.layers
        self.past = None  # [row][layer] -> list of keys and values, own, then across
        self.partners = set()

    def partner(self, row):
        beam = self.layout.beam
        first, rank = row // beam * beam, row % beam
        first += beam if (row // beam) % 2 == 0 else -beam
        return first + (rank if self.pairing == "rank" else 0)

    def self_attention(self, module, layer, x):
        own, across = (projected(m, x) for m in (module, module.reader or module))
        for row in range(len(x)):
            kept = [y[row] for projections in (own, across) for y in projections[1:]]
            self.past[row][layer].append(kept)
        size = module.head_dim
        found = []
        for row in range(len(x)):
            pasts = []
            for read, (q, *_), first in (row, own, 0), (self.partner(row), across, 2):
                keys, values = list(zip(*self.past[read][layer]))[first : first + 2]
                if module.shift and first:
                    values = a_place_later(values)
                pasts.append([])
                for head in range(module.num_heads):
                    part = slice(head * size, (head + 1) * size)
                    heads = ([x[part] for x in y] for y in (keys, values))
                    pasts[-1].append(attention_row(q[row, part], *heads))
            found.append(fused(module, self.kind, *pasts))
        return torch.stack(found)

    def step(self, tokens):
        if self.past is None:
            self.past = [[[] for _ in self.layers] for _ in tokens]
        decoder = self.decoder
        positions = decoder.embed_positions(tokens)[:, -1]
        x = decoder.embed_scale * decoder.embed_tokens(tokens[:, -1]) + positions
        out = self.state.encoder_out
        for number, layer in enumerate(self.layers):
            x = layer.self_attn_layer_norm(
                x + self.self_attention(layer.self_attn, number, x)
            )
            read, _ = layer.encoder_attn(
                x,
                out["encoder_out"][0],
                key_padding_mask=out["encoder_padding_mask"][0],
                incremental_state=kv_cache.KVCache(self.layout, out),
                need_weights=False,
            )
            x = layer.encoder_attn_layer_norm(x + read)
            x = layer.final_layer_norm(x + layer.fc2(layer.fc1(x).relu()))
        return decoder.output_layer(x).log_softmax(-1)

    def select(self, rows):
        self.past = [[list(past) for past in self.past[r]] for r in rows.tolist()]
        self.partners.add(tuple((rows % self.layout.beam).tolist()))


def run_with_replay(monkeypatch, beam, pairing, shift=False, reader=False):
    model = sb_model(sb_lambda=0.9, words=9, sb_future_shift=shift, sb_reader=reader)
    replays, steps = {}, []
    step, select = SBTransformerDecoder.step, kv_cache.KVCache.select

    def watched_step(self, tokens, state):
        replay = replays.setdefault(id(state), Replay(self, state, "tanh", pairing))
        scores, weights = step(self, tokens, state)
        torch.testing.assert_close(scores.lprobs(), replay.step(tokens), **EXACT)
        steps.append(len(tokens))
        return scores, weights

    def watched_select(self, rows):
        select(self, rows)
        replays[id(self)].select(rows)

    monkeypatch.setattr(SBTransformerDecoder, "step", watched_step)
    monkeypatch.setattr(kv_cache.KVCache, "select", watched_select)
    generate([model], beam=beam, pairing=pairing, max_len_b=7)
    (replay,) = replays.values()
    return replay, steps


@pytest.mark.parametrize("pairing", ["rank", "best"])
@pytest.mark.parametrize("beam", [4, 6])
@pytest.mark.parametrize("least", [1, products.LEAST_HEADS])
@pytest.mark.parametrize("reader", [False, True])
@pytest.mark.parametrize("shift", [False, True])
def test_cached_decoding_equals_a_replay_on_lists(
    monkeypatch, beam, pairing, least, shift, reader
):
    """Property 4, second half, while ranks, partners and the batch change."""
    monkeypatch.setattr(products, "LEAST_HEADS", least)
    replay, steps = run_with_replay(monkeypatch, beam, pairing, shift, reader)
    straight = tuple(range(beam // 2))
    assert any(order[: beam // 2] != straight for order in replay.partners)
    assert len(set(steps)) > 1 or steps[0] == B * beam


def test_products_are_for_short_texts_of_many_sentences():
    """Else torch's attention is as fast, or the only one that knows dropout or AMP."""

    def heads(sentences, length):
        return torch.zeros(sentences, 8, length, 5)

    few, most = heads(8, 2), heads(8, products.MOST_KEYS)
    more = heads(8, products.MOST_KEYS + 1)
    with torch.no_grad():
        assert products.small(few, more) and products.small(more, most)
        assert not products.small(more, more)
        assert not products.small(few[:1], few[:1])
        assert not products.small(few.half(), few.half())
        with torch.autocast("cpu"):
            assert not products.small(few, few)
    assert not products.small(few, few)


@pytest.mark.parametrize("masked", [False, True])
def test_products_are_torchs_attention(masked):
    """Many queries of few keys, a mask of one head for all, and heads of its own."""
    torch.manual_seed(3)
    query, key, value = (torch.randn(9, 8, length, 4) for length in (40, 7, 7))
    for heads in 1, 8:
        hidden = torch.rand(9, heads, 40, 7).gt(0.6)
        hidden[..., 0] = False
        mask = torch.zeros(hidden.shape).masked_fill(hidden, DEAD) if masked else None
        with torch.no_grad():
            assert products.small(query, key)
            found = products.attend(query, key, value, mask)
            expected = products.attend_at_once(query, key, value, mask)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_the_replay_check_can_fail(monkeypatch):
    def stuck(self, rows):
        """Re-pairs without moving the caches."""

    monkeypatch.setattr(kv_cache.KVCache, "select", stuck)
    with pytest.raises((AssertionError, RuntimeError, ValueError)):
        run_with_replay(monkeypatch, 4, "rank")


def test_the_replay_sees_values_that_stay_with_their_slots(monkeypatch):
    right = kv_cache.KVCache.select

    def stuck(self, rows):
        last = self._last
        right(self, rows)
        if rows.numel() == len(next(iter(last.values()))):
            self._last = last

    monkeypatch.setattr(kv_cache.KVCache, "select", stuck)
    with pytest.raises(AssertionError):
        run_with_replay(monkeypatch, 4, "rank", shift=True)


def teacher_forced(models, hypothesis, b, net_input):
    """Log-probability of a beam-2 hypothesis with its partner's live prefix.

    That is of the mean probability of the models.
    """
    words = models[0].decoder.dictionary
    direction = ("l2r", "r2l").index(hypothesis["direction"])
    own = hypothesis["tokens"][:-1]
    if direction == R2L:
        own = own.flip(0)
    partner = hypothesis["partner_tokens"]
    rows = [None, None]
    for d, tokens in ((direction, own), (1 - direction, partner)):
        rows[d] = torch.cat([torch.tensor([words.index(TAGS[d])]), tokens])
    labels = torch.cat([own, torch.tensor([words.eos()])])
    probabilities = 0
    for model in models:
        output, _ = model(
            src_tokens=net_input["src_tokens"][b : b + 1],
            src_lengths=net_input["src_lengths"][b : b + 1],
            prev_output_tokens=torch.stack(rows),
        )
        probabilities = probabilities + output[direction].softmax(-1) / len(models)
    return probabilities.log().gather(1, labels[:, None]).sum()


@pytest.mark.parametrize("seeds", [[1], [1, 2]], ids=["alone", "ensemble"])
def test_a_beam_2_score_is_the_teacher_forced_one(seeds):
    """Property 8; an ensemble averages probabilities."""
    models = [sb_model(seed=seed, sb_lambda=0.9) for seed in seeds]
    net_input = source(models[0])
    results = generate(models, net_input, beam=2, penalty=gnmt(0.0))
    for b, hypotheses in enumerate(results):
        for hypothesis in hypotheses:
            expected = teacher_forced(models, hypothesis, b, net_input)
            torch.testing.assert_close(hypothesis["score"], expected, **EXACT)


def test_the_score_check_can_fail(monkeypatch):
    monkeypatch.setattr(Layout, "partners", lambda self, rows: rows)
    with pytest.raises(AssertionError):
        test_a_beam_2_score_is_the_teacher_forced_one([1])


@pytest.mark.parametrize("beam", [2, 4])
@pytest.mark.parametrize("options", [{}, {"sb_fusion": "gate"}], ids=str)
def test_a_batch_of_one_gives_the_same(monkeypatch, beam, options):
    """Property 5 in search: company changes nothing."""
    monkeypatch.setattr(products, "LEAST_HEADS", 12)  # of some sentences, not of one
    model = sb_model(**options)
    lengths = (7, 4, 6, 2, 5, 3, 7)
    net_input = source(model, lengths)
    together = generate([model], net_input, beam=beam)
    for b, length in enumerate(lengths):
        tokens = net_input["src_tokens"][b : b + 1, max(lengths) - length :]
        alone = {"src_tokens": tokens, "src_lengths": torch.tensor([length])}
        (hypotheses,) = generate([model], alone, beam=beam)
        assert_same_answers([hypotheses], [together[b]])


def test_shuffled_partners_and_lambda_zero_change_the_output():
    """Property 10 in small; the toy recipe shows it on a trained model."""
    from sbnmt_plugin.tools.probes import without

    model = sb_model(sb_lambda=0.9)
    plain = texts(generate([model], beam=4))
    with without("future", [model]):
        assert texts(generate([model], beam=4)) != plain
    assert texts(generate([model], beam=4, pairing=SHUFFLED)) != plain
    assert texts(generate([model], beam=4)) == plain
    at_zero = sb_model(sb_lambda=0.0)
    plain = texts(generate([at_zero], beam=4))
    assert texts(generate([at_zero], beam=4, pairing=SHUFFLED)) == plain


LENGTHS = (7, 2, 6, 3)


def leaving(done, of, traced=False):
    """How many of a batch leave it, when so many are done."""
    search = make_generator([sb_model()])
    search.tracer = object() if traced else None
    return search._leaving(torch.arange(of) < done)


def test_a_few_that_are_done_wait_for_company():
    assert [leaving(n, 33) for n in (0, 2, 3, 33)] == [0, 0, 3, 33]
    assert [leaving(n, 4) for n in (0, 1, 4)] == [0, 1, 4]


def test_nobody_waits_where_every_step_is_noted():
    assert leaving(1, 33, traced=True) == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_one_error_says_that_numbers_are_none(bad):
    """Of a sentence whose logits are no numbers, and no warning beside it."""
    model = sb_model(sb_lambda=0.7)
    output = model.decoder.output_layer

    def broken(features, **options):
        logits = output(features, **options)
        logits[:4] = bad
        return logits

    model.decoder.output_layer = broken
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(FloatingPointError, match="not numbers"):
            generate([model], source(model, LENGTHS), beam=4)


def test_the_check_of_warnings_can_fail(monkeypatch):
    def loud(*given):
        warnings.warn("invalid value", RuntimeWarning, stacklevel=1)
        refuse(*given)

    refuse = answers.refuse
    monkeypatch.setattr(answers, "refuse", loud)
    with pytest.raises(RuntimeWarning, match="invalid value"):
        test_one_error_says_that_numbers_are_none(-float("inf"))


def partners_met(monkeypatch, model):
    """Per attention call, whether each sentence's future was its own partner's."""
    met, original = [], attention.attend_both_ways

    def watched(own, across, layout, *rest):
        found = original(own, across, layout, *rest)
        paired = original(own, across, replace(layout, pairing=RANK), *rest)
        both = found.future, paired.future
        same = [f.unflatten(0, (-1, 2)).flatten(1) for f in both]
        met.append((same[0] == same[1]).all(1))
        return found

    monkeypatch.setattr(attention, "attend_both_ways", watched)
    options = {"max_len_a": 1, "max_len_b": 0, "beam": 4, "pairing": SHUFFLED}
    generate([model], source(model, LENGTHS), **options)
    return met


def test_no_sentence_ever_meets_its_own_partner(monkeypatch):
    met = partners_met(monkeypatch, sb_model(sb_lambda=0.9))
    assert {len(row) for row in met} == {len(LENGTHS)}
    assert bool(met[0].all())  # step 1, layer 1: all begin with the same tags
    assert not torch.stack(met[1::2]).any()  # layer 2 has seen the source


def test_the_partner_check_can_fail(monkeypatch):
    """Without the finished sentences, the last one meets itself."""
    monkeypatch.setattr(Generator, "_leaving", lambda _, done: int(done.sum()))
    met = partners_met(monkeypatch, sb_model(sb_lambda=0.9))
    assert len(met[-1]) == 1 and bool(met[-1].all())


def test_partners_are_not_shuffled_in_a_batch_of_one():
    model = sb_model(sb_lambda=0.9)
    with pytest.raises(ValueError, match="a single sentence"):
        generate([model], source(model, (4,)), beam=4, pairing=SHUFFLED)


def test_a_sentence_alone_joins_another_batch():
    from sbnmt_plugin.tools.probes import Prober

    grouped = Prober.grouped
    assert grouped(None, [[1, 2], [3], [4, 5]]) == [[1, 2], [3, 4, 5]]
    assert grouped(None, [[1], [2, 3], [4]]) == [[1, 2, 3, 4]]
    assert grouped(None, [[1], [2], [3], [4], [5]]) == [[1, 2], [3, 4, 5]]
    assert grouped(None, [[1]]) == [[1]]


def test_one_hypothesis_that_stops_first_is_fairseqs_beam_1(stop="first"):
    """At free lengths, where it matters what may end."""
    from fairseq.sequence_generator import SequenceGenerator

    for seed in range(1, 13):
        model = transformer(seed=seed)
        words = model.decoder.dictionary
        net_input = source(model)
        with torch.no_grad():
            model.decoder.output_projection.weight[words.eos()] *= 2  # it does end
        options = {"max_len_b": 9, "no_repeat_ngram_size": 0}
        generator = make_generator([model], (L2R,), beam=1, stop=stop, **options)
        generator.symbols = replace(generator.symbols, never=(words.pad(),))
        ours = generator.generate([model], {"net_input": net_input})
        fairseqs = SequenceGenerator([model], words, beam_size=1, **options)
        fairseqs = fairseqs.generate([model], {"net_input": net_input})
        assert texts(ours) == texts(fairseqs)


def test_the_check_of_fairseqs_beam_1_can_fail():
    with pytest.raises(AssertionError):
        test_one_hypothesis_that_stops_first_is_fairseqs_beam_1("bound")


def test_soft_and_hard_alignments_are_in_output_order():
    model = sb_model(sb_lambda=0.9)
    for kind in ("hard", "soft"):
        results = generate([model], beam=4, print_alignment=kind)
        for hypotheses in results:
            for hypothesis in hypotheses:
                length = len(hypothesis["tokens"])
                assert hypothesis["attention"].shape == (7, length)
                sums = hypothesis["attention"].sum(0)
                torch.testing.assert_close(sums, torch.ones_like(sums))
                if kind == "hard":
                    targets = [pair[1] for pair in hypothesis["alignment"]]
                    assert targets == list(range(length - 1))
                else:
                    assert len(hypothesis["alignment"]) == length


def test_only_fairseqs_own_transformer_is_seen_as_ours():
    model = transformer()
    weights = {name: id(p) for name, p in model.named_parameters()}
    assert isinstance(adopt(model.decoder), SBTransformerDecoder)
    assert {name: id(p) for name, p in model.named_parameters()} == weights
    assert type(model.decoder.layers[0].self_attn) is MultiheadAttention
    ours = sb_model().decoder
    assert adopt(ours) is ours
    layer = model.decoder.layers[1]
    layer.forward = layer.forward  # as fairseq's checkpointing wraps it
    assert adopt(model.decoder) is model.decoder
    model = transformer()
    model.decoder.layers[0].self_attn.__class__ = SBSelfAttention
    assert adopt(model.decoder) is model.decoder


def half_attention(query, keys):
    """Weights of cross-attention that projects nothing, (N, S)."""
    heads, channels = 2, query.size(-1)
    module = attention.GroupedCrossAttention(channels, heads).eval()
    for projection in module.q_proj, module.k_proj, module.v_proj, module.out_proj:
        torch.nn.init.eye_(projection.weight)
        torch.nn.init.zeros_(projection.bias)
    cache = kv_cache.KVCache(Layout(2, 1), None)
    cache.begin(torch.zeros(query.size(1), 1))
    with torch.no_grad():
        _, weights = module.to(query.dtype)(query[0], keys, incremental_state=cache)
    return weights[:, 0]


def test_alignments_fit_half_precision():
    """Products of about 90,000, which are more than float16 holds, 65,504."""
    query = torch.full((1, 2, 8), 150.0)
    keys = torch.full((3, 1, 8), 150.0)
    keys[1], keys[2, :, :4] = 150.25, 149.75  # the heads differ
    logits = (query[0] * keys).unflatten(-1, (2, 4)).sum(-1) / 4**0.5  # (S, N, H)
    expected = logits.softmax(0).mean(-1).t()
    found = half_attention(query.half(), keys.half())
    torch.testing.assert_close(found.float(), expected, rtol=1e-3, atol=1e-6)


def test_the_check_of_half_precision_can_fail(monkeypatch):
    """As it was: multiplied in half precision, and scaled then."""
    monkeypatch.setattr(attention, "wide", lambda dtype: dtype)
    with pytest.raises(AssertionError):
        test_alignments_fit_half_precision()


class Dispatched(TorchDispatchMode):
    """Counts all operators that torch dispatches, views too."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


def operators_a_step(model):
    """Return how many operators a step of the search takes, beside start and end."""
    counts = []
    for size in (12, 24):
        with Dispatched() as mode:
            lengths = {"min_len": size, "max_len_b": size, "no_repeat_ngram_size": 0}
            generate([model], beam=4, nbest=1, **lengths)
        counts.append(mode.count)
    return (counts[1] - counts[0]) / 12


def test_a_step_of_a_small_model_has_few_operators():
    """Small models are bound by operators: what a layer costs, and what is around."""
    few, many = (
        operators_a_step(sb_model(sb_lambda=0.0, decoder_layers=layers).float())
        for layers in (1, 3)
    )
    layer = (many - few) / 2
    assert layer <= 48 and many <= 260
    read = operators_a_step(sb_model(sb_lambda=0.5, decoder_layers=3).float())
    assert read >= many + 3 * 8  # reading the other stream is not free: the twin
