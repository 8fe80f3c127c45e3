"""What a training is refused for before its first update, and what it is warned of."""

import logging
import subprocess
import sys

import pytest
import sacrebleu
from commands import SB, TWO_WAY, load, run_train

from sbnmt_plugin import in_use

ONE = ["--max-update", 1, "--no-epoch-checkpoints"]
SHORT = '{"beam": 2, "max_len_a": 0, "max_len_b": 2}'
BLEU = ["--eval-bleu", "--eval-bleu-args", SHORT]


@pytest.mark.parametrize(
    "words", [["--fp16"], ["--bf16"], ["--memory-efficient-fp16"], ["--amp"]]
)
def test_half_precision_wants_a_device_that_has_it(data, tmp_path, words):
    with pytest.raises(
        ValueError, match=r"--(fp16|bf16|amp) needs a .* leave it out, or train"
    ):
        run_train(data, tmp_path / "save", *SB, *ONE, *words)


HOLD = """\
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_two_trainings_do_not_write_one_folder(data, tmp_path, monkeypatch):
    monkeypatch.setattr(in_use, "PATIENCE", 0.2)
    (tmp_path / "save").mkdir()
    words = [sys.executable, "-c", HOLD, tmp_path / "save" / ".lock"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, **pipes) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(ValueError, match=r"^--save-dir .*/save must not be in use"):
            run_train(data, tmp_path / "save", *SB, *ONE)
        assert [path.name for path in (tmp_path / "save").iterdir()] == [".lock"]
        run_train(data, tmp_path / "save", *SB, *ONE, "--checkpoint-suffix", ".b")
        other.stdin.close()
    for updates in 1, 2:  # one after the other, also in one process
        assert run_train(data, tmp_path / "save", *SB, "--max-update", updates).exists()


@pytest.mark.parametrize(
    "words",
    [
        BLEU[1:],
        ["--eval-bleu-detok", "moses"],
        ["--eval-bleu-detok-args", '{"no_escape": true}'],
        ["--eval-bleu-print-samples"],
        ["--eval-bleu-remove-bpe"],
        ["--eval-tokenized-bleu"],
    ],
)
def test_what_only_translations_in_validation_need_needs_them(data, tmp_path, words):
    with pytest.raises(
        ValueError, match=rf"^{words[0]} must not be given without --ev"
    ):
        run_train(data, tmp_path / "save", *SB, *ONE, *words)


def test_a_detokeniser_may_be_named_twice(data, tmp_path):
    words = [*BLEU, "--eval-bleu-detok", "moses", "--eval-bleu-detok-args"]
    words.append('{"tokenizer": "moses"}')
    assert run_train(data, tmp_path / "save", *SB, *ONE, *words).exists()


@pytest.mark.parametrize("name", ["init-scale", "scale-window"])
def test_scales_of_amp_that_fairseq_does_not_read_are_refused(data, tmp_path, name):
    with pytest.raises(ValueError, match=rf"--amp-{name} is not supported by .* fairs"):
        run_train(data, tmp_path / "save", *SB, *ONE, f"--amp-{name}", 7)


@pytest.mark.parametrize("words", [["--report-accuracy"], ["--ignore-prefix-size", 2]])
def test_what_our_loss_does_not_do_is_no_option_of_it(data, tmp_path, words, capsys):
    with pytest.raises(SystemExit):
        run_train(data, tmp_path / "save", *SB, *ONE, *words)
    assert f"unrecognized arguments: {words[0]}" in capsys.readouterr().err


def test_a_format_is_refused_unless_it_is_the_usual_one(data, tmp_path):
    words = [*SB, *ONE, "--dataset-impl"]
    assert run_train(data, tmp_path / "usual", *words, "mmap").exists()
    with pytest.raises(ValueError, match=r"--dataset-impl is not supported by .* mmap"):
        run_train(data, tmp_path / "other", *words, "raw")


def test_a_probe_wants_text_to_validate_on(data, tmp_path):
    words = [*SB, *ONE, "--sb-probe", 1]
    with pytest.raises(ValueError, match="--sb-probe reads validation text, of which"):
        run_train(data, tmp_path / "save", *words, "--disable-validation")
    assert run_train(data, tmp_path / "save", *words).exists()


def test_validation_does_not_take_batches_of_the_training(data, tmp_path):
    words = [*SB, *ONE, "--valid-subset", "valid,train"]
    with pytest.raises(ValueError, match=r"--valid-subset must not name train, .* val"):
        run_train(data, tmp_path / "save", *words)
    assert run_train(data, tmp_path / "save", *words, "--disable-validation").exists()


def test_one_of_several_processes_does_not_train_alone(data, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="WORLD_SIZE is 2, but this process would"):
        run_train(data, tmp_path, *SB, *ONE)


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
    for epochs in 3, 1:
        words = ["--max-epoch", epochs, "--save-interval", 2]
        said = f"--save-interval must divide --max-epoch {epochs}, .* but is 2"
        with pytest.raises(ValueError, match=said):
            run_train(data, tmp_path, *SB, *words)
    assert run_train(data, tmp_path, *SB, *words, "--max-update", 1).exists()


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("bleu", []),
        ("typo", []),
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


@pytest.mark.parametrize(
    ("metric", "words"), [("bleu", BLEU), ("nll_loss_r2l", []), ("ppl", [])]
)
def test_a_metric_that_is_logged_is_not(data, tmp_path, metric, words):
    words = [*words, "--best-checkpoint-metric", metric]
    assert "best" in load(run_train(data, tmp_path, *SB, *ONE, *words))["extra_state"]


@pytest.mark.parametrize(
    ("direction", "criterion", "refused"),
    [
        ("both", "rdrop", "sb_label_.* with --sb-direction both, but is label_"),
        ("l2r", "rdrop", ""),
        ("l2r", "alignment", "sb_label_smoothed_cross_entropy, but is label_"),
    ],
)
def test_a_criterion_that_a_batch_does_not_suit_is_refused(
    data, tmp_path, direction, criterion, refused
):
    words = ["--sb-direction", direction, "--criterion"]
    words += [f"label_smoothed_cross_entropy_with_{criterion}"]
    system = SB if direction == "both" else ["--arch", "transformer_tiny"]
    if not refused:
        assert run_train(data, tmp_path, *system, *ONE, *words).exists()
        return
    with pytest.raises(ValueError, match=f"--criterion must be {refused}"):
        run_train(data, tmp_path, *system, *ONE, *words)


@pytest.mark.parametrize("chosen", ['{"max_len_b": 0}', '{"min_len": 2000}'])
def test_a_search_that_no_source_satisfies_is_found_before_training(
    data, tmp_path, chosen
):
    words = [*BLEU, "--eval-bleu-args", chosen, "--validate-after-updates", 2]
    with pytest.raises(ValueError, match="--min-len must be ≤ the longest output all"):
        run_train(data, tmp_path, *SB, *ONE, *words)


@pytest.mark.parametrize("metric", ["bleu", "loss", "nll_loss", "ppl", "loss_r2l"])
@pytest.mark.parametrize("maximised", [False, True])
def test_a_metric_that_is_turned_round_is_warned_of(
    data, tmp_path, caplog, metric, maximised
):
    words = [*BLEU, "--best-checkpoint-metric", metric]
    words += ["--maximize-best-checkpoint-metric"] * maximised
    run_train(data, tmp_path, *SB, *ONE, "--no-save", *words)
    wrong = (metric == "bleu") != maximised
    assert ("keeps the worst checkpoint" in caplog.text) == wrong


def test_a_metric_of_nothing_is_logged(data, tmp_path, monkeypatch):
    """Answers that are all empty."""
    nothing = sacrebleu.BLEU.compute_bleu([0] * 4, [0] * 4, 0, 0)
    translated = "sbnmt_plugin.task.SBTranslationTask._inference_with_bleu"
    monkeypatch.setattr(translated, lambda *_: nothing)
    words = [*BLEU, "--best-checkpoint-metric", "bleu"]
    saved = load(run_train(data, tmp_path, *SB, *ONE, *words))
    assert saved["extra_state"]["best"] == 0
