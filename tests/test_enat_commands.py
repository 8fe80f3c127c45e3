"""ENAT by fairseq's own commands, as users type them."""

import pytest
import torch
from commands import (
    WORDS,
    assert_all_translate_alike,
    best,
    load,
    load_hub,
    run_generate,
    run_train,
)

from sbnmt_plugin.families.enat.model import ENATModel
from sbnmt_plugin.network.encoder import EncoderSelfAttention

ENAT = [
    *["--arch", "enat_transformer_tiny", "--sb-direction", "l2r"],
    *["--criterion", "enat_cross_entropy", "--share-all-embeddings"],
    *["--decoder-embed-dim", "32"],
]
L2R = ["--sb-direction", "l2r", "--max-len-a", 1, "--max-len-b", 5, "--beam", 5]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Half of the words, whose translation is the upper case."""
    path = tmp_path_factory.mktemp("table") / "table"
    rows = [f"{w} ||| {w.upper()} ||| 1.000000 9\n" for w in sorted(WORDS)[::2]]
    path.write_text("".join(rows))
    return path


@pytest.fixture(scope="module")
def asked(table):
    """What decoding says."""
    return [*L2R, "--enat-table", table]


@pytest.fixture(scope="module")
def model(gold_data, table, tmp_path_factory):
    """A model that has learned something."""
    words = [*ENAT, "--enat-table", table, "--eval-bleu"]
    words += ["--eval-bleu-args", '{"beam": 3}', "--max-epoch", 6]
    folder = tmp_path_factory.mktemp("enat")
    return run_train(gold_data, folder, *words, "--keep-last-epochs", 2)


@pytest.fixture(scope="module")
def teacher(gold_data, tmp_path_factory):
    """A Transformer that writes L2R, and one that writes R2L."""
    found = {}
    for direction in "l2r", "r2l":
        words = ["--arch", "transformer_tiny", "--sb-direction", direction]
        folder = tmp_path_factory.mktemp(direction)
        found[direction] = run_train(gold_data, folder, *words, "--max-epoch", 4)
    return found


def test_training_has_counted_lengths(model):
    weights = load(model)["model"]
    alpha = float(weights["tokens_written"]) / float(weights["tokens_read"])
    assert alpha > 1.2  # half the words are skipped


def test_python_interactive_and_generate_translate_alike(
    gold_data, model, asked, table, teacher
):
    """With the table, and with a teacher."""
    chosen = [*asked, "--nat-teacher", teacher["l2r"]]
    files = {"enat_table": str(table), "nat_teacher": str(teacher["l2r"])}
    hub = load_hub(ENATModel, model, gold_data, **files)
    same = {"beam": 5, "max_len_a": 1, "max_len_b": 5}
    assert_all_translate_alike(gold_data, model, hub, chosen, **same)
    (led,) = hub.task.loaded.values()  # with the products of other models
    assert type(led.model.encoder.layers[0].self_attn) is EncoderSelfAttention


def test_a_teacher_chooses(gold_data, model, asked, teacher):
    """Its scores are others, and records tell who has won."""
    alone = best(run_generate(gold_data, model, *asked))
    led = best(run_generate(gold_data, model, *asked, "--nat-teacher", teacher["l2r"]))
    assert {i: row[0] for i, row in alone.items()} != {
        i: row[0] for i, row in led.items()
    }


def test_what_decoding_cannot_do_is_refused(gold_data, model, asked, teacher):
    refused = {
        "trained with --sb-direction l2r": asked[2:],
        "an ensemble is not supported": [*asked, "--path", f"{model}:{model}"],
        "must be a model of --sb-direction l2r, but is one of r2l": [
            *asked,
            *["--nat-teacher", teacher["r2l"]],
        ],
        "add --enat-table": L2R,
    }
    for message, words in refused.items():
        with pytest.raises(ValueError, match=message):
            run_generate(gold_data, model, *words)


def test_what_training_cannot_do_is_refused(gold_data, data, table, tmp_path):
    phrase = [*ENAT, "--enat-table", table]
    refused = {
        "add --enat-table": ENAT,
        "--enat-table is for": [*phrase, "--enat-input", "copy"],
        "--share-all-embeddings": [w for w in phrase if w != "--share-all-embeddings"],
        "--sb-direction r2l is not": [*phrase, "--sb-direction", "r2l"],
        "--sb-direction both needs": [*phrase, "--sb-direction", "both"],
        "without --eval-bleu": [*phrase, "--nat-teacher", tmp_path / "none"],
        "none does not exist": [*ENAT, "--enat-table", tmp_path / "none"],
    }
    for message, words in refused.items():
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            run_train(gold_data, tmp_path / "save", *words, "--max-epoch", 1)


def test_other_models_refuse_its_options(gold_data, teacher, table):
    for option, value in ("--enat-table", table), ("--nat-teacher", teacher["l2r"]):
        with pytest.raises(ValueError, match=f"{option} is for an enat_transformer"):
            run_generate(gold_data, teacher["l2r"], *L2R, option, value)


def test_a_checkpoint_does_not_choose_files(gold_data, model, table, tmp_path):
    """The table of its training is read again where the caller names it alone."""
    checkpoint = load(model)
    for name in "enat_table", "nat_teacher":
        checkpoint["cfg"]["task"][name] = str(tmp_path / "none")
    torch.save(checkpoint, tmp_path / "model.pt")
    words = str(tmp_path), "model.pt", str(gold_data)
    with pytest.raises(ValueError, match="add enat_table"):
        ENATModel.from_pretrained(*words, num_workers=0)
    hub = ENATModel.from_pretrained(*words, num_workers=0, enat_table=str(table))
    assert len(hub.translate([sorted(WORDS)[0]], beam=2)) == 1
