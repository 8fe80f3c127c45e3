"""Refusal of what a user gives and nothing acts on: in Hydra's settings."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from contextlib import nullcontext

import pytest
from commands import hydra_words
from fairseq.dataclass.configs import FairseqConfig
from hydra.core.hydra_config import HydraConfig
from omegaconf import OmegaConf

from sbnmt_plugin.given_options import refuse_model_settings, refuse_set
from sbnmt_plugin.option_checks import check_settings


@pytest.fixture
def hydra(monkeypatch):
    monkeypatch.setattr(HydraConfig, "initialized", lambda: True)


def settings(**groups: dict) -> object:
    """Return all of fairseq's groups with their defaults, and these settings."""
    return OmegaConf.merge(
        OmegaConf.structured(FairseqConfig), OmegaConf.create(groups)
    )


@pytest.mark.parametrize(
    ("groups", "name"),
    [
        ({"dataset": {"num_shards": 2}}, "dataset.num_shards"),
        ({"dataset": {"gen_subset": "valid"}}, "dataset.gen_subset"),
        ({"generation": {"beam": 8}}, "generation.beam"),
        ({"common": {"tpu": True}}, "common.tpu"),
        ({"common_eval": {"path": "model.pt"}}, "common_eval.path"),
        ({"interactive": {"buffer_size": 3}}, "interactive.buffer_size"),
        ({"eval_lm": {"context_window": 3}}, "eval_lm.context_window"),
        ({"scoring": {"_name": "chrf"}}, "scoring"),
        ({"tokenizer": {"_name": "moses"}}, "tokenizer"),
        ({"bpe": {"_name": "characters"}}, "bpe"),
    ],
    ids=str,
)
def test_a_group_of_hydras_is_asked(hydra, groups, name):
    with pytest.raises(ValueError, match=f"^{name} is not supported by fairseq-hydra-"):
        refuse_set(settings(**groups))


def test_what_acts_in_hydra_is_taken(hydra):
    acting = {"seed": 3, "fp16": True, "suppress_crashes": True, "log_file": "log"}
    refuse_set(settings(common=acting, dataset={"max_tokens": 7}, scoring=None))
    refuse_set(None)


def test_a_command_line_is_its_parsers_business():
    refuse_set(settings(dataset={"num_shards": 2}))


@pytest.mark.parametrize("learned", [True, False])
def test_a_value_that_was_learned_is_not_set(learned):
    """It is what a training starts from; weights have taken its place."""
    model = Namespace(arch="sb_transformer_tiny", sb_learn_lambda=learned)
    groups = settings(common_eval={"model_overrides": "{'sb_lambda': 0}"})
    message = "sb_lambda of .* nothing with sb_learn_lambda, .*: set that to False"
    for ask in (
        lambda: refuse_model_settings(model, groups, True),
        lambda: check_settings({"sb_lambda"}, [vars(model)], {"sb_lambda": 0}),
    ):
        with pytest.raises(ValueError, match=message) if learned else nullcontext():
            ask()
    check_settings({"sb_lambda"}, [vars(model)], {"sb_learn_lambda": False})


@pytest.mark.parametrize(
    ("arch", "name"),
    [
        ("sb_transformer", "sb_future_dropout"),
        ("enat_transformer", "enat_align_weight"),
        ("enat_transformer", "enat_adversary_weight"),
    ],
)
def test_what_training_alone_reads_is_not_set_afterwards(arch, name):
    groups = settings(common_eval={"model_overrides": f"{{'{name}': 0.5}}"})
    with pytest.raises(ValueError, match=f"^{name} is not supported by --model-over"):
        refuse_model_settings(Namespace(arch=arch), groups, True)
    with pytest.raises(ValueError, match=f"^{name} is not supported by the Python API"):
        check_settings({name}, [{"arch": arch}], {name: 0.5})


def test_a_mistyped_setting_of_the_model_is_refused(hydra):
    model = {"_name": "sb_transformer", "sb_fusion": "tanh", "dropout": 0.3}
    refuse_model_settings(OmegaConf.create(model), None, False)
    wrong = OmegaConf.create({**model, "sb_fusoin": "tanh", "sb_learn_lamda": True})
    with pytest.raises(ValueError, match="unknown options sb_fusoin, sb_learn_lam"):
        refuse_model_settings(wrong, None, False)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("+model.sb_fusoin=linear", "unknown options sb_fusoin: use names of the opt"),
        (
            "dataset.num_shards=2",
            "dataset.num_shards is not supported by fairseq-h",
        ),
    ],
)
def test_fairseq_hydra_train_says_so(data, tmp_path, word, message):
    command = [sys.executable, *hydra_words(data, tmp_path, word)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert message in done.stderr, done.stderr[-3000:]
    assert not list(tmp_path.rglob("*.pt"))
