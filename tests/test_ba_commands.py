"""BA-NMT by fairseq's own commands, as users type them."""

import json

import pytest
import torch
from commands import BA, lines, load, run_generate, run_interactive, run_train
from conftest import SIZES
from helpers import rnn_model, source
from test_ba import target
from test_commands import best
from test_scripts import call

from sbnmt_plugin.network.rnnsearch import RNNSearchModel
from sbnmt_plugin.tools.commands import average

L2R = ["--sb-direction", "l2r", "--max-len-a", 1, "--max-len-b", 3]


@pytest.fixture(scope="module")
def ba(data, tmp_path_factory):
    """A BA-NMT model that has learned something."""
    save = tmp_path_factory.mktemp("ba")
    words = [*BA, "--max-epoch", 8, "--keep-last-epochs", 2]
    return run_train(data, save, *words)


@pytest.fixture(scope="module")
def output(data, ba):
    """What fairseq-generate prints, three hypotheses and alignments each."""
    return run_generate(data, ba, *L2R, "--nbest", 3, "--print-alignment", "hard")


def test_generate_writes_what_fairseq_writes(output):
    for kind in "STHDP":
        assert sorted(lines(output, kind)) == list(range(SIZES["test"]))
    for i, rows in lines(output, "H").items():
        assert len(rows) == 3
        values = [float(row[0]) for row in rows]
        assert values == sorted(values, reverse=True)
        for (_, text), (scores,) in zip(rows, lines(output, "P")[i]):
            assert len(scores.split()) == len(text.split()) + 1


def test_alignments_are_printed(output):
    for i, rows in lines(output, "A").items():
        words = len(lines(output, "S")[i][0][0].split())
        pairs = [tuple(map(int, pair.split("-"))) for pair in rows[0][0].split()]
        assert [place for _, place in pairs] == list(range(len(pairs)))
        assert len(pairs) == len(best(output)[i][1].split())
        assert all(place <= words for place, _ in pairs)  # or </s>


def test_batch_size_does_not_matter(data, ba):
    one, many = (
        best(run_generate(data, ba, *L2R, "--batch-size", size)) for size in (1, 32)
    )
    for i, (score, text) in one.items():
        assert text == many[i][1]
        assert float(score) == pytest.approx(float(many[i][0]), abs=1e-4)


def test_python_interactive_and_generate_translate_alike(data, ba, output):
    texts = [text for _, (_, text) in sorted(best(output).items())]
    sources = [rows[0][0] for _, rows in sorted(lines(output, "S").items())]
    hub = RNNSearchModel.from_pretrained(
        str(ba.parent), ba.name, str(data), num_workers=0
    )
    assert hub.translate(sources, max_len_a=1, max_len_b=3) == texts
    typed = best(run_interactive(data, ba, "\n".join([*sources, ""]), *L2R))
    assert [typed[i][1] for i in range(len(texts))] == texts


def test_an_ensemble_is_searched_together(data, ba, output, tmp_path):
    """With itself it is the model; an average of checkpoints is another."""
    twice = best(run_generate(data, f"{ba}:{ba}", *L2R))
    assert {i: row[1] for i, row in twice.items()} == {
        i: row[1] for i, row in best(output).items()
    }
    mean = tmp_path / "mean.pt"
    call(average, "--output", mean, "--last", 2, ba.parent)
    pair = best(run_generate(data, f"{ba}:{mean}", *L2R))
    assert pair != twice


def test_a_prefix_binds_and_records_are_written(data, ba, tmp_path):
    path = tmp_path / "records.jsonl"
    output = run_generate(data, ba, *L2R, "--prefix-size", 2, "--sb-records", path)
    for i, (_, text) in best(output).items():
        target = lines(output, "T")[i][0][0].split()
        assert text.split()[:2] == target[:2]
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert {record["winner"] for record in records} == {"l2r"}


def test_decoding_in_bfloat16_changes_little(data, ba, output):
    """Nine texts of ten, and scores within 0.1."""
    wide, narrow = best(output), best(run_generate(data, ba, *L2R, "--sb-bf16"))
    assert sum(wide[i][1] == narrow[i][1] for i in wide) >= 0.9 * len(wide)
    gaps = [abs(float(wide[i][0]) - float(narrow[i][0])) for i in wide]
    assert 0 < max(gaps) < 0.1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_trains_and_has_finite_scores(dtype):
    """What --fp16 and --bf16 do to a model."""
    model = rnn_model().to(dtype).train()
    logits, _ = model(**source(model), prev_output_tokens=target())
    assert logits.dtype == dtype
    logits.float().log_softmax(-1).sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_one_and_one_epochs_equal_two(data, tmp_path):
    words = [*BA, "--dropout", 0.2, "--update-freq", 2]
    whole = run_train(data, tmp_path / "two", *words, "--max-epoch", 2)
    run_train(data, tmp_path / "one", *words, "--max-epoch", 1)
    resumed = run_train(data, tmp_path / "one", *words, "--max-epoch", 2)
    left, right = load(whole)["model"], load(resumed)["model"]
    assert left.keys() == right.keys()
    assert all(left[name].equal(right[name]) for name in left)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "trained with --sb-direction l2r"),
        (["--sb-direction", "r2l"], "trained with --sb-direction l2r"),
        ([*L2R, "--sb-answer", "r2l"], "--sb-answer"),
        ([*L2R, "--sb-pairing", "best"], "--sb-pairing"),
        ([*L2R, "--sb-rescore", 1], "--sb-rescore"),
    ],
    ids=str,
)
def test_what_one_direction_cannot_do_is_refused(data, ba, options, message):
    with pytest.raises(ValueError, match=message):
        run_generate(data, ba, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sb-direction", "both"], "--sb-direction both needs an sb_transformer"),
        (["--sb-partner", "own"], "--sb-partner"),
        (["--sb-probe", 5], "--sb-probe"),
        (["--ba-history-size", 0], "--ba-history-size must be"),
    ],
    ids=str,
)
def test_what_training_cannot_do_is_refused(data, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run_train(data, tmp_path, *BA, *options, "--max-epoch", 1)


def test_fairseqs_own_task_is_refused(data, ba, tmp_path):
    with pytest.raises(Exception, match="sb_translation"):
        run_generate(data, ba, task=False)
    words = [*BA[:2], "--task", "translation", "--criterion", "cross_entropy"]
    with pytest.raises(ValueError, match="an rnnsearch needs the tags"):
        run_train(data, tmp_path, *words, "--max-epoch", 1)
