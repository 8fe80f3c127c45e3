"""Start of a training: its checkpoint, its lines, the process before it, its flags."""

from argparse import Namespace
from contextlib import nullcontext

import pytest
import torch
from commands import (
    BA,
    SB,
    binarise,
    lines,
    load,
    run_generate,
    run_train,
    write_texts,
)
from fairseq.checkpoint_utils import load_model_ensemble
from fairseq_cli.train import should_stop_early
from helpers import dictionary, sb_model

from sbnmt_plugin import checkpoints, task
from sbnmt_plugin.checkpoint_checks import (
    TIES,
    check_checkpoints,
    check_dictionaries,
    check_function,
    fingerprint,
)
from sbnmt_plugin.families.sb import model
from sbnmt_plugin.network.cpu_products import widen_attention
from sbnmt_plugin.network.encoder import EncoderSelfAttention

TEACHER = ["--arch", "transformer_tiny", "--sb-direction"]
ONE = ["--max-epoch", 1, "--no-epoch-checkpoints"]


def trained_epochs(path):
    return load(path)["extra_state"]["train_iterator"]["epoch"] - 1


@pytest.mark.parametrize("option", ["--continue-once", "--restore-file"])
def test_a_start_that_is_not_there_is_no_start_from_nothing(data, tmp_path, option):
    with pytest.raises(FileNotFoundError, match=rf"typo\.pt .*{option}.* not exist"):
        run_train(data, tmp_path, *SB, *ONE, option, tmp_path / "typo.pt")


def test_a_training_that_goes_on_needs_its_start_no_more(data, tmp_path):
    """As when a stage is repeated whose first one has been deleted."""
    run_train(data, tmp_path, *SB, *ONE)
    words = [*SB, "--max-epoch", 2, "--continue-once", tmp_path / "gone.pt"]
    assert trained_epochs(run_train(data, tmp_path, *words)) == 2


@pytest.mark.parametrize("option", ["--continue-once", "--restore-file"])
def test_each_folder_has_a_best_checkpoint_of_its_own(data, tmp_path, option):
    """Also where the first score, of other text or of another stage, was better."""
    first = run_train(data, tmp_path / "first", *SB, "--max-epoch", 2)
    words = [*SB, "--no-epoch-checkpoints", "--lr", "0.9", "--max-epoch"]
    run_train(data, tmp_path / "second", *words, 3, option, first)
    best = tmp_path / "second" / "checkpoint_best.pt"
    scored = load(best)["extra_state"]["best"]
    run_train(data, tmp_path / "second", *words, 4, option, first)
    assert load(best)["extra_state"]["best"] == scored  # which a worse one leaves


def test_exchanged_languages_are_told_of(trained, caplog):
    settings = load(trained)["cfg"]["model"]
    assert settings.sb_languages == ["en", "de"]
    words = dictionary(), dictionary()
    settings.sb_dictionaries = [fingerprint(each) for each in words]
    for languages, told in (("en", "de"), False), (("de", "en"), True):
        check_dictionaries(settings, words, languages, "it")
        assert ("it was trained with --source-lang en" in caplog.text) == told


def test_a_best_score_is_of_one_metric(data, tmp_path):
    """A loss is no perplexity that later ones, all greater, would have to beat."""
    words = [*SB, "--lr", "0", "--max-epoch"]
    loss = load(run_train(data, tmp_path, *words, 1))["extra_state"]["best"]
    words += [2, "--best-checkpoint-metric", "ppl"]
    found = load(run_train(data, tmp_path, *words))["extra_state"]
    assert found["best"] == found["val_loss"] > loss
    best = load(tmp_path / "checkpoint_best.pt")["extra_state"]
    assert best["train_iterator"]["epoch"] == 3


def test_a_suffix_is_part_of_the_names_of_checkpoints(data, tmp_path):
    first = run_train(data, tmp_path / "first", *SB, *ONE)
    words = [*SB, "--no-epoch-checkpoints", "--checkpoint-suffix", ".a"]
    words += ["--finetune-from-model", first, "--max-epoch"]
    run_train(data, tmp_path / "own", *words, 1)
    best = tmp_path / "own" / "checkpoint_best.a.pt"
    scored = load(best)["extra_state"]["best"]
    run_train(data, tmp_path / "own", *words, 2, "--lr", 9)
    assert load(best)["extra_state"]["best"] == scored  # which a worse one leaves


def test_a_teacher_does_not_turn_round(data, tmp_path):
    first = run_train(data, tmp_path / "l2r", *TEACHER, "l2r", *ONE)
    with pytest.raises(ValueError, match=r"but was trained with .* l2r: add --sb"):
        run_train(data, tmp_path / "l2r", *TEACHER, "r2l", "--max-epoch", 2)
    # another folder may start from it
    words = [*TEACHER, "r2l", *ONE, "--finetune-from-model", first]
    assert trained_epochs(run_train(data, tmp_path / "r2l", *words)) == 1


