"""Families that write one direction, by fairseq's own commands, as users type them."""

import json
from argparse import Namespace

import pytest
from commands import (
    BA,
    L2R,
    SIZES,
    TWO_WAY,
    assert_all_translate_alike,
    assert_batch_size_does_not_matter,
    assert_prints_three_hypotheses,
    assert_two_halves_are_the_whole,
    best,
    lines,
    load_hub,
    run_generate,
    run_train,
)
from steps import call

from sbnmt_plugin.families.ba.model import RNNSearchModel
from sbnmt_plugin.families.enat.model import ENATModel
from sbnmt_plugin.families.two_way.model import TwoWayModel
from sbnmt_plugin.tools.commands import average

ENAT = [
    *["--arch", "enat_transformer_tiny", "--sb-direction", "l2r"],
    *["--criterion", "enat_cross_entropy", "--enat-input", "map"],
    *["--share-all-embeddings", "--decoder-embed-dim", "32"],
]
FAMILIES = {
    "ba_nmt": Namespace(words=BA, kind=RNNSearchModel),
    "two_way": Namespace(words=TWO_WAY, kind=TwoWayModel),
    "enat": Namespace(words=ENAT, kind=ENATModel),
}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request):
    return FAMILIES[request.param]


@pytest.fixture(scope="module")
def model(family, gold_data, tmp_path_factory):
    """A model of the family that has learned something."""
    words = [*family.words, "--max-epoch", 8, "--keep-last-epochs", 2]
    return run_train(gold_data, tmp_path_factory.mktemp("model"), *words)


@pytest.fixture(scope="module")
def output(gold_data, model):
    """What fairseq-generate prints, three hypotheses each."""
    return run_generate(gold_data, model, *L2R, "--nbest", 3)


def test_generate_writes_what_fairseq_writes(output):
    assert_prints_three_hypotheses(output)


def test_batch_size_does_not_matter(gold_data, model):
    assert_batch_size_does_not_matter(gold_data, model, *L2R)


def test_python_interactive_and_generate_translate_alike(family, gold_data, model):
    hub = load_hub(family.kind, model, gold_data)
    assert_all_translate_alike(gold_data, model, hub, L2R, max_len_a=1, max_len_b=3)


def test_an_ensemble_is_searched_together(family, gold_data, model, output, tmp_path):
    """With itself it is the model; an average of checkpoints is another."""
    mean = tmp_path / "mean.pt"
    call(average, "--output", mean, "--last", 2, model.parent)
    assert len(best(run_generate(gold_data, mean, *L2R))) == SIZES["test"]
    if family.kind is ENATModel:
        pytest.skip("which refuses an ensemble")
    twice = best(run_generate(gold_data, f"{model}:{model}", *L2R))
    assert {i: row[1] for i, row in twice.items()} == {
        i: row[1] for i, row in best(output).items()
    }
    assert best(run_generate(gold_data, f"{model}:{mean}", *L2R)) != twice


def test_a_prefix_binds_and_records_are_written(family, gold_data, model, tmp_path):
    path = tmp_path / "records.jsonl"
    prefix = [] if family.kind is ENATModel else ["--prefix-size", 2]  # ENAT refuses
    output = run_generate(gold_data, model, *L2R, *prefix, "--sb-records", path)
    for i, (_, text) in best(output).items() if prefix else ():
        reference = lines(output, "T")[i][0][0].split()
        assert text.split()[:2] == reference[:2]
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert {record["winner"] for record in records} == {"l2r"}
    assert all(record["r2l"] is None for record in records)


@pytest.mark.parametrize("flag", ["--sb-bf16", "--sb-int8"])
def test_decoding_in_narrow_numbers_changes_little(
    family, gold_data, model, output, flag
):
    """Nine texts of ten, and their scores within 0.1; ENAT may choose other lengths."""
    share, gap = (0.8, 0.2) if family.kind is ENATModel else (0.9, 0.1)
    wide, narrow = best(output), best(run_generate(gold_data, model, *L2R, flag))
    same = [i for i in wide if wide[i][1] == narrow[i][1]]
    assert len(same) >= share * len(wide)
    gaps = [abs(float(wide[i][0]) - float(narrow[i][0])) for i in same]
    assert 0 < max(gaps) < gap


def test_one_and_one_epochs_equal_two(family, gold_data, tmp_path):
    assert_two_halves_are_the_whole(gold_data, tmp_path, *family.words)


def test_another_direction_is_refused(gold_data, model):
    for words in [], ["--sb-direction", "r2l"]:
        with pytest.raises(ValueError, match="trained with --sb-direction l2r"):
            run_generate(gold_data, model, *words)


def test_fairseqs_own_task_is_refused(gold_data, model):
    with pytest.raises(Exception, match="sb_translation"):
        run_generate(gold_data, model, task=False)
