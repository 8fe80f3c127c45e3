"""sbnmt average: the mean of the last checkpoints."""

import os
from argparse import Namespace

import pytest
import torch
from commands import SB, load, run_generate, run_train
from steps import call

from sbnmt_plugin.tools.commands import average as average_checkpoints


def test_averaging_is_the_mean(data, tmp_path):
    run_train(data, tmp_path, *SB, "--max-epoch", 3)
    output = tmp_path / "mean.pt"
    call(average_checkpoints, "--output", output, "--last", 2, tmp_path)
    mean = load(output)["model"]
    parts = [load(tmp_path / f"checkpoint{epoch}.pt")["model"] for epoch in (2, 3)]
    for name, value in mean.items():
        expected = (parts[0][name].double() + parts[1][name].double()) / 2
        torch.testing.assert_close(value.double(), expected, rtol=1e-6, atol=1e-8)
    paths = [tmp_path / f"checkpoint{epoch}.pt" for epoch in (2, 3, 1)]
    call(average_checkpoints, "--output", tmp_path / "any.pt", *paths)
    newest, made = load(paths[1]), load(tmp_path / "any.pt")  # whatever the order
    for key in "optimizer_history", "extra_state":
        assert made[key] == newest[key] != load(paths[2])[key]
    assert made["last_optimizer_state"] is None
    assert "H-0" in run_generate(data, output)
    with pytest.raises(ValueError, match="--last 9 needs as many checkpoints"):
        call(average_checkpoints, "--output", output, "--last", 9, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"none.pt \(inputs\) does not exist"):
        call(average_checkpoints, "--output", output, tmp_path / "none.pt")
    with pytest.raises(ValueError, match=r"is a folder: name checkpoints, or"):
        call(average_checkpoints, "--output", output, tmp_path)
    torch.save({"a": 1}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match=r"other.pt .* must be a checkpoint of fair"):
        call(average_checkpoints, "--output", output, tmp_path / "other.pt")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(IsADirectoryError):
        last = tmp_path / "checkpoint_last.pt"
        call(average_checkpoints, "--output", tmp_path, last)
    assert sorted(tmp_path.iterdir()) == before


EPOCHS = "checkpoint{0}.pt"  # fairseq's names: after an epoch,
UPDATES = "checkpoint_{0}_{0}000.pt"  # and with --save-interval-updates


def save_checkpoints(folder, names, numbers):
    """Checkpoints of one parameter each, which is their number."""
    folder.mkdir(exist_ok=True)
    for number in numbers:
        model = {"w": torch.tensor([float(number)])}
        torch.save({"model": model}, folder / names.format(number))
    for name in ("best", "last"):
        torch.save(
            {"model": {"w": torch.tensor([0.0])}}, folder / f"checkpoint_{name}.pt"
        )


def averaged(folder, *words):
    call(average_checkpoints, "--output", folder / "mean", *words, folder)
    return float(load(folder / "mean")["model"]["w"])


@pytest.mark.parametrize("names", [EPOCHS, UPDATES])
def test_the_last_checkpoints_are_found_by_either_name(tmp_path, names):
    save_checkpoints(tmp_path, names, range(8, 12))  # as text, 9 comes after 10
    assert averaged(tmp_path, "--last", 2) == 10.5
    assert averaged(tmp_path, "--last", 4) == 9.5
    with pytest.raises(ValueError, match=r"--last 5 needs as many .* has 4: keep more"):
        averaged(tmp_path, "--last", 5)
    assert averaged(tmp_path, "--last", 5, "--or-fewer") == 9.5


@pytest.mark.parametrize(
    "name", ["last.pt", "best.pt", "last-shard0.pt", "best.a.pt", "3_40.pt"]
)
def test_a_training_loses_no_checkpoint(tmp_path, name):
    save_checkpoints(tmp_path, EPOCHS, range(8, 12))
    before = sorted(tmp_path.iterdir())
    for output in tmp_path / f"checkpoint_{name}", tmp_path / "checkpoint12.pt":
        words = ["--output", output, "--last", 2, tmp_path]
        with pytest.raises(ValueError, match=r"^--output .* must not have a name that"):
            call(average_checkpoints, *words)
    assert sorted(tmp_path.iterdir()) == before
    assert not load(tmp_path / "checkpoint_last.pt")["model"]["w"]