@pytest.fixture(scope="module")
def long_line(tmp_path_factory):
    """Data whose last training line and first validation line have 40 words."""
    folder = tmp_path_factory.mktemp("long")
    texts = write_texts(folder / "texts", {"train": 40, "valid": 5})
    for suffix, word in {"en": "w1", "de": "W1", "r2l": "W1"}.items():
        line = " ".join([word] * 40) + "\n"
        with open(texts / f"train.{suffix}", "a", encoding="utf-8") as file:
            file.write(line)
        if suffix != "r2l":
            valid = texts / f"valid.{suffix}"
            valid.write_text(line + valid.read_text())
    return binarise(texts, folder / "data")


LONG = ["--skip-invalid-size-inputs-valid-test", "--no-save", "--max-epoch", 1]


@pytest.mark.parametrize(("room", "left_out"), [(60, True), (82, False)])
def test_a_line_of_two_streams_that_fills_no_batch_is_left_out(
    long_line, tmp_path, caplog, room, left_out
):
    """Two streams of 41 labels are 82 of ``--max-tokens``."""
    run_train(long_line, tmp_path, *SB, *LONG, "--max-tokens", room)
    assert ("1 samples have invalid sizes" in caplog.text) == left_out


@pytest.mark.parametrize("words", [[40], [80, "--max-source-positions", 60]])
def test_a_line_of_validation_that_fills_no_batch_is_named(long_line, tmp_path, words):
    refused = r"a (source|target) must have at most 40 .* --max-tokens-valid .*, but"
    with pytest.raises(ValueError, match=refused):
        run_train(long_line, tmp_path, *SB, *LONG[1:], "--max-tokens-valid", *words)


def test_the_probe_reads_no_line_that_is_too_long(long_line, tmp_path, caplog):
    words = ["--max-target-positions", 20, "--max-source-positions", 20]
    words += ["--encoder-learned-pos", "--decoder-learned-pos"]
    words += ["--sb-probe", 1, "--log-interval", 1]
    run_train(long_line, tmp_path, *SB, *LONG, *words)
    assert "read_bits_l2r" in caplog.text


def test_patience_starts_anew_with_a_training(data, tmp_path, monkeypatch):
    """As in a grid of Hydra's, one training after the other in one process."""
    monkeypatch.setattr(should_stop_early, "best", -1.0, raising=False)  # unbeatable
    monkeypatch.setattr(should_stop_early, "num_runs", 0, raising=False)
    words = [*SB, "--no-epoch-checkpoints", "--max-epoch", 3, "--patience", 1]
    assert trained_epochs(run_train(data, tmp_path, *words, "--lr", 0.001)) == 3


def test_what_is_kept_of_a_checkpoint_holds_no_weights(trained):
    """A file is read once, and its weights are not held beside the model's."""
    (kept,) = check_checkpoints([str(trained)])
    assert {*map(type, kept.shapes.values())} == {torch.Size}
    assert kept.shapes["decoder.sb_version"] == (1,)


def test_layers_that_are_left_out_by_chance_are_layers():
    """For some of the seeds all layers of a side are left out."""
    for seed in range(20):
        torch.manual_seed(seed)
        made = sb_model(
            encoder_layers=3,
            encoder_layerdrop=0.7,
            decoder_layerdrop=0.9,
            sb_future_shift=True,
        )
        made.train()
        widen_attention(made)
        layers = made.encoder.layers._modules.values()
        assert all(type(x.self_attn) is EncoderSelfAttention for x in layers)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--decoder-attention-heads", 1], "--decoder-attention-heads must be 2"),
        (["--activation-fn", "gelu"], "--activation-fn must be relu"),
        (["--no-scale-embedding"], "--no-scale-embedding must be False"),
        (["--no-token-positional-embeddings"], "--no-token-pos.* must be False"),
        (["--share-all-embeddings"], "--share-all-embeddings must be False"),
    ],
)
@pytest.mark.parametrize("how", ["--finetune-from-model", "--restore-file"])
def test_what_a_training_starts_from_computes_the_same(
    data, trained, tmp_path, how, words, said
):
    with pytest.raises(ValueError, match=f"{said}, .* {trained}, but is "):
        run_train(data, tmp_path, *SB, *ONE, how, trained, *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sb-lambda", 0.5], "--sb-lambda must be 0.1"),
        (["--sb-fusion", "linear"], "--sb-fusion must be tanh"),
        (["--sb-future-shift"], "--sb-future-shift must be False"),
    ],
)
def test_a_training_that_goes_on_computes_the_same(
    data, trained, tmp_path, words, said
):
    """Another interaction is learned with an optimiser of its own, where one asks."""
    epochs = trained_epochs(trained) + 1
    words = [*SB, *words, "--restore-file", trained, "--max-epoch", epochs]
    with pytest.raises(ValueError, match=f"{said}, as in the training of {trained}"):
        run_train(data, tmp_path, *words)
    made = run_train(data, tmp_path, *words, "--reset-optimizer")
    assert trained_epochs(made) == epochs


