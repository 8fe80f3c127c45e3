"""Noise in the partner's text in training, and the bits that are read of it."""

import re
from collections import deque
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
import torch
from commands import SB, assert_equal_models, noisy_epochs, run_train
from fairseq.data import LanguagePairDataset, ListDataset
from helpers import dictionary, sb_model
from nets import batch

from sbnmt_plugin.layout import L2R, R2L
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.task import SBTranslationTask
from sbnmt_plugin.training.dataset import SBLanguagePairDataset
from sbnmt_plugin.training.input_noise import EDITS, PartnerNoise
from sbnmt_plugin.training.read_bits import read_bits

WORDS = torch.arange(100, 130)
END = 2
OTHERS = [torch.tensor([*range(200 + i, 220 + i), END]) for i in range(40)]


def corrupted(
    words=WORDS, rate=0.9, seed=1, epoch=1, index=7, direction=L2R, texts=OTHERS
):
    return PartnerNoise(rate, seed)(words, texts, epoch, index, direction)


def test_no_word_stands_before_its_place(make=corrupted):
    """Else the label after it would be given away."""
    for index in range(200):
        found = make(index=index)
        assert len(found) == len(WORDS)
        for place, word in enumerate(found.tolist()):
            assert word >= 200 or word - 100 <= place, f"word {word} at {place}"


def test_the_check_of_places_can_fail(monkeypatch):
    def leaves_out(self, waiting, random, new):
        waiting.popleft()
        waiting.append(waiting[-1] + 1 if waiting else 129)

    monkeypatch.setattr(PartnerNoise, "_edit", leaves_out)
    with pytest.raises(AssertionError):
        test_no_word_stands_before_its_place(corrupted)


def test_a_later_word_changes_nothing_before_it():
    for place in (3, 11, 29):
        other = WORDS.clone()
        other[place] = 150
        for index in range(30):
            left, right = corrupted(index=index), corrupted(other, index=index)
            assert left[:place].equal(right[:place])


@pytest.mark.parametrize("others", [[], OTHERS[:1]], ids=["alone", "of two"])
def test_no_new_word_is_a_later_one_of_the_sentence_itself(others):
    texts = [torch.tensor([*WORDS, END]), *others]
    test_no_word_stands_before_its_place(
        lambda index: corrupted(seed=index, index=0, texts=texts)
    )


def test_new_words_are_those_of_many_other_sentences():
    found = [set(corrupted(index=i).tolist()) - {*WORDS.tolist()} for i in range(60)]
    found = [new for new in found if new]
    assert min(map(min, found)) < 205
    assert max(map(max, found)) > 250
    assert all(max(new) - min(new) < 20 for new in found)  # each of one


def test_all_kinds_of_edits_occur():
    gone = moved = new = 0
    for index in range(60):
        found = corrupted(index=index, rate=0.6).tolist()
        old = [word for word in found if word < 200]
        new += len(found) - len(old)
        moved += old != sorted(old)
        gone += any(b - a > 1 for a, b in pairwise(old))
    assert new and moved and gone


@pytest.mark.parametrize(
    ("chance", "kind", "waiting", "expected"),
    [
        (0.0, "insert", [1, 2], [9, 2]),  # half of all edits substitute a word
        (1.0, "insert", [1, 2], [9, 1, 2]),
        (1.0, "delete", [1, 2], [2]),
        (1.0, "swap", [1, 2], [2, 1]),
        (1.0, "insert", [1], [9, 1]),
        (1.0, "delete", [1], [9]),
        (1.0, "swap", [1], [9]),
    ],
)
def test_an_edit_is_what_its_name_says(chance, kind, waiting, expected):
    found = deque(waiting)
    random = mock.Mock(random=lambda: chance)
    random.integers.side_effect = [0, EDITS.index(kind)]
    PartnerNoise(1.0, 1)._edit(found, random, [9])
    assert [*found] == expected


def test_noise_depends_on_seed_epoch_sentence_and_direction_alone():
    assert corrupted().equal(corrupted())
    changes = {"seed": 2, "epoch": 2, "index": 8, "direction": R2L}
    for name, value in changes.items():
        assert not corrupted().equal(corrupted(**{name: value})), name


def test_the_mean_rate_is_half_of_r():
    changed = np.mean(
        [
            float(corrupted(index=i, rate=0.2).ne(WORDS)[0])  # nothing before it moves
            for i in range(3000)
        ]
    )
    # an insertion and a substitution change the first word; the others cannot happen
    assert changed == pytest.approx(0.1, abs=0.02)


def batch_with(noise):
    """Make a batch of sentences of several lengths, whose streams hold one text."""
    words = dictionary()
    rows = [torch.tensor([*range(5, 7 + i % 6), words.eos()]) for i in range(9)]
    texts = ListDataset(rows, np.array([len(row) for row in rows]))
    side = texts, texts.sizes, words
    pairs = LanguagePairDataset(*side, *side, shuffle=False)
    starts = tuple(words.index(tag) for tag in TAGS)
    made = SBLanguagePairDataset(pairs, None, starts, noise=noise)
    return made.collater([made[i] for i in range(len(rows))])


def test_labels_stay_clean_and_a_rate_of_zero_changes_nothing():
    made = [batch_with(x) for x in (None, PartnerNoise(0.0, 1), PartnerNoise(0.9, 1))]
    assert all(x["stream_target"].equal(made[0]["stream_target"]) for x in made)
    clean, same, noisy = (x["net_input"]["prev_output_tokens"] for x in made)
    assert clean.equal(same)
    assert all(not clean[d::2].equal(noisy[d::2]) for d in (L2R, R2L))


