"""Resuming in the middle of an epoch: every sentence is trained on once."""

import collections
import itertools
import shutil

import pytest
from commands import ALL, PLUGIN, SB, load, run_train
from fairseq import options, tasks
from fairseq.data.iterators import EpochBatchIterator
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from steps import put

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


def left_over(made):
    """Batches of each process, of which none may be empty, and the sentences twice."""
    order = [each.ordered_batches(3, False, True) for each in made]
    sentences = sorted(i for own in order for batch in own for i in batch)
    return [min(map(len, own)) for own in order], sentences, {len(x) for x in order}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("count", [2, 4, 5])
def test_every_process_has_a_batch_of_every_row(task, monkeypatch, count, grouped):
    """With fairseq's own batches labels are not counted, or left out."""
    whole = sorted(once(task))

    def rows():
        made = iterators(task, (count, 60, None))
        for each in made:
            each.grouped_shuffling = grouped
        smallest, sentences, sizes = left_over(made)
        return min(smallest) > 0 and sentences == whole and len(sizes) == 1

    assert rows()
    assert len(iterators(task, (1, 60, None))[0].frozen_batches) % count
    monkeypatch.delattr(ResumableIterator, "frozen_batches")
    assert not rows()


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


def test_sharded_data_have_one_dictionary(data, tmp_path):
    other = shutil.copytree(data, tmp_path / "other")
    words = [*SB, "--max-tokens", 300, "--max-epoch", 2]
    shards = f"{data}:{other}"
    assert run_train(shards, tmp_path / "same", *words).exists()
    (other / "SHA256SUMS").unlink(missing_ok=True)
    path = other / "dict.de.txt"
    put(path, *reversed(path.read_text().splitlines()))
    with pytest.raises(ValueError, match=f"^{path} must be the dictionary of the firs"):
        run_train(shards, tmp_path / "save", *words)


def test_a_shard_without_an_update_left_is_told(data, tmp_path):
    """The next epoch has other text than the iterator that fairseq has made."""
    words = [f"{data}:{data}", tmp_path, *SB, "--no-epoch-checkpoints"]
    words += ["--max-tokens", 100]
    whole = load(run_train(*words, "--max-epoch", 1))["optimizer_history"][-1]
    (tmp_path / "checkpoint_last.pt").unlink()
    run_train(*words, "--max-update", whole["num_updates"] - 1)
    with pytest.raises(ValueError, match="epoch 1 of sharded data has no update left"):
        run_train(*words, "--max-epoch", 2, "--update-freq", 4)
