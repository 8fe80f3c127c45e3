"""What a training is refused for before its first update, and what it is warned of."""

import logging

import pytest
from commands import SB, TWO_WAY, load, run_train
from fairseq.logging import metrics

from sbnmt_plugin.training import validation
from sbnmt_plugin.training.criterion import SBLabelSmoothedCrossEntropy

ONE = ["--max-update", 1, "--no-epoch-checkpoints"]
SHORT = '{"beam": 2, "max_len_a": 0, "max_len_b": 2}'
BLEU = ["--eval-bleu", "--eval-bleu-args", SHORT]


@pytest.mark.parametrize("words", [["--fp16"], ["--bf16"], ["--memory-efficient-fp16"]])
def test_half_precision_wants_a_device_that_has_it(data, tmp_path, words):
    with pytest.raises(
        ValueError, match=r"--(fp|bf)16 needs a .* leave it out, or train"
    ):
        run_train(data, tmp_path / "save", *SB, *ONE, *words)


def test_a_probe_wants_text_to_validate_on(data, tmp_path):
    words = [*SB, *ONE, "--sb-probe", 1, "--disable-validation"]
    with pytest.raises(ValueError, match="--sb-probe reads validation text, of which"):
        run_train(data, tmp_path / "save", *words)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("1 7\n", "line 1, must be the number of words and --decoder-embed-dim"),
        ("a 0.5 0.5\n", r"must be .*, but is 'a 0.5 0.5': write it there, or"),
        (None, "does not exist"),
    ],
)
def test_embeddings_of_another_width_are_refused(data, tmp_path, first, message):
    path = tmp_path / "embeddings"
    if first is not None:
        path.write_text(f"{first}b 0.5 0.5\n", encoding="utf-8")
    given = ["--decoder-embed-path", path]
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        run_train(data, tmp_path / "save", *SB, *ONE, *given)


def test_embeddings_are_read(data, tmp_path):
    size = 32  # of the architecture
    path = tmp_path / "embeddings"
    word = (data / "dict.de.txt").read_text(encoding="utf-8").split()[0]
    path.write_text(f"1 {size}\n{word}{' 77' * size}\n", encoding="utf-8")
    given = ["--decoder-embed-path", path, "--lr", 0]
    saved = load(run_train(data, tmp_path / "save", *SB, *ONE, *given))
    embedded = saved["model"]["decoder.embed_tokens.weight"]
    assert (embedded == 77).all(1).sum() == 1


def test_checkpoints_are_not_written_behind_the_trainings_back(data, tmp_path):
    """fairseq returns, as if all was done, where iopath is not installed."""
    refused = pytest.raises(
        ValueError, match=r"asynchronously is not supported.* leave"
    )
    with refused:
        run_train(data, tmp_path, *SB, *ONE, "--write-checkpoints-asynchronously")
    log = logging.getLogger()
    log.error("Another message")
    with refused:  # Hydra's settings have no parser, and there is no task yet
        log.error("Asynchronous checkpoint writing is specified but iopath is not")


def test_a_training_that_would_save_nothing_is_refused(data, tmp_path):
    words = ["--max-epoch", 1, "--save-interval", 2]
    with pytest.raises(ValueError, match=r"--save-interval must be ≤ --max-epoch 1"):
        run_train(data, tmp_path, *SB, *words)
    assert run_train(data, tmp_path, *SB, *words, "--max-update", 1).exists()


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("bleu", []),
        ("typo", []),
        ("accuracy", []),
        ("loss_l2r", TWO_WAY),
        ("gnorm", []),
    ],
)
def test_a_metric_that_nothing_logs_is_refused(data, tmp_path, metric, words):
    save = tmp_path / "save"
    said = f"--best-checkpoint-metric must be one of .*loss.* but is {metric}: "
    with pytest.raises(ValueError, match=said):
        run_train(data, save, *(words or SB), *ONE, "--best-checkpoint-metric", metric)
    assert not list(save.glob("*.pt"))


LOGGED = [("bleu", BLEU), ("accuracy", ["--report-accuracy"]), ("nll_loss_r2l", [])]
LOGGED += [("ppl", []), ("accuracy_l2r", ["--report-accuracy"])]


@pytest.mark.parametrize(("metric", "words"), LOGGED)
def test_a_metric_that_is_logged_is_not(data, tmp_path, metric, words):
    words = [*words, "--best-checkpoint-metric", metric]
    assert "best" in load(run_train(data, tmp_path, *SB, *ONE, *words))["extra_state"]


@pytest.mark.parametrize("metric", ["bleu", "accuracy", "loss", "nll_loss"])
@pytest.mark.parametrize("maximised", [False, True])
def test_a_metric_that_is_turned_round_is_warned_of(
    data, tmp_path, caplog, metric, maximised
):
    words = [*BLEU, "--report-accuracy", "--best-checkpoint-metric", metric]
    words += ["--maximize-best-checkpoint-metric"] * maximised
    run_train(data, tmp_path, *SB, *ONE, "--no-save", *words)
    wrong = (metric in ("bleu", "accuracy")) != maximised
    assert ("keeps the worst checkpoint" in caplog.text) == wrong


COUNTED = [
    ("bleu", BLEU),
    ("accuracy", ["--report-accuracy", "--ignore-prefix-size", 50]),
    ("accuracy_r2l", ["--report-accuracy", "--ignore-prefix-size", 50]),
    ("nll_loss_l2r", ["--ignore-prefix-size", 50]),
    ("ppl_l2r", ["--ignore-prefix-size", 50]),
]


@pytest.mark.parametrize(("metric", "words"), COUNTED)
def test_a_metric_of_nothing_is_logged(data, tmp_path, monkeypatch, metric, words):
    """Answers that are all empty, or labels of which none counts."""
    empty = dict.fromkeys(validation.NAMES, 0)
    monkeypatch.setattr("sbnmt_plugin.task.bleu_counts", lambda _: empty)
    words = [*words, "--best-checkpoint-metric", metric]
    best = load(run_train(data, tmp_path, *SB, *ONE, *words))["extra_state"]["best"]
    assert best == (1 if metric == "ppl_l2r" else 0)


def test_batches_of_nothing_do_not_count_beside_others():
    log = {"loss": 3.0, "nll_loss": 3.0, "ntokens": 4, "sample_size": 4, "total": 0}
    log |= {"n_correct": 0, "labels_l2r": 0, "n_correct_l2r": 0, "loss_l2r": 0.0}
    full = {**log, "total": 4, "n_correct": 3, "labels_l2r": 4, "n_correct_l2r": 3}
    with metrics.aggregate(new_root=True) as found:
        for each in log, full, log:
            SBLabelSmoothedCrossEntropy.reduce_metrics([each])
    values = found.get_smoothed_values()
    assert values["accuracy"] == values["accuracy_l2r"] == 75