NOISE = ["--sb-partner-noise", "0.5"]


def in_a_worker(data, save, *words):
    """Train three epochs whose batches a process of its own makes."""
    words = (*words, "--max-epoch", 3, "--num-workers", 1)
    return noisy_epochs(data, save, *words)


def test_a_loaders_process_makes_every_epochs_noise(gold_data, tmp_path):
    """fairseq's default is one: it must not stay in the epoch of its birth."""
    here = noisy_epochs(gold_data, tmp_path / "here", *NOISE, "--max-epoch", 3)
    assert_equal_models(here, in_a_worker(gold_data, tmp_path / "there", *NOISE))


def test_a_process_that_outlives_an_epoch_would_be_seen(
    gold_data, tmp_path, monkeypatch
):
    original = SBTranslationTask.__init__

    def reusing(self, cfg, *args):
        original(self, cfg, *args)
        cfg.reuse_dataloader = True

    here = noisy_epochs(gold_data, tmp_path / "here", *NOISE, "--max-epoch", 3)
    monkeypatch.setattr(SBTranslationTask, "__init__", reusing)
    with pytest.raises(AssertionError):
        assert_equal_models(here, in_a_worker(gold_data, tmp_path / "there", *NOISE))


def test_texts_that_differ_are_left_alone(data, tmp_path, monkeypatch):
    """The triples of these tests have other R2L texts in every third sentence."""
    met = []
    original = PartnerNoise.__call__

    def watched(self, words, others, epoch, index, direction):
        met.append(index)
        return original(self, words, others, epoch, index, direction)

    monkeypatch.setattr(PartnerNoise, "__call__", watched)
    run_train(data, tmp_path, *SB, *NOISE, "--max-epoch", 1, "--no-save")
    different = [index for index in set(met) if index % 3 == 0]
    assert len(set(met)) > 190
    assert len(different) < 20  # those whose text ended in W0 anyway


def test_a_training_logs_what_is_read(gold_data, tmp_path, caplog):
    caplog.set_level("INFO")
    words = ["--sb-lambda", 1, "--sb-probe", 2, "--max-epoch", 2, "--no-save"]
    run_train(gold_data, tmp_path, *SB, *words, "--log-interval", 1)
    assert re.search(r"epoch 001 \| .* read_bits_l2r \S+ \| read_bits_r2l", caplog.text)
    # in the lines of the updates that are asked for: not of a model that knows nothing
    read = r"read_bits_l2r=-?[\d.]+, read_bits_r2l=-?[\d.]+,.* num_updates=(\d+)"
    told = [int(number) for number in re.findall(read, caplog.text)]
    last = max(map(int, re.findall(r"num_updates=(\d+)", caplog.text)))
    assert told == list(range(2, last + 1, 2)) and len(told) > 1


def test_bits_are_read_by_a_model_that_reads_only():
    sample = batch(sb_model())
    reads = read_bits(sb_model(sb_lambda=0.9), [sample], 1)
    assert all(abs(value) > 1e-3 for value in reads.values())
    assert read_bits(sb_model(sb_lambda=0.9), [sample] * 2, 1) == pytest.approx(reads)
    blind = read_bits(sb_model(sb_lambda=0.0), [sample], 1)
    assert all(abs(value) < 1e-12 for value in blind.values())


def noisy_losses(data, save, caplog, *words):
    """Return training and validation loss of a model that stays as it began."""
    caplog.set_level("INFO")
    caplog.clear()
    words = ["--max-epoch", 1, "--no-save", "--lr", "1e-20", *words]
    run_train(data, save, *SB, *words)
    losses = r"\| (loss .* nll_loss_r2l [\d.]+)"  # of both directions and of each
    return [
        re.search(before + losses, caplog.text)[1]
        for before in ("train:.* epoch 001 ", "valid:.* epoch 001 .*'valid' subset ")
    ]


def test_validation_meets_no_noise(gold_data, tmp_path, caplog):
    clean = noisy_losses(gold_data, tmp_path, caplog)
    noise = noisy_losses(gold_data, tmp_path, caplog, "--sb-partner-noise", 1)
    assert clean[0] != noise[0]  # which training meets
    assert clean[1] == noise[1]


def test_noise_in_validation_would_be_seen(gold_data, tmp_path, caplog, monkeypatch):
    clean = noisy_losses(gold_data, tmp_path, caplog)
    right = SBTranslationTask._with_streams

    def as_training_text(self, pairs, opposite=None, trained=False):
        return right(self, pairs, opposite, trained=True)

    monkeypatch.setattr(SBTranslationTask, "_with_streams", as_training_text)
    noise = noisy_losses(gold_data, tmp_path, caplog, "--sb-partner-noise", 1)
    assert clean[1] != noise[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--sb-partner-noise", "1.5"], r"--sb-partner-noise must be in \[0, 1\]"),
        (["--sb-probe", "-1"], "--sb-probe must be ≥ 0"),
        (["--sb-probe", "5", "--disable-validation"], "reads validation text"),
    ],
)
def test_wrong_values_are_refused(gold_data, tmp_path, words, message):
    with pytest.raises(ValueError, match=message):
        run_train(gold_data, tmp_path, *SB, *words)


@pytest.mark.parametrize("words", [NOISE, ["--sb-probe", "5"]], ids=str)
def test_a_teacher_has_no_partner(gold_data, tmp_path, words):
    teacher = ["--arch", "transformer_tiny", "--sb-direction", "l2r"]
    with pytest.raises(ValueError, match="has no partner"):
        run_train(gold_data, tmp_path, *teacher, *words)
