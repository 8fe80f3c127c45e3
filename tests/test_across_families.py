"""Commands of all families, and what some of these are not for."""

from types import SimpleNamespace

import pytest
import torch
from commands import ABD, BA, SB, TWO_WAY, best, load, run_generate, run_train
from helpers import enat_model, rnn_model, two_way_model
from steps import call

from sbnmt_plugin.families.two_way.model import transpose_weights
from sbnmt_plugin.option_checks import check_average
from sbnmt_plugin.tools.commands import average, rerank
from sbnmt_plugin.tools.translator import refuse_at_once

ONE = ["--max-epoch", 1, "--no-epoch-checkpoints"]


@pytest.mark.parametrize("words", [SB, ABD], ids=str)
def test_fairseqs_moving_average_is_refused_where_it_would_be_wrong(
    data, tmp_path, words
):
    with pytest.raises(ValueError, match=r"--store-ema .* leave out \S*sb_version"):
        run_train(data, tmp_path, *words, *ONE, "--store-ema")


def test_counters_have_no_moving_average():
    asked = SimpleNamespace(sb_store_ema=True)
    with pytest.raises(ValueError, match=r"a ENAT\w+, .* would multiply by its decay"):
        check_average(asked, enat_model())
    check_average(asked, rnn_model())


@pytest.mark.parametrize(
    "words", [["--arch", "transformer_tiny", "--sb-direction", "l2r"], BA], ids=str
)
def test_others_have_a_moving_average(data, tmp_path, words):
    path = run_train(data, tmp_path, *words, *ONE, "--store-ema")
    assert "ema" in load(path)["extra_state"]


@pytest.mark.parametrize("make", [rnn_model, two_way_model])
def test_encodings_are_copied_as_the_sentences_would_be(make):
    model = make()
    source = torch.tensor([[4, 5, 6, 2], [1, 7, 8, 2], [5, 2, 1, 1]])
    order = torch.tensor([2, 0, 0, 1, 2])
    found = model.encoder.reorder_encoder_out(model.encoder(source), order)
    expected = model.encoder(source[order])
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        for one, other in zip(found[name], values, strict=True):
            torch.testing.assert_close(one, other)


def test_recurrent_teachers_rerank_each_other(data, tmp_path):
    """One of them may be a Transformer."""
    recurrent = run_train(data, tmp_path / "ba", *BA, "--max-epoch", 2)
    other = ["--arch", "transformer_tiny", "--sb-direction", "r2l", "--max-epoch", 2]
    paths = recurrent, run_train(data, tmp_path / "r2l", *other)
    source, output = data.parent / "texts" / "test.en", tmp_path / "out.tsv"
    call(
        *(rerank, data, "--l2r", paths[0], "--r2l", paths[1], "--cpu", "--beam", 3),
        *("--max-len-b", 12, "--input", source, "--output", output),
    )
    proposals = [
        best(run_generate(data, path, "--sb-direction", d, "--max-len-b", 12))
        for path, d in zip(paths, ("l2r", "r2l"))
    ]
    rows = [line.split("\t") for line in output.read_text().splitlines()]
    assert len(rows) == len(proposals[0])
    assert {text for _, _, text in rows} & {text for _, text in proposals[0].values()}


def test_who_writes_all_words_at_once_is_told_apart():
    with pytest.raises(ValueError, match=r"--path must be .* but a ENATModel writes"):
        refuse_at_once(enat_model(), "--path")
    for model in rnn_model(), two_way_model():
        refuse_at_once(model, "--path")


def test_models_of_other_kinds_have_no_mean(data, tmp_path):
    words = [*TWO_WAY, "--max-source-positions", 20, *ONE]
    paths = [run_train(data, tmp_path / "ahead", *words)]
    state = load(paths[0])
    state["cfg"]["model"].two_way_languages = ["de", "en"]
    paths.append(tmp_path / "back.pt")
    torch.save(state, paths[1])
    with pytest.raises(ValueError, match="average checkpoints of one training"):
        call(average, "--output", tmp_path / "mean.pt", *paths)
    call(average, "--output", tmp_path / "mean.pt", paths[0], paths[0])


def test_a_model_is_turned_round_once():
    model = two_way_model()
    turned = {name: value.clone() for name, value in model.state_dict().items()}
    transpose_weights(turned)
    model.exchanged = True
    model.load_state_dict(turned)
    own = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(model.state_dict())
    for name, value in model.state_dict().items():
        assert value.equal(own[name]), name
