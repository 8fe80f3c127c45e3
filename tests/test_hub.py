"""The Python interface."""

import contextlib
import os
import re
from pathlib import Path

import pytest
import torch
from commands import lines, load, load_hub, run_generate
from fairseq.dataclass.configs import GenerationConfig
from helpers import abd_model, sb_model, source, streams

from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.hub import keywords


@pytest.fixture
def hub(data, trained):
    return load_hub(SBTransformerModel, trained, data)


def test_translate_gives_what_generate_gives(hub, data, trained):
    output = run_generate(data, trained)
    sources = [rows[0][0] for _, rows in sorted(lines(output, "S").items())]
    expected = [rows[0][1] for _, rows in sorted(lines(output, "H").items())]
    assert hub.translate(sources) == expected
    assert hub.translate(sources[::-1]) == expected[::-1]  # order is kept
    assert hub.translate(sources[3], beam=4) == expected[3]
    assert hub.translate(iter(sources[:2])) == hub.sample(sources[:2]) == expected[:2]


def test_empty_lists_and_strings_are_fine(hub):
    assert hub.translate([]) == []
    found = hub.translate(["w1 w2", "", "w3"])
    assert found == [hub.translate("w1 w2"), "", hub.translate("w3")]
    assert hub.translate([" ", ""], sb_rescore=1.0) == ["", ""]


def test_search_options_are_honoured_and_checked(hub):
    sources = ["w1 w2 w3", "w4 w5"]
    for direction in ("l2r", "r2l"):
        tokens = [hub.encode(text) for text in sources]
        for hypotheses in hub.generate(tokens, beam=4, sb_answer=direction):
            assert {h["direction"] for h in hypotheses} == {direction}
    with pytest.raises(ValueError, match=r"^sb_stop must be one of"):
        hub.translate(sources, sb_stop="never")
    with pytest.raises(ValueError, match=r"^beam must be ≥ 2"):
        hub.translate(sources, beam=1)
    with pytest.raises(ValueError, match="unknown options lenpenn, sb_answr"):
        hub.translate(sources, sb_answr="l2r", lenpenn=3)
    with pytest.raises(ValueError, match="must not contain"):
        hub.translate(["w1 <l2r>"])


def test_an_odd_beam_is_rounded_down_with_one_warning(hub, caplog):
    tokens = [hub.encode("w1 w2 w3")]
    (odd,), warned = hub.generate(tokens, beam=5), caplog.text.count("is odd")
    (even,) = hub.generate(tokens, beam=4)
    assert warned == 1 and len(odd) == 4
    assert [x["tokens"].tolist() for x in odd] == [x["tokens"].tolist() for x in even]


def test_alignments_and_prefixes_in_python(hub):
    tokens = [hub.encode("w1 w2 w3")]
    ((best, *_),) = hub.generate(tokens, print_alignment="hard")
    assert [pair[1] for pair in best["alignment"]] == list(
        range(len(best["tokens"]) - 1)
    )
    prefix = {"inference_step_args": {"prefix_tokens": best["tokens"][None, :1]}}
    ((bound, *_),) = hub.generate(tokens, **prefix)
    assert bound["tokens"][0] == best["tokens"][0]
    with pytest.raises(ValueError, match=r"^prefix_size binds the start"):
        hub.generate(tokens, sb_answer="r2l", **prefix)
    start = best["tokens"][:1]
    for other in start, start[None, :, None], start.repeat(2, 1):
        prefix["inference_step_args"]["prefix_tokens"] = other
        with pytest.raises(ValueError, match=r"prefix_tokens must .* \(1, any\), but"):
            hub.generate(tokens, **prefix)
    with pytest.raises(ValueError, match="is not supported by the SB-NMT search"):
        hub.generate(tokens, inference_step_args={"constraints": start[None]})


@pytest.mark.parametrize(
    "value", [3, None, ["w1", 3], {"w1": 1}, b"w1", {"w1"}], ids=repr
)
def test_sentences_are_texts(hub, value):
    with pytest.raises(ValueError, match="sentences must be a text or a list of"):
        hub.translate(value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": "x"}, "beam"),
        ({"print_alignment": "junk"}, "^print_alignment must be one of hard, soft"),
        ({"unnormalized": "no"}, "^unnormalized must be True or False, but is 'no'"),
        ({"beam": 2.5}, "beam"),
        ({"lenpen": "long"}, "lenpen"),
        ({"max_len_b": None}, "max_len_b"),
    ],
    ids=str,
)
def test_options_of_another_type_are_named(hub, options, message):
    with pytest.raises(ValueError, match=message):
        hub.translate(["w1"], **options)


