"""fairseq's commands, the package's and a whole recipe on a GPU that is pretended.

``fairseq-train`` and all that follows are run to their ends without ``--cpu``
(:func:`pretended.gpu`): what they find is what they find on the CPU.
"""

import json
import re
from contextlib import nullcontext

import in_process
import pretended
import pytest
import torch
import yaml
from commands import (
    ABD,
    BA,
    SB,
    TWO_WAY,
    load,
    run_generate,
    run_interactive,
    run_train,
)
from fairseq.data import Dictionary
from pretended import Device, gpu
from steps import call

from sbnmt_plugin.task_data import Words
from sbnmt_plugin.tools import reranking
from sbnmt_plugin.tools.commands import recipe
from sbnmt_plugin.tools.recipes import runner

pytestmark = pretended.needed
# (a dropout draws in the order of memory, which the two devices do not share)
SB = [*SB, "--sb-future-dropout", 0]
BRIEF = ["--no-epoch-checkpoints", "--log-interval", 1, "--max-epoch"]
BLEU = ["--eval-bleu", "--eval-bleu-args", '{"beam": 4, "max_len_b": 8}']
TRAININGS = {
    "sb": [*SB, "--sb-lambda", 1, "--sb-probe", 2, *BLEU],
    "noise": [*SB, "--sb-partner-noise", 0.5, "--sb-future-shift"],
    "abd": ABD,
    "ba": BA,
    "two-way": TWO_WAY,
}
GOLD = ("noise", "ba", "two-way")  # of no triples
NARROW = ("--fp16", "--amp", "--memory-efficient-fp16")


def parameters(path):
    return load(path)["model"]


