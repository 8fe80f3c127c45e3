"""A checkpoint of 0.1.0 loads, and translates as it did there."""

import json
from pathlib import Path

import commands
import pytest
import torch

from sbnmt_plugin.model import SBTransformerModel

OLD = Path(__file__).parent / "data" / "checkpoint-0.1.0"  # see make.py there
TEXT = (OLD / "input.en").read_text()
EXPECTED = json.loads((OLD / "expected.json").read_text())


def translate(path):
    output = commands.run_interactive(OLD, path, TEXT, *LANGUAGES, *EXPECTED["options"])
    found = commands.lines(output, "H")
    return {str(index): hypotheses for index, hypotheses in found.items()}


LANGUAGES = ["--source-lang", "en", "--target-lang", "de"]


def assert_translates_as_before(path):
    found = translate(path)
    assert found.keys() == EXPECTED["hypotheses"].keys()
    blank = str(TEXT.split("\n").index(""))  # for which words were made up
    assert {text for _, text in found[blank]} == {""}
    for index, hypotheses in EXPECTED["hypotheses"].items():
        if index == blank:
            continue
        for (old_score, old_text), (score, text) in zip(hypotheses, found[index]):
            assert text == old_text
            assert float(score) == pytest.approx(float(old_score), abs=1e-4)


def test_a_checkpoint_of_0_1_0_translates_as_it_did():
    assert len(EXPECTED["hypotheses"]) == 5
    assert_translates_as_before(OLD / "model.pt")


def test_the_check_of_the_old_checkpoint_can_fail(tmp_path):
    state = torch.load(OLD / "model.pt", weights_only=True)
    state["model"]["decoder.layers.1.self_attn.v_proj.weight"] *= -1
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(AssertionError):
        assert_translates_as_before(tmp_path / "model.pt")


def test_a_checkpoint_of_0_1_0_has_the_python_interface():
    hub = SBTransformerModel.from_pretrained(
        str(OLD), "model.pt", str(OLD), source_lang="en", target_lang="de"
    )
    (answer,) = hub.translate(["w1 w2 w3"], lenpen=0.6)
    assert answer == EXPECTED["hypotheses"]["0"][0][1]