def test_a_mean_that_is_there_is_left_alone(tmp_path, capsys):
    """A time that changes would tell the next step that it is another model."""
    save_checkpoints(tmp_path, EPOCHS, range(8, 12))
    averaged(tmp_path, "--last", 2)
    os.utime(tmp_path / "mean", (1, 1))
    averaged(tmp_path, "--last", 2)
    assert (tmp_path / "mean").stat().st_mtime == 1
    assert "there already" in capsys.readouterr().out
    assert averaged(tmp_path, "--last", 4) == 9.5
    assert (tmp_path / "mean").stat().st_mtime > 1
    assert "there already" not in capsys.readouterr().out


def test_a_folder_may_have_no_checkpoint_of_an_epoch(tmp_path):
    save_checkpoints(tmp_path, EPOCHS, [])  # but the last, whose parameter is 0
    assert averaged(tmp_path, "--last", 3, "--or-fewer") == 0
    (tmp_path / "checkpoint_last.pt").unlink()
    for words in (["--last", 1], ["--last", 1, "--or-fewer"]):
        with pytest.raises(ValueError, match=r"--last 1 needs as many .* has 0"):
            averaged(tmp_path, *words)
    with pytest.raises(ValueError, match="--or-fewer goes with --last"):
        averaged(tmp_path, "--or-fewer")


@pytest.mark.parametrize("shape", [(2,), (1, 1), (3, 1)])
def test_checkpoints_of_other_sizes_are_refused(tmp_path, shape):
    """Also those of which torch would make a mean."""
    save_checkpoints(tmp_path, EPOCHS, [1])
    torch.save({"model": {"w": torch.ones(shape)}}, tmp_path / EPOCHS.format(2))
    message = "checkpoint2.pt must have .* with their shapes, of .*checkpoint1.pt, but"
    with pytest.raises(ValueError, match=message):
        averaged(tmp_path, "--last", 2)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("sb_future_shift", (False, True)),
        ("sb_lambda", (0.1, 1.0)),
        ("sb_lambda", (None, 0.0)),  # the usual one, and none
        ("sb_fusion", ("tanh", "relu")),
        ("decoder_attention_heads", (2, 4)),
        ("activation_fn", ("relu", "gelu")),
        ("share_all_embeddings", (False, True)),
    ],
)
def test_checkpoints_that_compute_something_else_are_refused(tmp_path, name, values):
    """Their weights have the same shapes."""
    for number, value in enumerate((*values, values[0])):
        # older versions have saved no setting where they had none
        given = {} if number == 2 and not value else {name: value}
        state = {
            "args": Namespace(arch="sb_transformer_tiny", **given),
            "model": {"w": torch.tensor([float(number)])},
        }
        torch.save(state, tmp_path / EPOCHS.format(number))
    with pytest.raises(ValueError, match=f"checkpoint2.pt must .* has other {name}: "):
        averaged(tmp_path, "--last", 2)
    alike = [tmp_path / EPOCHS.format(number) for number in (0, 2)]
    assert float(average_checkpoints.average(alike)["model"]["w"]) == 1


def test_one_kind_of_checkpoint_is_averaged_where_there_are_both(tmp_path):
    """Epochs, unless only of the other kind there are enough."""
    save_checkpoints(tmp_path, EPOCHS, [1, 2])
    save_checkpoints(tmp_path, UPDATES, [10, 20, 30])
    assert averaged(tmp_path, "--last", 2) == 1.5
    assert averaged(tmp_path, "--last", 3) == 20
    assert averaged(tmp_path, "--last", 9, "--or-fewer") == 20
