"""The ENAT model: what must hold of it, each with a twin that fails.

The slow twin of the decoder is its formulas as loops over sentences and places.
"""

import math
from argparse import Namespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from helpers import assert_same_gradients, enat_model, target, transformer
from nets import EOS, LENGTHS, PAD, ROUGH, STEPS, inputs, lookup
from reference import read

from sbnmt_plugin.families.enat import decoder as enat_decoder
from sbnmt_plugin.families.enat.model import INPUTS

pytestmark = pytest.mark.usefixtures("float64_fairseq")


@pytest.fixture(params=INPUTS)
def given(request):
    return request.param


def logits(model, net):
    return model(**net)[0]


# the formulas


def slow_weights(places, steps, raw):
    """ω of one sentence, (T, Z), by the formula."""
    rows = []
    for t in range(1, steps + 1):
        row = [
            math.exp(-((t - i * steps / places) ** 2) / 0.3)
            for i in range(1, places + 1)
        ]
        rows.append([x if raw else x / sum(row) for x in row])
    return torch.tensor(rows, dtype=torch.float64)


def slow_sentence(model, words, rough, steps):
    """Logits (T, V) of one sentence without padding."""
    decoder = model.decoder
    states = model.encoder(words[None], torch.tensor([len(words)]))["encoder_out"][0]
    tokens = rough if model.reads_lookup else words
    inputs = math.sqrt(decoder.embed_dim) * decoder.embed_tokens.weight[tokens]
    if model.mapping is not None:
        inputs = inputs @ model.mapping.map.weight.T
    weights = slow_weights(len(tokens), steps, decoder.raw_weights)
    x = torch.stack([sum(w * z for w, z in zip(row, inputs)) for row in weights])
    places = decoder.embed_positions(torch.full((1, steps), EOS))[0].to(x)
    x = x + places
    for layer in decoder.layers:

        def block(x, norm, inner, before=layer.normalize_before):
            return x + inner(norm(x)) if before else norm(x + inner(x))

        def own(x, layer=layer):
            rows = list(x)
            return torch.stack([read(layer.self_attn, row, rows) for row in x])

        def other(x, layer=layer):
            rows = list(states[:, 0])
            return torch.stack([read(layer.encoder_attn, row, rows) for row in x])

        def inner(x, layer=layer):
            return layer.fc2(layer.fc1(x).relu())

        x = block(
            x,
            layer.positional_attn_layer_norm,
            lambda x, layer=layer: torch.stack(
                [read(layer.positional_attn, p, list(places), list(x)) for p in places]
            ),
        )
        x = block(x, layer.self_attn_layer_norm, own)
        x = block(x, layer.encoder_attn_layer_norm, other)
        x = block(x, layer.final_layer_norm, inner)
    if decoder.layer_norm is not None:
        x = decoder.layer_norm(x)
    return decoder.output_projection(x)


def assert_follows_the_formulas(model):
    """Forward and gradient of a padded batch are those of single sentences."""
    net = inputs(model)
    found = logits(model, net)
    rough = lookup()
    expected = [
        slow_sentence(model, net["src_tokens"][b, -s:], rough[b, :z], t)
        for b, (s, z, t) in enumerate(zip(LENGTHS, ROUGH, STEPS))
    ]
    cut = torch.cat([row[:steps] for row, steps in zip(found, STEPS)])
    assert_same_gradients(cut, torch.cat(expected), model.parameters(), atol=1e-9)


@pytest.mark.parametrize(
    "options", [{}, {"decoder_normalize_before": True}, {"enat_raw_weights": True}]
)
def test_the_model_follows_the_formulas(given, options):
    assert_follows_the_formulas(enat_model(given, **options))


def test_inputs_that_are_counted_in_columns_are_noticed(monkeypatch):
    """Sources are padded on the left: there i is no column."""

    def columns(read, written, raw, dtype):
        i, t = (torch.arange(1, x.size(1) + 1, dtype=dtype) for x in (read, written))
        rate = written.sum(1, keepdim=True) / read.sum(1, keepdim=True)
        distance = t[:, None] - (i * rate)[:, None]
        return (-(distance**2) / 0.3).masked_fill(~read[:, None], -math.inf).softmax(-1)

    monkeypatch.setattr(enat_decoder, "stretch_weights", columns)
    with pytest.raises(AssertionError):
        assert_follows_the_formulas(enat_model("copy"))


