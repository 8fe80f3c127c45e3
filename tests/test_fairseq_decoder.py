"""fairseq's own decoders in the search, against a beam search on lists: the Transformer
as :mod:`fairseq_decoder` sees it, an LSTM as it is; and our own of one direction."""

from argparse import Namespace
from functools import partial

import pytest
import torch
from fairseq.models.lstm import LSTMModel
from fairseq.models.lstm import base_architecture as lstm_architecture
from helpers import enlarge, fake_task, rnn_model, source, transformer, two_way_model
from reference import assert_found, search
from searching import generate, gnmt, make_generator, texts

from sbnmt_plugin.families.ba.decoder import RNNSearchDecoder, RNNState
from sbnmt_plugin.families.two_way.decoder import GridState, TwoWayDecoder
from sbnmt_plugin.layout import L2R, R2L, Layout
from sbnmt_plugin.network import kv_cache
from sbnmt_plugin.network.decoder import SBTransformerDecoder
from sbnmt_plugin.network.fairseq_decoder import (
    CopiedSource,
    FairseqDecoder,
    searchable,
)
from sbnmt_plugin.network.kv_cache import KVCache

LENGTHS = (7, 6, 4)  # an LSTM wants the longest first


pytestmark = pytest.mark.usefixtures("float64_fairseq")


def lstm():
    """Make fairseq's LSTM, whose decoder attends to the source at every step."""
    torch.manual_seed(2)
    args = Namespace(
        **dict.fromkeys(("encoder_embed_dim", "decoder_embed_dim"), 6),
        **dict.fromkeys(("encoder_hidden_size", "decoder_hidden_size"), 8),
        decoder_out_embed_dim=5,
        encoder_layers=2,
        decoder_layers=2,
        dropout=0.0,
        criterion="",
    )
    lstm_architecture(args)
    return enlarge(LSTMModel.build_model(args, fake_task())).double().eval()


BEFORE = {"decoder_normalize_before": True, "encoder_normalize_before": True}
LEARNED = {"layernorm_embedding": True, "decoder_learned_pos": True}
MODELS = {
    "transformer": transformer,
    "transformer before": partial(transformer, **BEFORE),
    "transformer learned": partial(transformer, **LEARNED),
    "transformer wide": partial(
        transformer, encoder_embed_dim=12, activation_fn="gelu"
    ),
    "lstm": lstm,
    "ba_nmt": rnn_model,
    "two_way": two_way_model,
}


@torch.no_grad()
def score_of(model, sentence):
    """Compute log-probabilities from the whole prefix and the sentence alone."""
    length = LENGTHS[sentence]
    tokens = source(model, LENGTHS)["src_tokens"][sentence : sentence + 1, -length:]
    encoded = model.encoder.forward_torchscript(
        {"src_tokens": tokens, "src_lengths": torch.tensor([length])}
    )

    def score(direction, own, partner):
        prefix = torch.tensor([[model.decoder.dictionary.eos(), *own]])
        output = model.decoder(prefix, encoder_out=encoded)
        return model.get_normalized_probs(output, log_probs=True)[0, -1].tolist()

    return score


def assert_as_reference(
    model, beam, direction=L2R, max_len_a=0, max_len_b=6, **options
):
    words = model.decoder.dictionary
    generator = make_generator(
        [model],
        (direction,),
        beam=beam,
        max_len_a=max_len_a,
        max_len_b=max_len_b,
        penalty=gnmt(0.6),
        no_repeat_ngram_size=0,
        **options,
    )
    found = generator.generate([model], {"net_input": source(model, LENGTHS)})
    for sentence, hypotheses in enumerate(found):
        expected = search(
            score_of(model, sentence),
            eos=words.eos(),
            never=set(generator.symbols.never),
            beam=beam,
            max_len=max_len_a * LENGTHS[sentence] + max_len_b,
            directions=(direction,),
            **options,
        )
        assert len(hypotheses) == beam
        assert_found(hypotheses, expected)
    return found


@pytest.mark.parametrize("stop", ["bound", "first"])
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_any_decoder_goes_through_the_same_search(name, beam, stop):
    for direction in L2R, R2L:
        assert_as_reference(MODELS[name](), beam, direction, stop=stop)


@pytest.mark.parametrize("name", MODELS)
def test_sentences_leave_one_after_the_other(name):
    assert_as_reference(MODELS[name](), 3, max_len_a=1, max_len_b=-1)


def test_each_is_seen_as_what_it_is():
    found = {name: searchable(make()) for name, make in MODELS.items()}
    assert type(found["transformer"]) is SBTransformerDecoder
    assert type(found["lstm"]) is FairseqDecoder
    assert type(found["ba_nmt"]) is RNNSearchDecoder
    assert type(found["two_way"]) is TwoWayDecoder
    changed = transformer()
    layer = changed.decoder.layers[0]
    layer.__class__ = type("Other", (type(layer),), {})  # whose forward nobody knows
    assert type(searchable(changed)) is FairseqDecoder


STUCK = {
    "transformer": KVCache,
    "lstm": CopiedSource,
    "ba_nmt": RNNState,
    "two_way": GridState,
}


@pytest.mark.parametrize("name", STUCK)
def test_the_comparison_can_fail(name, monkeypatch):
    """A state that does not follow the hypotheses to which it belongs."""
    right = STUCK[name].select

    def wrong(self, rows):
        beam = self.layout.beam
        right(self, rows - rows % beam + torch.arange(len(rows)) % beam)

    monkeypatch.setattr(STUCK[name], "select", wrong)
    with pytest.raises(AssertionError):
        assert_as_reference(MODELS[name](), 3)


def test_the_source_is_selected_with_its_sentences(monkeypatch):
    """Keys and values of the source are those of the sentences that stay."""
    right = kv_cache.select_sentences

    def first(encoder_out, sentences):
        return right(encoder_out, torch.arange(len(sentences)))

    model = transformer()
    net_input = source(model, LENGTHS[::-1])  # the first one is done first
    options = {"max_len_a": 1, "max_len_b": 0, "beam": 3, "no_repeat_ngram_size": 0}

    def found():
        return texts(generate([model], net_input, (L2R,), **options))

    expected = found()
    monkeypatch.setattr(kv_cache, "select_sentences", first)
    with pytest.raises(AssertionError):
        assert found() == expected


# which columns attention has


def columns_of(model):
    """Which columns a step's attention has something in, of the shortest sentence."""
    net_input = source(model, LENGTHS)
    with torch.no_grad():
        encoded = model.encoder.forward_torchscript(net_input)
        decoder = searchable(model)
        state = decoder.start(encoded, Layout(directions=1), weights=True)
        tokens = torch.full((len(LENGTHS), 1), model.decoder.dictionary.eos())
        _, attention = decoder.step(tokens, state)
    real = net_input["src_tokens"][-1].ne(model.encoder.dictionary.pad())
    return attention[-1].gt(0).tolist(), real.tolist()


@pytest.mark.parametrize("name", ["transformer", "ba_nmt"])
def test_attention_has_the_columns_of_the_source(name):
    found, real = columns_of(MODELS[name]())
    assert found == real == [False] * 3 + [True] * 4


def test_fairseqs_lstm_moves_the_columns_past_the_padding():
    """So --print-alignment of the row rnmt is off by the padding; `sbnmt aer` gives a
    decoder sentences of one length."""
    found, real = columns_of(lstm())
    assert found == real[::-1] == [True] * 4 + [False] * 3
