"""What families bring: searches, and what models and options declare."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY
from helpers import abd_model, enat_model, sb_model, transformer, two_way_model

from sbnmt_plugin.checkpoint_checks import trained_languages
from sbnmt_plugin.config import task_config
from sbnmt_plugin.layout import L2R, R2L, Layout
from sbnmt_plugin.network.fairseq_decoder import searchable
from sbnmt_plugin.network.protocol import Decoder, said
from sbnmt_plugin.option_checks import check_model, refuse_out_of_scope
from sbnmt_plugin.search import registry
from sbnmt_plugin.search.generator import Generator
from sbnmt_plugin.task_options import DECODING, TRAINING, flag_of
from sbnmt_plugin.tools.recipes.stages import FUNCTION


def test_every_decoder_is_what_the_search_asks_for():
    for model in sb_model(), transformer():
        assert isinstance(searchable(model), Decoder)
    assert not isinstance(transformer().decoder, Decoder)


# which search a model wants


class Other(registry.Search):
    """A search that writes nothing."""

    def generate(self, models, sample, prefix_tokens=None, constraints=None):
        return []


@pytest.fixture
def other(monkeypatch):
    monkeypatch.setattr(registry, "SEARCHES", dict(registry.SEARCHES))
    return registry.register_search("other")(Other)


def test_a_model_names_the_search_that_it_wants(other):
    model = Namespace(searched_by="other")
    assert registry.search_for([model, model]) is other
    assert registry.search_for([Namespace(searched_by="synchronous")]) is Generator
    assert registry.search_for([transformer(), sb_model()]) is Generator


def test_the_task_makes_the_search_that_a_model_wants(other, monkeypatch):
    from sbnmt_plugin.task import SBTranslationTask

    model = sb_model()
    words = model.decoder.dictionary
    task = SBTranslationTask(task_config()(sb_bf16=False), words, words)
    assert isinstance(task.build_generator([model], Namespace(beam=4)), Generator)
    model.searched_by = "other"
    made = task.build_generator([model], Namespace(beam=4))
    assert isinstance(made, Other) and made.models == [model]
    assert made.symbols.eos == words.eos() and made.options.beam == 4
    assert made.options.directions == (L2R, R2L)
    assert made.recorder is None and made.tracer is None


def test_models_that_want_different_searches_are_refused(other):
    with pytest.raises(ValueError, match="want other and synchronous"):
        registry.search_for([Namespace(searched_by="other"), sb_model()])
    with pytest.raises(ValueError, match="want asynchronous and synchronous"):
        registry.search_for([abd_model(), sb_model()])


# what a model says of itself


def test_recipes_know_what_a_training_keeps_as_it_goes_on():
    models = set(ARCH_MODEL_REGISTRY.values())
    names = {flag_of(name) for model in models for name in said(model, "function")}
    assert names == set(FUNCTION)


def test_a_model_that_says_nothing_has_the_defaults():
    model = Namespace()
    assert said(model, "searched_by") == "synchronous"
    for name in "bidirectional", "reads_across", "writes_at_once":
        assert said(model, name) is False
        assert said(Namespace, name) is False
    assert said(model, "check_task")(None, True) is None
    assert said(model, "check_starts")(None, []) is None
    assert said(Namespace, "trained_languages")(None) is None
    for name in "arch", "_name":  # Hydra's
        settings = Namespace(**{name: "two_way_tiny"}, two_way_languages=["en", "de"])
        assert trained_languages(settings) == ("en", "de")
    given = object(), torch.zeros(4, 3)
    assert said(model, "forced_inputs")(*given, 2) == (*given, Layout(2))


def test_a_model_is_asked_before_the_defaults():
    class Speaks:
        bidirectional = True

        def check_task(self, cfg, training):
            raise ValueError(cfg)

    assert said(Speaks(), "bidirectional") and said(Speaks, "bidirectional")
    with pytest.raises(ValueError, match="of the task"):
        said(Speaks(), "check_task")("of the task", False)
    with pytest.raises(KeyError):
        said(Speaks(), "bidirectionnal")


# options and where they count


def refused(*given, phase="", models=(), **values):
    cfg = task_config()(**values)
    refuse_out_of_scope(cfg, phase, models, *given)


@pytest.mark.parametrize(
    "phase, values, message",
    [
        (DECODING, {"sb_probe": 5}, "--sb-probe is for training, not for decoding"),
        (DECODING, {"sb_partner_noise": 0.5}, "--sb-partner-noise is for training, "),
        (DECODING, {"sb_autocast": True}, "for training.* out .--sb-bf16 decodes in"),
        (TRAINING, {"sb_bf16": True}, "--sb-bf16 is for decoding, not for training"),
        (TRAINING, {"sb_int8": True}, "--sb-int8 is for decoding, .*--sb-autocast"),
        (TRAINING, {"sb_records": "x"}, "--sb-records is for decoding, not for train"),
        (TRAINING, {"sb_trace": "x"}, "--sb-trace is for decoding, not for training"),
        ("", {"sb_direction": "l2r", "sb_rescore": 1.0}, "--sb-rescore needs .* both"),
        ("", {"sb_direction": "r2l", "sb_trace": "x"}, "--sb-trace needs .* both"),
        ("", {"sb_direction": "l2r", "sb_answer": "l2r"}, "--sb-answer needs .* both"),
        ("", {"sb_direction": "r2l", "sb_pairing": "best"}, "--sb-pairing needs .* b"),
    ],
)
def test_an_option_is_refused_where_it_does_not_count(phase, values, message):
    with pytest.raises(ValueError, match=message):
        refused(phase=phase, **values)


def test_defaults_and_options_in_their_place_are_not_refused():
    for phase in "", TRAINING, DECODING:
        for direction in "both", "l2r", "r2l":
            refused(phase=phase, models=[transformer()], sb_direction=direction)
    refused(phase=TRAINING, sb_probe=5, sb_partner_noise=0.5)
    refused(phase=DECODING, sb_records="x", sb_rescore=1.0, sb_trace="x")
    refused(phase=DECODING, sb_partner_noise=0.0)  # asks for nothing


def test_options_of_one_call_take_the_place_of_the_tasks():
    with pytest.raises(ValueError, match="--sb-rescore needs --sb-direction both"):
        refused(Namespace(sb_rescore=0.5), sb_direction="l2r")
    refused(Namespace(sb_rescore=None, beam=3), sb_direction="l2r")


def test_an_option_needs_a_model_that_acts_on_it():
    values = {"nat_teacher": "x", "sb_direction": "l2r"}
    with pytest.raises(ValueError, match="--nat-teacher is for an enat_transformer"):
        refused(models=[transformer()], **values)
    refused(models=[transformer(), Namespace(writes_at_once=True)], **values)
    refused(**values)  # nobody knows the models as yet


def test_a_model_that_cannot_write_r2l_says_why():
    cfg, settings = task_config()(sb_direction="r2l"), Namespace(arch="x")
    check_model(cfg, transformer(), settings)
    for model, why in (enat_model(), "all words at once"), (two_way_model(), "left"):
        with pytest.raises(ValueError, match=f"r2l is not for x, which .*{why}: use"):
            check_model(cfg, model, settings)


def test_architectures_of_both_directions_are_named():
    settings = Namespace(arch="x")
    with pytest.raises(ValueError, match=r"an sb_transformer\* or abd_transf.* x"):
        check_model(task_config()(), Namespace(), settings)
    with pytest.raises(ValueError, match="l2r needs a one-directional --arch"):
        cfg = task_config()(sb_direction="l2r")
        check_model(cfg, Namespace(bidirectional=True), settings)


@pytest.mark.parametrize("family", ["sb_transformer_tiny", "transformer_tiny"])
@pytest.mark.parametrize(
    "shared", ["share_all_embeddings", "share_decoder_input_output_embed"]
)
def test_tied_embeddings_have_one_width(family, shared):
    direction = "both" if family.startswith("sb") else "l2r"
    cfg = task_config()(sb_direction=direction)
    settings = Namespace(arch=family, decoder_embed_dim=8, decoder_output_dim=6)
    model = Namespace(bidirectional=direction == "both")
    check_model(cfg, model, settings)
    tied = Namespace(**vars(settings), **{shared: True})
    with pytest.raises(ValueError, match=r"^--decoder-output-dim 6 is not for --share"):
        check_model(cfg, model, tied)
    tied.decoder_output_dim = "8"  # fairseq's parser leaves it a text
    check_model(cfg, model, tied)


def test_noise_that_needs_a_gpu_is_refused_without(monkeypatch):
    cfg = Namespace(sb_direction="l2r")
    settings = Namespace(arch="transformer", quant_noise_scalar=0.1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    check_model(cfg, transformer(), settings)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="--quant-noise-scalar must be 0 wi"):
        check_model(cfg, transformer(), settings)