@pytest.mark.parametrize(
    ("old", "new", "fine"),
    [
        ((0, 0), (1, 0), 0),
        ((1, 0), (0, 1), 1),
        ((1, 0), (0, 0), 1),
        ((0, 1), (1, 0), 0),
    ],
)
def test_matrices_that_were_two_are_not_tied(old, new, fine):
    before, now = (dict(zip(TIES, map(bool, x))) for x in (old, new))
    start = checkpoints.Checkpoint("x.pt", {}, before, {})
    with nullcontext() if fine else pytest.raises(ValueError, match="--share-"):
        check_function(start, Namespace(**now))


@pytest.mark.parametrize("option", ["--sb-records", "--sb-trace"])
def test_what_decoding_writes_is_for_decoding(data, tmp_path, option):
    with pytest.raises(ValueError, match=f"{option} is for decoding, not for training"):
        run_train(data, tmp_path, *SB, *ONE, option, tmp_path / "file")


def reads(monkeypatch, data, folder):
    """Count how often a training that goes on reads its checkpoint."""
    run_train(data, folder, *SB, *ONE)
    checked = []
    original = checkpoints.check_archive

    def counted(path, options):
        checked.append(path)
        original(path, options)

    monkeypatch.setattr(checkpoints, "check_archive", counted)
    run_train(data, folder, *SB, "--max-epoch", 2, "--no-epoch-checkpoints")
    return len(checked)


def test_a_training_that_goes_on_reads_its_checkpoint_once(data, tmp_path, monkeypatch):
    """Beside fairseq's own loading: every byte of it goes into a checksum."""
    assert reads(monkeypatch, data, tmp_path) == 1


def test_a_second_reading_would_be_counted(data, tmp_path, monkeypatch):
    def anew(start, *others):
        checkpoints.read_checkpoint(start.path)
        return original(start, *others)

    original = task.check_start
    monkeypatch.setattr(task, "check_start", anew)
    assert reads(monkeypatch, data, tmp_path) == 2


def tensors_in(value):
    """List the tensors of nested dicts and lists."""
    if torch.is_tensor(value):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    items = value if isinstance(value, (list, tuple)) else []
    return [found for item in items for found in tensors_in(item)]


def test_what_is_kept_of_a_checkpoint_holds_no_tensor(trained):
    (kept,) = check_checkpoints([str(trained)])
    assert not tensors_in(vars(kept))
    assert tensors_in(load(trained)["model"])  # the twin
    assert kept.shapes["decoder.sb_version"] == (1,)


READS = ["--sb-lambda", 1, "--sb-future-dropout", 0, "--sb-future-shift"]
READER = [*READS, "--sb-reader"]


@pytest.fixture(scope="module")
def writer(data, tmp_path_factory):
    """A model without interaction, which others start from."""
    folder = tmp_path_factory.mktemp("writer")
    return run_train(data, folder, *SB, "--sb-lambda", 0, *ONE)


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--checkpoint-activations"],
        ["--decoder-layerdrop", 0.6],
        ["--sb-learn-lambda"],
    ],
    ids=str,
)
def test_a_reader_is_trained_beside_a_writer_that_stays(
    data, writer, tmp_path, monkeypatch, more
):
    words = [*SB, *READER, *more, *ONE, "--finetune-from-model", writer]
    reader = run_train(data, tmp_path / "reader", *words)
    before, after = (load(path)["model"] for path in (writer, reader))
    added = after.keys() - before.keys()
    assert added == {x for x in after if ".reader." in x or x.endswith("fusion.weight")}
    assert all(torch.equal(after[name], value) for name, value in before.items())
    outputs = [value for name, value in after.items() if "reader.out_proj" in name]
    assert sum(value.abs().sum() for value in outputs) > 0
    # the twin: with the writer it is another model
    monkeypatch.setattr(model, "freezes_writer", lambda settings: False)
    moved = load(run_train(data, tmp_path / "free", *words))["model"]
    assert not all(torch.equal(moved[name], value) for name, value in before.items())


def test_a_frozen_writer_is_one_that_was_trained(data, tmp_path):
    with pytest.raises(ValueError, match="nothing is given to start from: add --fine"):
        run_train(data, tmp_path, *SB, *READER, *ONE)