def assert_trains_the_same(name, data, folder):
    # with Adam's own ε the sign of a gradient of rounding alone would move a weight
    words = [*TRAININGS[name], *BRIEF, 1, "--max-update", 2, "--adam-eps", 1e-4]
    expected = parameters(run_train(data, folder / "cpu", *words))
    with gpu():
        path = run_train(data, folder / "gpu", *words, cpu=False)
    found = parameters(path)
    assert found.keys() == expected.keys()
    for key, x in expected.items():
        assert type(found[key]) is torch.Tensor, key  # a CPU can load it
        # an update moves a weight by 0.01; keys' biases have a gradient of noise alone
        tolerance = 0.03 if key.endswith("k_proj.bias") else 1e-3
        torch.testing.assert_close(found[key], x, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_there_gives_the_same_model(name, data, gold_data, tmp_path):
    assert_trains_the_same(name, gold_data if name in GOLD else data, tmp_path)


# Adam's ε is as large as gradients are: what is divided twice moves less
UNSCALED = [*SB, *BRIEF, 1, "--max-update", 2, "--adam-eps", 1e-3, "--clip-norm", 0]


@pytest.fixture(scope="module")
def plain(data, tmp_path_factory):
    """What a training there gives whose loss is not scaled."""
    with gpu():
        path = run_train(data, tmp_path_factory.mktemp("plain"), *UNSCALED, cpu=False)
    return parameters(path)


def test_amp_unscales_gradients_once(data, plain, tmp_path):
    """The pretended device's autocast narrows nothing: scaling is all it does."""
    amp = ["--amp", "--fp16-init-scale", 2**14]
    with gpu():
        scaled = run_train(data, tmp_path / "amp", *UNSCALED, *amp, cpu=False)
    found = parameters(scaled)
    for key, x in plain.items():
        torch.testing.assert_close(found[key], x, rtol=0, atol=1e-3)


def test_the_check_of_scaling_can_fail(data, plain, tmp_path, monkeypatch):
    """fairseq's own step."""
    monkeypatch.setattr("sbnmt_plugin.task.take_step", lambda its: its.step())
    with pytest.raises(AssertionError):
        test_amp_unscales_gradients_once(data, plain, tmp_path)


@pytest.mark.parametrize("numbers", NARROW)
def test_a_training_there_learns_in_narrow_numbers(
    numbers, gold_data, tmp_path, caplog
):
    caplog.set_level("INFO")
    words = [*TRAININGS["noise"], *BRIEF, 2, "--max-tokens", 2000, numbers]
    with gpu():
        run_train(gold_data, tmp_path, *words, cpu=False)
    losses = [float(x) for x in re.findall(r"epoch \d+ \| loss ([\d.]+)", caplog.text)]
    assert len(losses) == 2 and losses[-1] < losses[0]


def answers(output):
    """Texts of all hypotheses by the names of their lines, and their scores."""
    lines = [line.split("\t") for line in output.splitlines() if line[:2] == "H-"]
    assert lines
    return [(name, text) for name, _, text in lines], [float(x) for _, x, _ in lines]


def assert_same_answers(ours, theirs):
    (texts, scores), (expected, others) = answers(ours), answers(theirs)
    assert texts == expected
    assert scores == pytest.approx(others, abs=1e-3)


SEARCHES = {
    "rescored": ["--sb-rescore", 1, "--sb-records", "records"],
    "n-best": ["--nbest", 4, "--beam", 8],
    "prefix": ["--prefix-size", 1],
}


@pytest.mark.parametrize("name", SEARCHES)
def test_fairseq_generate_gives_the_same_there(name, data, trained, tmp_path):
    texts = []
    for cpu in (True, False):
        words = [tmp_path / str(cpu) if x == "records" else x for x in SEARCHES[name]]
        with nullcontext() if cpu else gpu():
            texts.append(run_generate(data, trained, *words, cpu=cpu))
    assert_same_answers(*texts)
    if name == "rescored":
        both = [(tmp_path / str(cpu)).read_text().count("\n") for cpu in (True, False)]
        assert both[0] == both[1] > 1


def test_fairseq_interactive_gives_the_same_there(data, trained):
    text = "w1 w2 w3\nw4\n"
    expected = run_interactive(data, trained, text)
    with gpu():
        assert_same_answers(run_interactive(data, trained, text, cpu=False), expected)


def waits_of_a_sentence(data, trained, folder, *words):
    """How often fairseq-generate waits for the device for a sentence more."""
    found = []
    for subset in ("test", "train"):
        own = [folder / subset if word == "records" else word for word in words]
        own += ["--gen-subset", subset, "--batch-size", 1000]
        with gpu() as device:
            output = run_generate(data, trained, *own, cpu=False)
        found.append((len(answers(output)[0]), len(device.synchronisations)))
    (few, fewer), (many, more) = found
    assert many > 10 * few
    return (more - fewer) / (many - few)


def test_fairseq_generate_hardly_waits_for_a_sentence(data, trained, tmp_path):
    """Of its own for both texts' padding, for the source, for the target."""
    assert waits_of_a_sentence(data, trained, tmp_path, *SEARCHES["rescored"]) < 5


def test_reranking_does_not_wait_for_a_sentence(data, tmp_path):
    """Nor for a candidate, of which more sentences have more."""
    words = ["--arch", "transformer_tiny", "--max-update", 1, "--sb-direction"]
    paths = [run_train(data, tmp_path / d, *words, d) for d in ("l2r", "r2l")]
    source = (data.parent / "texts" / "train.en").read_text().splitlines()
    joined, waits = [], []
    for count in (5, 50):
        lines = [max(source, key=len)] * count  # as many steps
        options = [str(data), "--beam", "4", "--max-tokens", "9999", "--max-len-b", "8"]
        with gpu() as device:
            teachers = reranking.Reranker(options, *map(str, paths))
            device.synchronisations.clear()
            joined.append(len(teachers.translate(lines)[0]))
            waits.append(len(device.synchronisations))
    assert joined == [5, 50]
    assert waits[0] == waits[1] > 0


def test_the_check_of_waits_can_fail(data, trained, tmp_path, monkeypatch):
    monkeypatch.setattr(Words, "string", Dictionary.string)
    assert waits_of_a_sentence(data, trained, tmp_path) > 15


ROWS = ["rerank", "sb-shift"]


def test_a_whole_recipe_runs_there_in_fp16(tmp_path, monkeypatch):
    """Teachers, pseudo targets, triples, a model, reranking, probes, table."""
    steps = []

    def run(self, step):
        steps.append(step.words)
        with Device():  # in the thread of this row
            in_process.run(self, step)

    monkeypatch.setattr(runner.Runner, "run", run)
    folder = in_process.write_recipe(tmp_path / "recipe", rows=ROWS)
    settings = yaml.safe_load((folder / "recipe.yaml").read_text())
    del settings["train"]["--cpu"]
    settings["train"] |= {"--fp16": None, "--encoder-layers": 1, "--decoder-layers": 1}
    settings["sb_train"]["--sb-probe"] = 1
    (folder / "recipe.yaml").write_text(yaml.safe_dump(settings))
    with gpu():
        call(recipe, folder, "--work", tmp_path / "work", "--rows", *ROWS)
    table = json.loads((tmp_path / "work" / "table.json").read_text())
    assert {row["name"] for row in table["rows"]} == set(ROWS)
    assert all("tokenised BLEU" in row for row in table["rows"])
    assert sum("--fp16" in words for words in steps) > 5
    assert any("probe-reading" in words for words in steps)
    assert not any("--cpu" in words for words in steps)
