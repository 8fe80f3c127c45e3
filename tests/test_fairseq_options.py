"""Which of fairseq's options act on something, and the refusal of the others."""

from __future__ import annotations

import argparse
from argparse import Namespace
from dataclasses import fields

import pytest
import torch
from commands import PLUGIN, SB, load, run_generate, run_train
from fairseq import options
from fairseq.dataclass.configs import FairseqConfig
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from helpers import SIZES, fake_task, logits, streams

from sbnmt_plugin import fairseq_options
from sbnmt_plugin.config import task_config
from sbnmt_plugin.fairseq_options import (
    BINARISE,
    GENERATE,
    INTERACTIVE,
    LINES,
    PLACES,
    TRAIN,
    acts,
)
from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.given_options import command_of, refuse_typed
from sbnmt_plugin.task import SBTranslationTask
from sbnmt_plugin.task_options import KEY

PARSERS = {
    TRAIN: options.get_training_parser,
    GENERATE: options.get_generation_parser,
    INTERACTIVE: options.get_interactive_generation_parser,
    LINES: options.get_generation_parser,
    BINARISE: options.get_preprocessing_parser,
}


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the real parser of a command, as fairseq makes it for our task."""
    parser = PARSERS[command]()
    if command != BINARISE:
        SBTranslationTask.add_args(parser)
    if command in (LINES, BINARISE):
        refuse_typed(parser, command)
    return parser


def offered() -> set[str]:
    """Return the names of all options of all parsers that fairseq makes for us."""
    found: set[str] = set()
    for make in PARSERS.values():
        found |= {action.dest for action in make()._actions}
    parser = argparse.ArgumentParser(add_help=False)
    SBTranslationTask.add_args(parser)
    ARCH_MODEL_REGISTRY["transformer"].add_args(parser)
    REGISTRIES["criterion"]["registry"]["sb_label_smoothed_cross_entropy"].add_args(
        parser
    )
    return found | {action.dest for action in parser._actions}


def own() -> set[str]:
    """Return the names of our options, which say themselves where they act."""
    return {option.name for option in fields(task_config()) if KEY in option.metadata}


def unclassified(names: set[str]) -> set[str]:
    """Return those of which nobody has said where something acts on them."""
    return names - set(PLACES) - own()


def test_every_option_of_every_parser_is_classified_once():
    assert unclassified(offered()) == set()
    assert unclassified({*offered(), "brand_new"}) == {"brand_new"}  # the twin
    names = " ".join(fairseq_options.GROUPS.values()).split()
    assert len(names) == len(set(names))


def test_no_name_is_classified_that_no_parser_has():
    static = FairseqConfig.__dataclass_fields__.values()
    known = {
        name for x in static for name in getattr(x.type, "__dataclass_fields__", ())
    }
    assert set(PLACES) - offered() - known == set()


def typed(parser: argparse.ArgumentParser, name: str) -> list[str]:
    """Return words that give an option another value than its default."""
    (action,) = (x for x in parser._actions if x.dest == name)
    flag = action.option_strings[-1]
    if action.nargs == 0:
        return [flag]
    for value in ("7", "0.7", "word", "{'a': 1}"):
        try:
            if (action.type or str)(value) != action.default:
                return [flag, value]
        except (ValueError, TypeError):
            continue
    raise AssertionError(name)


@pytest.mark.parametrize("command", PARSERS)
def test_what_nothing_acts_on_is_refused_by_name(command):
    parser = parser_of(command)
    data = [] if command == BINARISE else ["data"]
    names = {x.dest for x in parser._actions if x.option_strings} & set(PLACES)
    refused = {name for name in names if not acts(name, command)}
    assert len(refused) >= 20
    for name in sorted(refused):
        flag, *value = typed(parser, name)
        with pytest.raises(ValueError, match=f"^{flag} is not supported by .*: .*; le"):
            parser.parse_known_args([*data, flag, *value])
    for name in sorted(names - refused - {"help"}):  # the twin
        if not next(x for x in parser._actions if x.dest == name).choices:
            parser.parse_known_args([*data, *typed(parser, name)])


def test_defaults_are_no_choice_of_the_user():
    parser = parser_of(LINES)
    args, _ = parser.parse_known_args(["data", "--distributed-world-size", "1"])
    assert args.distributed_world_size == 1


def test_efficient_half_precision_is_half_precision_in_decoding():
    for command in (GENERATE, INTERACTIVE):
        words = ["data", *PLUGIN, "--path", "model.pt"]
        assert not options.parse_args_and_arch(PARSERS[command](), words).fp16  # twin
        words.append("--memory-efficient-fp16")  # fairseq takes it for --fp16
        assert options.parse_args_and_arch(PARSERS[command](), words).fp16


def test_commands_are_told_apart():
    for command in (TRAIN, GENERATE, INTERACTIVE):
        assert command_of(PARSERS[command]()) == command
    parser = PARSERS[GENERATE]()
    parser.add_argument("--arch", default="wav2vec2")  # as fairseq-generate does
    assert command_of(parser) == GENERATE
    assert command_of(argparse.ArgumentParser()) == ""


def built(**given: object) -> tuple[str, torch.Tensor]:
    """Return how a model with these options is made, and what it computes."""
    torch.manual_seed(1)
    args = Namespace(**{**SIZES, "decoder_embed_dim": 8, **given})
    model = SBTransformerModel.build_model(args, fake_task())
    torch.manual_seed(1)
    return repr(model), logits(model.train(), streams(model))


MODEL = {
    "activation_fn": "gelu",
    "encoder_embed_dim": 16,
    "encoder_ffn_embed_dim": 12,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_normalize_before": True,
    "encoder_learned_pos": True,
    "decoder_embed_dim": 16,
    "decoder_ffn_embed_dim": 12,
    "decoder_layers": 3,
    "decoder_attention_heads": 4,
    "decoder_normalize_before": True,
    "decoder_learned_pos": True,
    "decoder_output_dim": 4,
    "share_decoder_input_output_embed": True,
    "share_all_embeddings": True,
    "no_token_positional_embeddings": True,
    "layernorm_embedding": True,
    "no_scale_embedding": True,
    "dropout": 0.5,
    "attention_dropout": 0.5,
    "activation_dropout": 0.5,
    "relu_dropout": 0.5,
    "encoder_layerdrop": 0.9,
    "decoder_layerdrop": 0.9,
}


@pytest.mark.parametrize("name", MODEL)
def test_an_option_of_the_model_changes_it(name):
    shown, output = built()
    assert built()[1].equal(output)  # the twin
    other, changed = built(**{name: MODEL[name]})
    assert other != shown or changed.shape != output.shape or not changed.equal(output)
    assert acts(name, TRAIN)


TRAINING = [
    ["--lr", 0.02],
    ["--clip-norm", 0.01],
    ["--update-freq", 2],
    ["--sentence-avg"],
    ["--label-smoothing", 0.4],
    ["--batch-size", 5],
    ["--max-tokens", 200],
    ["--required-batch-size-multiple", 3],
    ["--truncate-source", "--max-source-positions", 3],
    ["--seed", 2],
    ["--weight-decay", 0.3],
    ["--train-subset", "valid"],
    ["--skip-remainder-batch", "--update-freq", 7, "--max-epoch", 1],
]


SHORT = [*SB, "--max-update", 2, "--no-epoch-checkpoints", "--disable-validation"]


@pytest.fixture(scope="module")
def usual(data, tmp_path_factory):
    """Weights of a short training with nobody's options."""
    return load(run_train(data, tmp_path_factory.mktemp("usual"), *SHORT))["model"]


