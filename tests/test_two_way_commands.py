"""Both translation directions from one checkpoint, by the real commands."""

import pytest
import torch
from commands import (
    L2R,
    SIZES,
    TWO_WAY,
    assert_all_translate_alike,
    best,
    lines,
    load,
    load_hub,
    run_generate,
    run_train,
)

from sbnmt_plugin.families.two_way.criterion import TwoWayCrossEntropy
from sbnmt_plugin.families.two_way.model import TwoWayModel
from sbnmt_plugin.training.dataset import with_stream_labels

FORTH = ["--source-lang", "en", "--target-lang", "de"]
BACK = ["--source-lang", "de", "--target-lang", "en"]


@pytest.fixture(scope="module", params=["own", "joined"])
def folder(request, data, gold_data):
    """A dictionary a language, and one of both, whose checksums cannot tell."""
    return data if request.param == "own" else gold_data


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    """A two-way model that has learned something."""
    save = tmp_path_factory.mktemp("two-way")
    words = [*TWO_WAY, *FORTH, "--max-epoch", 4, "--no-epoch-checkpoints"]
    return run_train(folder, save, *words)


def loaded(folder, path, source, target):
    """Python's interface, for these languages."""
    languages = {"source_lang": source, "target_lang": target}
    return load_hub(TwoWayModel, path, folder, **languages)


def losses(hub):
    """Of the validation set's target and of its source."""
    hub.task.load_dataset("valid")
    valid = hub.task.dataset("valid")
    sample = with_stream_labels(valid.collater([valid[i] for i in range(len(valid))]))
    criterion = TwoWayCrossEntropy(hub.task, False, 0.0)
    with torch.no_grad():
        _, _, log = criterion(hub.models[0], sample)
    return float(log["loss_forth"]), float(log["loss_back"])


def test_one_checkpoint_serves_both(folder, trained):
    forth, back = losses(loaded(folder, trained, "en", "de"))
    assert abs(forth - back) > 1
    found = losses(loaded(folder, trained, "de", "en"))
    assert found == pytest.approx((back, forth), abs=1e-3)


def test_weights_that_are_not_exchanged_are_noticed(folder, trained, monkeypatch):
    monkeypatch.setattr(
        TwoWayModel, "upgrade_state_dict_named", lambda self, weights, name: None
    )
    with pytest.raises((AssertionError, RuntimeError)):
        test_one_checkpoint_serves_both(folder, trained)


def test_the_exchanged_languages_are_those_of_the_data(folder, trained):
    for words, upper in ((FORTH, str.isupper), (BACK, str.islower)):
        output = run_generate(folder, trained, *L2R, *words)
        assert len(best(output)) == SIZES["test"]
        assert all(upper(rows[0][0]) for rows in lines(output, "T").values())
        texts = [text for _, text in best(output).values() if text]
        assert texts and all(map(upper, texts))


def test_python_and_interactive_take_the_exchanged_languages(folder, trained):
    hub = loaded(folder, trained, "de", "en")
    words = [*L2R, *BACK]
    assert_all_translate_alike(folder, trained, hub, words, max_len_a=1, max_len_b=3)


def test_an_ensemble_may_have_learned_either_way_round(folder, trained, tmp_path):
    """A model that is exchanged twice is the model."""
    turned = tmp_path / "turned.pt"
    state = load(trained)
    state["model"] = loaded(folder, trained, "de", "en").models[0].state_dict()
    settings = state["cfg"]["model"]
    settings.two_way_languages = ["de", "en"]
    settings.sb_dictionaries = settings.sb_dictionaries[::-1]
    torch.save(state, turned)
    for words in FORTH, BACK:
        one, other, both = (
            best(run_generate(folder, path, *L2R, *words))
            for path in (trained, turned, f"{trained}:{turned}")
        )
        assert one == other
        assert {i: text for i, (_, text) in one.items()} == {
            i: text for i, (_, text) in both.items()
        }


def test_training_does_not_go_on_with_exchanged_languages(folder, trained, tmp_path):
    words = [*TWO_WAY, "--max-epoch", 13]
    message = "must have its languages, --source-lang en --target-lang de, but has"
    for option in "--restore-file", "--finetune-from-model":
        with pytest.raises(ValueError, match=message):
            run_train(folder, tmp_path, *words, *BACK, option, trained)


def test_another_dictionary_is_refused(data, gold_data, trained, folder):
    other = gold_data if folder is data else data
    with pytest.raises(
        ValueError, match="dictionary must be the one of the checkpoint"
    ):
        run_generate(other, trained, *L2R, *BACK)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sb-direction", "r2l"], "--sb-direction r2l is not for two_way"),
        (
            ["--criterion", "sb_label_smoothed_cross_entropy"],
            "with --criterion two_way_cross_entropy",
        ),
        (["--criterion", "cross_entropy"], "with --criterion two_way_cross_entropy"),
    ],
    ids=str,
)
def test_what_training_cannot_do_is_refused(gold_data, tmp_path, words, message):
    with pytest.raises(ValueError, match=message):
        run_train(gold_data, tmp_path, *TWO_WAY, *words, "--max-epoch", 1)


def test_bleu_validates_but_alignments_are_refused(gold_data, tmp_path):
    words = ["--eval-bleu", "--eval-bleu-args", '{"beam": 2}', "--sb-autocast"]
    words += ["--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"]
    path = run_train(gold_data, tmp_path, *TWO_WAY, *words, "--max-epoch", 1)
    assert 0 <= load(path)["extra_state"]["val_loss"] < 100
    with pytest.raises(ValueError, match="--print-alignment, as sbnmt aer, needs"):
        run_generate(gold_data, path, *L2R, "--print-alignment", "hard")