ODD = {int: (-7, 2.5, 1), float: (float("nan"), "x", -1e9), bool: (True, "x")}


def refusals(hub):
    """Return what a caller is told of each option, of fairseq's and of ours."""
    found = {}
    for name, option in GenerationConfig.__dataclass_fields__.items():
        for value in ODD.get(option.type, ("junk", 7)):
            with contextlib.suppress(TypeError):  # sample() has an nbest of its own
                try:
                    hub.sample("w1 w2", **{"beam": 4, name: value})
                except ValueError as error:
                    found[name, value] = str(error)
    for name in "sb_pairing", "sb_length_penalty", "sb_stop", "sb_answer", "sb_rescore":
        with pytest.raises(ValueError) as refused:
            hub.sample("w1", 4, **{name: "junk"})
        found[name, "junk"] = str(refused.value)
    for call in hub.sample, hub.score:
        with pytest.raises(ValueError) as refused:
            call("w1 w2", beam=1)
        found[call.__name__, None] = str(refused.value)
    for length in 700, 2000:  # of the batch, and of the model
        with pytest.raises(ValueError) as refused:
            hub.cfg.dataset.max_tokens = 600 if length == 700 else 12000
            hub.translate(["w1", "w2 " * length])
        found["length", length] = str(refused.value)
    return found


def assert_in_words_of_the_call(told):
    for given, message in told.items():
        assert not re.search("--[a-z]", message), f"{given}: {message}"
    assert len(told) > 30


def test_messages_are_in_the_words_of_the_call(hub):
    told = refusals(hub)
    assert_in_words_of_the_call(told)
    assert told["sample", None].startswith("beam must be ≥ 2")
    assert told["score", None].startswith("score() is not supported: use the scores")
    for length, flag, remedy in (
        (700, "max_tokens", "raise max_tokens, or "),
        (2000, "max_source_positions", ""),
    ):
        has = f"by {flag}, but one has {length + 1}: {remedy}leave out what"
        assert has in told["length", length]
        assert told["length", length].endswith("leave out what is too long")


def test_the_check_of_words_can_fail(hub, monkeypatch):
    monkeypatch.setattr(re, "sub", lambda _, new, text: text)
    with pytest.raises(AssertionError, match="--beam must be"):
        assert_in_words_of_the_call({1: refusals(hub)["sample", None]})


def test_paths_and_other_words_stay_as_they_are():
    for text in "a--b", "/x/--y", "give -- two", "--- x":
        with pytest.raises(ValueError, match=f"^{text}$"), keywords():
            raise ValueError(text)
    with pytest.raises(FileNotFoundError, match=r"^sb_a, b: c_d$"), keywords():
        raise FileNotFoundError("--sb-a, --b: --c-d (--skip-invalid-size)")


def test_errors_without_flags_are_passed_on():
    with pytest.raises(UnicodeDecodeError), keywords():
        b"\xff".decode()
    with pytest.raises(FileNotFoundError) as caught, keywords():
        os.stat("/none/there")
    assert caught.value.filename == "/none/there"


def test_what_cannot_be_loaded_is_named(data, trained, teacher, tmp_path):
    def load(*names):
        SBTransformerModel.from_pretrained(*names)

    with pytest.raises(FileNotFoundError, match=r"model_name_or_path .*none does not"):
        load(tmp_path / "none", "model.pt", data)
    with pytest.raises(FileNotFoundError, match=r"data_name_or_path .*none does not"):
        load(trained.parent, trained.name, tmp_path / "none")
    with pytest.raises(
        ValueError, match=f"must be a folder.* as checkpoint_file, {trained.name}$"
    ):
        load(trained)
    with pytest.raises(FileNotFoundError, match=r"none.pt .* does not exist"):
        load(trained.parent, "none.pt", data)
    with pytest.raises(ValueError, match="trained with one sb_direction"):
        load(Path("/"), f"{trained}:{teacher}", data)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "nbest",
            3,
            "nbest is not supported by the Python API: .* fairseq-generate ta",
        ),
        ("beam", 8, "beam is not supported by the Python API: translate.., sample"),
        ("fp16", True, "fp16 is not supported by the Python API"),
        ("dropout", 0.5, "dropout is not supported by the Python API: nothing acts on"),
        ("sampling", True, "sampling is not supported by the Python API"),
        ("sb_partner_noise", 0.5, "unknown options sb_partner_noise"),
        ("moses_no_dash_split", True, "unknown options moses_no_dash_split: use"),
        ("bpe_codes", "codes", "unknown options bpe_codes"),
        ("bpe", "subword_nmt", "bpe subword_nmt needs bpe_codes: give it beside bpe"),
        ("bpe", "subwords", "^bpe must be one of byte_bpe, .*, but is 'subwords'"),
        ("tokenizer", "junk", "^tokenizer must be one of .*, but is 'junk'"),
    ],
)
def test_a_setting_that_does_nothing_is_refused_at_the_load(
    data, trained, name, value, message
):
    with pytest.raises(ValueError, match=message):
        load_hub(SBTransformerModel, trained, data, **{name: value})