def test_a_causal_mask_is_noticed(monkeypatch):
    model = enat_model()
    mask = torch.full((5, 5), float("-inf"), dtype=torch.float64).triu(1)
    attention = model.decoder.layers[0].self_attn
    right = attention.forward

    def causal(**given):
        return right(**{**given, "attn_mask": mask})

    attention.forward = causal
    with pytest.raises(AssertionError):
        assert_follows_the_formulas(model)


# lengths


def test_the_number_of_words_is_that_of_training():
    """α is Σ T / Σ Z of what was trained on; validation does not count."""
    model = enat_model("copy")
    model.tokens_written.zero_()
    model.tokens_read.zero_()
    net = inputs(model)
    real = net["src_tokens"].ne(PAD)
    assert model.expected(real).tolist() == list(LENGTHS)  # nothing is known
    model(**net)
    assert model.tokens_read == 0
    model.train()
    model(**net)
    model(**{**net, "prev_output_tokens": target((4, 5, 5))})
    alpha = (sum(STEPS) + 14) / (2 * sum(LENGTHS))
    expected = [math.floor(alpha * length + 0.5) for length in LENGTHS]
    assert model.expected(real).tolist() == expected
    assert (model.half().tokens_written, model.tokens_read) == (26, 34)


def test_a_table_is_counted_by_its_own_lengths():
    model = enat_model("phrase").train()
    before = int(model.tokens_read)
    model(**inputs(model))
    assert model.tokens_read - before == sum(ROUGH)


# sizes and parameters


def test_activation_checkpoints_keep_no_states(monkeypatch):
    """A layer is computed once more for the gradients, and else once."""
    calls = []
    right = enat_decoder.ENATDecoderLayer.forward

    def counted(self, *given):
        calls.append(self)
        return right(self, *given)

    monkeypatch.setattr(enat_decoder.ENATDecoderLayer, "forward", counted)
    for saves, expected in (True, 2), (False, 1):
        model = enat_model("copy", checkpoint_activations=saves).train()
        calls.clear()
        model(**inputs(model))[0].sum().backward()
        assert len(calls) == expected * len(model.decoder.layers)


def test_no_discriminator_without_a_weight():
    model = enat_model("map", enat_adversary_weight=0.0)
    assert not [name for name, _ in model.named_parameters() if "judge" in name]


def test_an_iwslt_model_has_the_papers_size():
    args = enat_args()
    ARCH_CONFIG_REGISTRY["enat_transformer_iwslt_de_en"](args)
    for side in ("encoder", "decoder"):
        layers, width = (getattr(args, f"{side}_{x}") for x in ("layers", "embed_dim"))
        assert (layers, width, getattr(args, f"{side}_attention_heads")) == (5, 256, 4)


def enat_args(**options):
    return Namespace(share_all_embeddings=True, **options)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"share_all_embeddings": False}, "--share-all-embeddings"),
        ({"enat_align_weight": -1.0}, "--enat-align-weight must be ≥ 0"),
        ({"enat_adversary_weight": float("nan")}, "--enat-adversary-weight must be"),
        ({"enat_align_weight": 0.0}, "--enat-align-weight 0 is for --enat-input map"),
        ({"enat_adversary_weight": 2.0}, "--enat-adversary-weight 2 is for --enat-inp"),
        ({"no_token_positional_embeddings": True}, "--no-token-positional-embeddings"),
    ],
)
def test_what_the_family_cannot_be_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        enat_model(**options)


def test_other_weights_are_refused():
    with pytest.raises(ValueError, match="has no tokens_written: leave --finetune"):
        enat_model().load_state_dict(transformer().state_dict())


def test_the_layer_is_fairseqs_behind_positional_attention(monkeypatch):
    """The twin: without it the formulas do not hold."""

    def nothing(self, x, states, source_padding, padding, positions):
        parent = super(enat_decoder.ENATDecoderLayer, self)
        return parent.forward(
            x, states, source_padding, self_attn_padding_mask=padding
        )[0]

    monkeypatch.setattr(enat_decoder.ENATDecoderLayer, "forward", nothing)
    with pytest.raises(AssertionError):
        assert_follows_the_formulas(enat_model())