def test_a_frozen_writer_writes_both_directions(data, teacher, tmp_path):
    words = [*SB, *READER, *ONE, "--finetune-from-model", teacher]
    with pytest.raises(ValueError, match="must write both directions, but writes one"):
        run_train(data, tmp_path, *words)


@pytest.mark.parametrize("option", ["--finetune-from-model", "--restore-file"])
def test_a_model_starts_from_one_of_the_same_histories(data, tmp_path, option):
    first = run_train(data, tmp_path / "first", *BA, *ONE)
    words = [*BA, "--ba-history", "source", "--max-epoch", 2, option, first]
    with pytest.raises(ValueError, match=r"^--ba-history must be both, as in t"):
        run_train(data, tmp_path / "second", *words)
    same = [*BA, "--max-epoch", 2, option, first]
    assert run_train(data, tmp_path / "same", *same).exists()


def with_free_writer(path):
    """Turn a checkpoint into one of 0.2.0, of a reader without --sb-freeze-writer."""
    checkpoint = load(path)
    checkpoint["cfg"]["model"].sb_freeze_writer = False
    torch.save(checkpoint, path)


@pytest.mark.parametrize(
    ("option", "before"),
    [
        *(("--save-dir", x) for x in ("no reader", "reader", "free writer")),
        ("--restore-file", "no reader"),
        ("--continue-once", "no reader"),
    ],
)
def test_what_is_frozen_stays_so_as_a_training_goes_on(
    data, writer, tmp_path, option, before
):
    """The optimiser knows the weights that it trains."""
    own = tmp_path / "own"
    words = READS if before == "no reader" else READER
    first = run_train(data, own, *SB, *words, *ONE, "--finetune-from-model", writer)
    if before == "free writer":
        with_free_writer(first)
    saved = first.read_bytes()
    start = [] if option == "--save-dir" else [option, first]
    folder = tmp_path / "other" if start else own
    words = ["--sb-lambda", 0] if before == "reader" else READER
    words = [*SB, *words, "--max-epoch", 2, "--no-epoch-checkpoints", *start]
    asked = "without" if before == "reader" else "with"
    with pytest.raises(ValueError, match=f"an optimiser of .* {asked} --sb-reader"):
        run_train(data, folder, *words)
    assert first.read_bytes() == saved
    # with its own optimiser anew it may
    assert trained_epochs(run_train(data, folder, *words, "--reset-optimizer")) == 2


LEARNS = ["--sb-learn-lambda"]


@pytest.mark.parametrize(
    ("before", "now", "asked"),
    [([], LEARNS, "with"), (LEARNS, ["--sb-lambda", 0], "without")],
    ids=str,
)
def test_an_optimiser_knows_a_learned_lambda(data, tmp_path, before, now, asked):
    first = run_train(data, tmp_path, *SB, *before, *ONE)
    words = [*SB, *now, "--max-epoch", 2, "--no-epoch-checkpoints"]
    with pytest.raises(ValueError, match=f"{first} has .* {asked} --sb-learn-lambda"):
        run_train(data, tmp_path, *words)
    assert trained_epochs(run_train(data, tmp_path, *words, "--reset-optimizer")) == 2


def test_a_reader_is_not_lost_unnoticed(data, writer, tmp_path):
    words = [*SB, *READER, *ONE, "--finetune-from-model", writer]
    first = run_train(data, tmp_path / "first", *words)
    words = [*SB, *READS, *ONE, "--finetune-from-model", first]
    with pytest.raises(ValueError, match=r"^--sb-reader is not given, .*: add it, or"):
        run_train(data, tmp_path / "then", *words)
    words = [*SB, "--sb-lambda", 0, *ONE, "--finetune-from-model", first]
    alone = load(run_train(data, tmp_path / "alone", *words))["model"]
    assert not [name for name in alone if ".reader." in name]


@pytest.mark.parametrize("learned", [False, True])
def test_without_its_reader_a_model_is_the_writer(data, writer, tmp_path, learned):
    words = [*SB, *READER, "--max-epoch", 3, "--lr", 0.1]
    words += ["--sb-learn-lambda"] * learned
    words += ["--no-epoch-checkpoints", "--finetune-from-model", writer]
    reader = run_train(data, tmp_path / "reader", *words)
    names = ["sb_reader", "sb_future_shift", "sb_learn_lambda"]
    without = {"sb_lambda": 0, **dict.fromkeys(names, False)}
    (loaded,), _ = load_model_ensemble([str(reader)], {"data": str(data)})
    assert all(weight.requires_grad for weight in loaded.parameters())
    short = ["--max-len-b", 8]
    alone = lines(run_generate(data, writer, *short), "H")
    assert lines(run_generate(data, reader, *short), "H") != alone
    override = ["--model-overrides", str(without), *short]
    assert lines(run_generate(data, reader, *override), "H") == alone
