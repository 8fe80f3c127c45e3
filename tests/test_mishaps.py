"""A training that meets NaN, a batch too large for the memory, a damaged record."""

import logging

import numpy as np
import pytest
import torch
from commands import SB, changeable, load, run_train
from fairseq import checkpoint_utils
from steps import call

from sbnmt_plugin.task import SBTranslationTask
from sbnmt_plugin.tools.commands import average
from sbnmt_plugin.tools.recipes import costs
from sbnmt_plugin.tools.results.table import main_table
from sbnmt_plugin.training.criterion import SBLabelSmoothedCrossEntropy

THIRD = 3  # the batch to which it happens


def no_number(result):
    return (result[0] * float("nan"), *result[1:])


def no_memory(result):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def happening(monkeypatch, mishap):
    """Let something happen to the loss of one batch of the training."""
    forward, batches = SBLabelSmoothedCrossEntropy.forward, []

    def forward_or_not(self, model, sample, *args, **options):
        result = forward(self, model, sample, *args, **options)
        batches.append(model.training)
        return mishap(result) if sum(batches) == THIRD else result

    monkeypatch.setattr(SBLabelSmoothedCrossEntropy, "forward", forward_or_not)
    return batches


def train(data, folder, *words):
    return run_train(data, folder, *SB, "--max-epoch", 1, *words)


def test_a_training_of_no_line_is_refused(data, tmp_path):
    short = "--max-source-positions", 1, "--skip-invalid-size-inputs-valid-test"
    with pytest.raises(ValueError, match="at least one example that fits into a batch"):
        train(data, tmp_path / "save", *short)


LEFT = {"crash.pt", ".lock"}  # in the folder of a training that was ended


def test_a_gradient_that_is_no_number_ends_the_training(data, tmp_path, monkeypatch):
    batches = happening(monkeypatch, no_number)
    with pytest.raises(FloatingPointError, match="gradients of a batch must be"):
        train(data, tmp_path / "save")
    assert THIRD <= len(batches) <= THIRD + 1  # fairseq looks for the reason, once
    # what it keeps to be looked at is not taken for a result
    assert {path.name for path in (tmp_path / "save").iterdir()} == LEFT
    with pytest.raises((ValueError, FileNotFoundError), match="save"):
        call(average, "--last", 1, "--output", tmp_path / "model.pt", tmp_path / "save")


@pytest.fixture
def log(tmp_path):
    """All that is logged, in a file, as the driver of a recipe keeps it."""
    path = tmp_path / "log"
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s | %(message)s"))
    logging.getLogger().addHandler(handler)
    yield path
    logging.getLogger().removeHandler(handler)


@pytest.mark.parametrize("happens", [True, False])
def test_a_batch_that_was_left_out_is_in_the_table(
    happens, data, tmp_path, log, monkeypatch
):
    """fairseq goes on without it, and the table says so."""
    batches = happening(monkeypatch, no_memory if happens else lambda result: result)
    path = train(data, tmp_path / "save", "--disable-validation")
    history = load(path)["optimizer_history"]
    assert history[-1]["num_updates"] == len(batches) - happens
    cost = costs.step_cost(log)
    assert cost.get(costs.LEFT_OUT, 0) == happens
    table = "\n".join(main_table({"rows": [{"name": "sb", "title": "SB", **cost}]}))
    assert ("batches left out" in table) == happens


def test_batches_left_out_are_counted_in_every_way(tmp_path):
    log = tmp_path / "log"
    log.write_text(
        "x | WARNING | fairseq.trainer | attempting to recover from OOM in "
        "forward/backward pass\n"
        "x | INFO | fairseq.trainer | AMP: skipping this batch.\n"
        "x | NOTE: gradient overflow detected, ignoring gradient, setting loss scale\n"
    )
    assert costs.step_cost(log)[costs.LEFT_OUT] == 2


@pytest.mark.parametrize("kept", [False, True])
def test_a_training_is_not_measured_by_another_of_its_process(
    kept, data, tmp_path, monkeypatch
):
    """As with --multirun: the best checkpoint is the best of this training."""
    best = vars(checkpoint_utils.save_checkpoint)
    monkeypatch.setitem(best, "best", 0.0)  # no loss is better
    if kept:  # fairseq's own way, the twin
        build = SBTranslationTask.build_model

        def keeping(self, *args, **options):
            model = build(self, *args, **options)
            best["best"] = 0.0
            return model

        monkeypatch.setattr(SBTranslationTask, "build_model", keeping)
    train(data, tmp_path / "save")
    assert (tmp_path / "save" / "checkpoint_best.pt").exists() != kept


def test_a_record_of_unknown_words_ends_the_training(data, tmp_path):
    folder = changeable(data, tmp_path / "bin")
    path = folder / "train.en-de.de.bin"
    tokens = np.fromfile(path, np.uint16)
    tokens[len(tokens) // 2] = 60_000
    tokens.tofile(path)
    with pytest.raises(IndexError):
        train(folder, tmp_path / "save")
    assert {path.name for path in (tmp_path / "save").iterdir()} == LEFT
