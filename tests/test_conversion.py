"""Models in CTranslate2's form: what is converted computes the same, or is refused."""

import copy
import json

import pytest
from helpers import (
    SIZES,
    abd_model,
    built,
    dictionary,
    enat_model,
    fake_task,
    rnn_model,
    sb_model,
    transformer,
    two_way_model,
)

from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.layout import NAMES
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.tools.models import conversion, converted

pytest.importorskip("ctranslate2")

FREE = {"sb_lambda": 0.0}
LEARNED = {"encoder_learned_pos": True, "decoder_learned_pos": True}
NORMS = {"encoder_normalize_before": True, "decoder_normalize_before": False}
BLOCK = {"quant_noise_pq_block_size": 2}
EXACT = {
    "no interaction": FREE,
    "tanh": {},
    "linear": {"sb_fusion": "linear"},
    "learned λ": {"sb_learn_lambda": True},
    "reader": {"sb_reader": True},
    "shift": {"sb_future_shift": True},
    "learned positions": {**FREE, **LEARNED},
    "mixed norms": {**FREE, **NORMS},
    "norms first": {**FREE, **NORMS, "decoder_normalize_before": True},
    "norm of embeddings": {**FREE, "layernorm_embedding": True},
    "gelu": {**FREE, "activation_fn": "gelu"},
    "other gelu": {**FREE, "activation_fn": "gelu_accurate"},
    "shared": {**FREE, "share_all_embeddings": True},
    "wide decoder": {**FREE, "decoder_embed_dim": 12, "decoder_attention_heads": 3},
}
UNKNOWN = {
    "--sb-fusion gate": {"sb_fusion": "gate", "sb_lambda": None},
    "--decoder-output-dim": {**FREE, "decoder_output_dim": 6},
    "--activation-fn": {**FREE, "activation_fn": "linear"},
    "--quant-noise-pq": {**FREE, "quant_noise_pq": 0.1, **BLOCK},
    "--no-token-positional-embeddings": {
        **FREE,
        "no_token_positional_embeddings": True,
    },
}
# that CTranslate2 would take without a word
SILENT = "--sb-fusion gate", "--quant-noise-pq"
FILE = "model.bin"
OTHERS = abd_model, rnn_model, two_way_model, enat_model


def convert(model, folder, directions=NAMES, quantization="float32"):
    folder.mkdir(exist_ok=True)
    conversion.convert(model, directions, folder, quantization)
    return folder


@pytest.mark.parametrize("options", EXACT.values(), ids=EXACT)
def test_a_converted_model_scores_texts_as_before(options, tmp_path):
    convert(sb_model(**options), tmp_path)


@pytest.mark.parametrize("direction", NAMES)
def test_so_does_a_teacher(direction, tmp_path):
    convert(transformer(), tmp_path, (direction,))


def test_another_direction_or_weight_is_noticed(tmp_path, monkeypatch):
    """The check of scores can fail: the other tests of this file count on it."""
    model = sb_model(**FREE)
    for name, _ in model.named_parameters():
        if name.endswith(("fc2.weight", "encoder_attn.k_proj.weight")):
            other = copy.deepcopy(model)
            other.get_parameter(name).data *= 1.01
            folder = convert(model, tmp_path / name)
            with pytest.raises(ValueError, match="must score texts as the model does"):
                conversion.compare(other, NAMES, folder)
    monkeypatch.setattr(converted, "TAGS", TAGS[::-1])
    with pytest.raises(ValueError, match="must score texts as the model does"):
        convert(model, tmp_path)


@pytest.mark.parametrize("flag", UNKNOWN)
def test_what_would_be_computed_otherwise_is_refused_by_name(flag, tmp_path):
    with pytest.raises(ValueError, match=f"^a model with {flag}"):
        convert(sb_model(**UNKNOWN[flag]), tmp_path)


@pytest.mark.parametrize("kind", OTHERS)
def test_other_families_are_refused_by_name(kind, tmp_path):
    model = kind()
    with pytest.raises(ValueError, match=f"but is {model.family}, which"):
        convert(model, tmp_path)


@pytest.mark.parametrize("flag", SILENT)
def test_what_nobody_has_listed_is_refused_by_its_scores(flag, tmp_path, monkeypatch):
    monkeypatch.setattr(conversion, "refuse_unknown", lambda model: None)
    with pytest.raises(ValueError, match="must score texts as the model does"):
        convert(sb_model(**UNKNOWN[flag]), tmp_path)


def weights_after(model, folder):
    """Return which weights an export in 8 bits leaves as they were."""
    before = {x: y.clone() for x, y in model.state_dict().items()}
    convert(model, folder, quantization="int8")
    return {x: bool(y.equal(before[x])) for x, y in model.state_dict().items()}


def test_the_model_itself_stays_as_it_is(tmp_path, monkeypatch):
    assert all(weights_after(sb_model(**FREE), tmp_path / "copy").values())
    whole = sum(size.stat().st_size for size in (tmp_path / "copy").glob(FILE))
    convert(sb_model(**FREE), tmp_path / "float32")
    assert whole < (tmp_path / "float32" / FILE).stat().st_size
    monkeypatch.setattr(copy, "deepcopy", lambda model: model)  # the twin
    assert not all(weights_after(sb_model(**FREE).float(), tmp_path / "x").values())


@pytest.mark.parametrize("longest", [300, 1500])
def test_positions_reach_as_far_as_the_models(longest, tmp_path):
    limits = {"max_source_positions": longest, "max_target_positions": longest}
    model = convert(sb_model(**FREE, **limits), tmp_path)
    translator = converted.Converted(model, NAMES)
    for words in ["w1"] * (longest - 1), ["w1"]:
        for text in words, ["w1"]:
            translator.totals([(words, (tuple(text), "l2r"))])
    with pytest.raises(RuntimeError, match="position"):
        translator.totals([(["w1"] * longest, (("w1",), "l2r"))])


def test_a_model_of_few_positions_is_converted(tmp_path):
    convert(sb_model(**FREE, max_source_positions=8, max_target_positions=6), tmp_path)


def test_a_word_that_the_converter_calls_padding_stays_a_word(tmp_path):
    task = fake_task()
    words = dictionary(8, tags=False)
    for word in ("<blank>", *("<l2r>", "<r2l>")):
        words.add_symbol(word)
    task.source_dictionary = task.target_dictionary = words
    model = built(SBTransformerModel, SIZES, 1, task, FREE)
    folder = convert(model, tmp_path)
    found = json.loads((folder / "shared_vocabulary.json").read_text())
    assert found == words.symbols
    assert found.index("<blank>") > 3
