"""Resuming in the middle of an epoch: every sentence is trained on once."""

import collections
import itertools

import pytest
from commands import ALL, PLUGIN, SB, load, run_train
from fairseq import options, tasks
from fairseq.data.iterators import EpochBatchIterator
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from sbnmt_plugin.training.epoch_position import ResumableIterator

# of a training: processes, --max-tokens and --batch-size
SETTINGS = [(n, 60, None) for n in (1, 2, 4)] + [(1, 25, None), (2, None, 7)]
PLACE = 3  # batches of a process, after which a training stops


def iterators(task, setting, epoch=3):
    """Return the iterators of all processes of a training."""
    count, tokens, sentences = setting
    words = {"max_tokens": tokens, "max_sentences": sentences, "seed": 1}
    words |= {"max_positions": (60, 60), "ignore_invalid_inputs": True}
    return [
        task.get_batch_iterator(
            task.datasets["train"],
            **words,
            num_shards=count,
            shard_id=shard,
            epoch=epoch,
            required_batch_size_multiple=1,
            disable_iterator_cache=True,
        )
        for shard in range(count)
    ]


def trained_on(made, batches=None):
    """Return the sentences of some batches of each process, or of the epoch's rest."""
    found = collections.Counter()
    for each in made:
        itr = each.next_epoch_itr()
        for batch in itertools.islice(itr, batches):
            found.update(batch["id"].tolist() if batch else [])
    return found


def epoch_of(task, *settings):
    """Return how often each sentence is seen in an epoch that is trained in parts."""
    seen, state = collections.Counter(), None
    for part, setting in enumerate(settings, start=1):
        made = iterators(task, setting)
        for each in made if state else ():
            each.load_state_dict(state)
        seen += trained_on(made, PLACE if part < len(settings) else None)
        state = made[0].state_dict()
    assert state["epoch"] == 4  # the next one
    return seen


@pytest.fixture
def task(data):
    command = [str(data), *PLUGIN, *ALL, *SB, "--max-tokens", "100"]
    parser = options.get_training_parser()
    cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, command))
    made = tasks.setup_task(cfg.task)
    made.load_dataset("train")
    return made


def once(task):
    return collections.Counter(range(len(task.datasets["train"])))


@pytest.mark.parametrize(
    "settings", itertools.product(SETTINGS, repeat=2), ids=lambda x: str(x[1])
)
def test_every_sentence_of_an_epoch_is_trained_on_once(task, settings):
    assert epoch_of(task, *settings) == once(task)


def test_a_training_may_be_resumed_by_others_again_and_again(task):
    assert epoch_of(task, *SETTINGS, SETTINGS[0], SETTINGS[0]) == once(task)


def test_the_check_of_sentences_can_fail(task, monkeypatch):
    """fairseq counts batches."""
    load_state = EpochBatchIterator.load_state_dict
    monkeypatch.setattr(ResumableIterator, "load_state_dict", load_state)
    assert epoch_of(task, SETTINGS[0], SETTINGS[1]) != once(task)
    assert epoch_of(task, SETTINGS[1], SETTINGS[0]) != once(task)


def test_the_next_epoch_is_whole_again(task):
    first = iterators(task, SETTINGS[0])
    trained_on(first, PLACE)
    made = iterators(task, SETTINGS[1])
    for each in made:
        each.load_state_dict(first[0].state_dict())
    trained_on(made)
    assert trained_on(made) == once(task)
    assert made[0].state_dict()["earlier"] == []


def test_another_batch_ends_an_epoch_that_its_checkpoint_has_begun(data, tmp_path):
    words = [*SB, "--no-epoch-checkpoints", "--max-tokens"]
    path = run_train(data, tmp_path, *words, 100, "--max-update", 7)
    state = load(path)["extra_state"]["train_iterator"]
    assert (state["epoch"], state["iterations_in_epoch"]) == (1, 7)
    run_train(data, tmp_path, *words, 50, "--max-update", 9)
    state = load(path)["extra_state"]["train_iterator"]
    assert (state["iterations_in_epoch"], len(state["earlier"])) == (2, 1)
    run_train(data, tmp_path, *words, 200, "--max-epoch", 1)
    state = load(path)["extra_state"]["train_iterator"]
    assert (state["epoch"], state["earlier"]) == (2, [])


@pytest.mark.parametrize(
    "wider", [["--max-tokens", 400], ["--max-tokens", 100, "--update-freq", 4]]
)
def test_an_epoch_that_has_no_update_left_is_over(data, tmp_path, caplog, wider):
    """Of the batches that are left the only one is dropped, or they make no update."""
    words = [*SB, "--no-epoch-checkpoints", "--skip-remainder-batch"]
    narrow = [*words, "--max-tokens", 100]
    whole = run_train(data, tmp_path / "whole", *narrow, "--max-epoch", 1)
    updates = load(whole)["optimizer_history"][-1]["num_updates"]
    save = tmp_path / "save"
    run_train(data, save, *narrow, "--max-update", updates - 1)
    path = run_train(data, save, *words, *wider, "--max-epoch", 2)
    assert "epoch 1 has no update left" in caplog.text
    assert load(path)["extra_state"]["train_iterator"]["epoch"] == 3