@pytest.mark.parametrize("kind", ["characters", "bytes"])
def test_subwords_without_settings_are_a_choice(data, trained, kind):
    loaded = load_hub(SBTransformerModel, trained, data, bpe=kind)
    assert loaded.apply_bpe("ab c") == "a b \N{LOWER ONE EIGHTH BLOCK} c"


def test_a_setting_of_the_load_counts(data, trained, tmp_path):
    plain = load_hub(SBTransformerModel, trained, data)
    records = tmp_path / "records.jsonl"
    settings = {"max_len_a": 0, "max_len_b": 1, "sb_lambda": 0.0, "batch_size": 2}
    short = load_hub(
        SBTransformerModel, trained, data, sb_records=str(records), **settings
    )
    assert len(plain.translate("w1 w2 w3").split()) > 1
    assert len(short.translate("w1 w2 w3").split()) == 1
    assert len(records.read_text().splitlines()) == 1
    assert short.models[0].cfg.sb_lambda == 0


def test_a_setting_of_a_model_that_hydra_trained_counts(data, trained, tmp_path):
    state = load(trained)
    settings = dict(vars(state["cfg"]["model"]))
    del settings["arch"]
    state["cfg"]["model"] = {**settings, "_name": "sb_transformer"}
    torch.save(state, tmp_path / "model.pt")
    loaded = load_hub(SBTransformerModel, tmp_path / "model.pt", data, sb_lambda=0.0)
    assert loaded.models[0].cfg.sb_lambda == 0


def test_several_checkpoints_make_an_ensemble(data, trained):
    name = f"{trained.name}:{trained.name}"
    pair = SBTransformerModel.from_pretrained(str(trained.parent), name, str(data))
    assert len(pair.models) == 2
    assert len(pair.translate(["w1 w2"])) == 1


def test_another_generator_is_refused():
    from fairseq.sequence_generator import SequenceGenerator

    model = sb_model()
    generator = SequenceGenerator([model], model.decoder.dictionary, beam_size=4)
    with pytest.raises(ValueError, match="--task sb_translation"):
        generator.generate([model], {"net_input": source(model)})


@pytest.mark.parametrize("make", [sb_model, abd_model])
def test_one_stream_is_refused(make):
    model = make()
    with pytest.raises(ValueError, match="got 3 decoder rows for 3 sentences"):
        model(**source(model), prev_output_tokens=streams(model)[::2])


def test_a_training_does_not_choose_the_end_of_searches(data, trained, tmp_path):
    """A checkpoint has the options of its time, by which --eval-bleu searched."""
    own = {"sb_stop": "bound", "sb_answer": "r2l", "sb_length_penalty": "power"}
    own |= {"sb_pairing": "best", "sb_rescore": 1.0, "sb_rescore_best": 2}
    checkpoint = load(trained)
    bleu = {"eval_bleu": True, "eval_bleu_args": '{"sb_rescore_best": 2}'}
    checkpoint["cfg"]["task"] |= {**own, **bleu}
    torch.save(checkpoint, tmp_path / "model.pt")
    usual = dict(zip(own, ("horizon", "best", "gnmt", "rank", 0.0, 0)))
    for given in ({}, {"sb_stop": "first"}, own):
        hub = load_hub(SBTransformerModel, tmp_path / "model.pt", data, **given)
        assert {name: hub.task.cfg[name] for name in own} == {**usual, **given}