@pytest.mark.parametrize("words", TRAINING, ids=str)
def test_an_option_of_training_changes_what_is_learned(data, usual, tmp_path, words):
    other = load(run_train(data, tmp_path, *SHORT, *words))["model"]
    assert any(not value.equal(other[name]) for name, value in usual.items())


@pytest.mark.parametrize("name", ["encoder-layers", "decoder-layers"])
def test_layers_are_not_chosen_by_a_list_that_fairseq_cannot_read(tmp_path, name):
    refused = rf"--{name}-to-keep is not supported by fairseq-train: .*--{name} inst"
    with pytest.raises(ValueError, match=refused):
        run_train(tmp_path, tmp_path, *SB, f"--{name}-to-keep", "0")


DECODING = [
    ["--beam", 2],
    ["--lenpen", 3],
    ["--unnormalized"],
    ["--max-len-b", 2],
    ["--max-len-a", 0.5, "--max-len-b", 0],
    ["--min-len", 6],
    ["--no-repeat-ngram-size", 1],
    ["--nbest", 2],
    ["--print-alignment"],
    ["--prefix-size", 1],
    ["--quiet"],
    ["--remove-bpe", "sentencepiece"],
    ["--scoring", "chrf"],
    ["--gen-subset", "valid"],
    ["--batch-size", 1],
    ["--model-overrides", "{'sb_lambda': 0.0}"],
    ["--sb-length-penalty", "power"],
    ["--sb-pairing", "best"],
    ["--sb-stop", "first"],
    ["--sb-answer", "r2l"],
    ["--sb-rescore", 1],
]


@pytest.fixture(scope="module")
def printed(data, trained):
    """What is printed with nobody's options."""
    return run_generate(data, trained)


@pytest.mark.parametrize("words", DECODING, ids=str)
def test_an_option_of_decoding_changes_what_is_printed(data, trained, printed, words):
    assert run_generate(data, trained, *words) != printed


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "{'sb_lamda': 0.0}",
            "--model-overrides has unknown options sb_lamda: use",
        ),
        ("{'lenpen': 0.6}", "--model-overrides has unknown options lenpen"),
        ("{'dropout': 0.6}", "dropout is not supported by --model-overrides: nothing"),
        ("{'dropout':", "--model-overrides must be a dictionary of options"),
        ("{1: 0.6}", "--model-overrides must be a dictionary of options"),
        ("sb_lambda=0", "--model-overrides must be a dictionary of options"),
        ("[]", "--model-overrides must be a dictionary of options"),
        (
            "{'sb_lambda': 'a'}",
            "sb_lambda of --model-overrides must be a number, but",
        ),
        (
            "{'max_source_positions': 3.5}",
            "max_source_positions of .* must be a whole number, but is 3.5",
        ),
    ],
)
def test_overrides_that_do_nothing_are_refused(data, trained, given, message):
    with pytest.raises(ValueError, match=message):
        run_generate(data, trained, "--model-overrides", given)
