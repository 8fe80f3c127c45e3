"""sbnmt probe-reading: how much a model reads from the other stream."""

import json
import math

import pytest
import torch
from steps import call

from sbnmt_plugin.tools import probes, reranking
from sbnmt_plugin.tools.commands import probe_reading
from sbnmt_plugin.training.criterion import SBLabelSmoothedCrossEntropy


def test_halves_leave_padding_out():
    label = torch.tensor([[5, 6, 7, 2, 1], [5, 2, 1, 1, 1]])
    first, second = probes.halves(label, pad=1)
    assert first.int().tolist() == [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    assert second.int().tolist() == [[0, 0, 1, 1, 0], [0, 1, 0, 0, 0]]


def test_the_probe_measures_what_the_criterion_does(data, trained, tmp_path, capsys):
    out = tmp_path / "reading.json"
    call(probe_reading, data, "--path", trained, "--cpu", "--json", out)
    found = json.loads(out.read_text())
    assert "bits a token, partners shuffled" in capsys.readouterr().out
    translator = reranking.Translator([str(data), "--path", str(trained), "--cpu"])
    loss, words = 0.0, [0, 0]
    criterion = SBLabelSmoothedCrossEntropy(translator.task, False, 0.1)
    for batch in probes.gold_batches(translator, "valid"):
        batch["target"] = batch["stream_target"]  # as in training
        _, _, logged = criterion.forward(translator.models[0], batch)
        loss += float(logged["nll_loss"])
        for half, mask in enumerate(probes.halves(batch["stream_target"], 1)):
            words[half] += int(mask.sum())
    bits = found["as trained"].values()
    mean = sum(b * n for b, n in zip(bits, words)) / sum(words)
    assert mean == pytest.approx(loss / sum(words) / math.log(2), abs=2e-3)
    assert found["partners shuffled"] != found["as trained"]


def test_a_teacher_reads_nothing_across(data, teacher):
    with pytest.raises(ValueError, match="--path must be one sb_transformer"):
        call(probe_reading, data, "--path", teacher, "--sb-direction", "r2l", "--cpu")
