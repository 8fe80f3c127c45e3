"""Triples of which a share has one of their two texts in both streams."""

import numpy as np
import pytest
import torch
from commands import SB, assert_equal_models, noisy_epochs, run_generate, run_train
from fairseq.data import LanguagePairDataset, ListDataset
from helpers import dictionary

from sbnmt_plugin.layout import L2R, reverse_tokens
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.training.dataset import SBLanguagePairDataset
from sbnmt_plugin.training.input_noise import PartnerNoise, SameText

COUNT = 400
L2R_WORD, R2L_WORD = 5, 9  # of which the texts consist, by their direction


def texts(word, longer=0):
    """A sentence's number is told by its length."""
    end = dictionary().eos()
    return [torch.tensor([word] * (2 + i % 7 + longer) + [end]) for i in range(COUNT)]


def batches(rate, seed=1, epoch=1):
    rows = {"source": texts(7), "l2r": texts(L2R_WORD), "r2l": texts(R2L_WORD, 1)}
    sizes = {name: [len(row) for row in part] for name, part in rows.items()}
    words = dictionary()
    pairs = LanguagePairDataset(
        *(ListDataset(rows["source"]), sizes["source"], words),
        *(ListDataset(rows["l2r"]), sizes["l2r"], words),
        shuffle=False,
    )
    opposite = ListDataset(rows["r2l"], np.array(sizes["r2l"]))
    starts = tuple(words.index(tag) for tag in TAGS)
    same = SameText(rate, seed)
    dataset = SBLanguagePairDataset(pairs, opposite, starts, same=same)
    dataset.set_epoch(epoch)
    return dataset.collater([dataset[i] for i in range(COUNT)])


def kinds(batch):
    """Which of four pairs of texts each sentence has, in the order of its ids."""
    labels = batch["stream_target"][:, 0].view(-1, 2)
    order = batch["id"].argsort()
    return [tuple(row) for row in labels[order].tolist()]


TRIPLE, BOTH_L2R, BOTH_R2L = (5, 9), (5, 5), (9, 9)


def assert_shares(found, rate):
    """Of triples, and of both texts as the one."""
    shares = [found.count(kind) / COUNT for kind in (TRIPLE, BOTH_L2R, BOTH_R2L)]
    assert shares == pytest.approx([1 - rate, rate / 2, rate / 2], abs=0.08)
    assert sum(shares) == 1


@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
def test_a_share_of_the_triples_has_one_text_of_either_kind(rate):
    assert_shares(kinds(batches(rate)), rate)


@pytest.mark.parametrize("wrong", ["target", "opposite", "both"])
def test_the_check_of_shares_can_fail(monkeypatch, wrong):
    right = SameText.__call__

    def spoilt(self, sample, epoch, index):
        found = right(self, sample, epoch, index)
        if found is sample:
            return sample
        if wrong == "both":  # exchanged instead of made the same
            one, other = sample["opposite"], sample["target"]
            return {**sample, "target": one, "opposite": other}
        return {**sample, "target": sample[wrong], "opposite": sample[wrong]}

    monkeypatch.setattr(SameText, "__call__", spoilt)
    with pytest.raises(AssertionError):
        assert_shares(kinds(batches(0.6)), 0.6)


def test_both_streams_hold_the_whole_text_each_its_own_way_round():
    batch = batches(0.5)
    pad = dictionary().pad()
    for i, (l2r, r2l) in enumerate(batch["stream_target"].view(COUNT, 2, -1)):
        one, other = l2r[l2r.ne(pad)], r2l[r2l.ne(pad)]
        assert bool(batch["same_text"][i]) == one.equal(reverse_tokens(other))
        index = int(batch["id"][i])
        for text in one, other:
            longer = int(text[0] == R2L_WORD)
            assert len(text) == 2 + index % 7 + longer + 1
    assert batch["ntokens"] == int(batch["stream_target"].ne(pad).sum())
    assert 0 < int(batch["same_text"].sum()) < COUNT


def test_the_choice_depends_on_seed_epoch_and_sentence_alone():
    assert kinds(batches(0.5)) == kinds(batches(0.5))
    for change in {"seed": 2}, {"epoch": 2}:
        assert kinds(batches(0.5)) != kinds(batches(0.5, **change))


def test_what_is_chosen_says_nothing_of_its_noise():
    """Both draw from seed, epoch and sentence, but not the same numbers."""
    one, other, end = torch.arange(100, 130), torch.arange(200, 230), torch.tensor([2])
    corpus = [torch.cat([text, end]) for text in (one, other) for _ in range(20)]
    same, noise = SameText(0.3, seed=1), PartnerNoise(1.0, seed=1)
    shares = {True: [], False: []}
    for index in range(2000):
        sample = same({"target": one, "opposite": other}, 1, index)
        chosen = sample["target"] is sample["opposite"]
        noised = noise(one, corpus, 1, index, L2R)
        shares[chosen].append(float(noised.ne(one).float().mean()))
    assert np.mean(shares[True]) == pytest.approx(np.mean(shares[False]), abs=0.05)


SAME = ["--sb-same-text", "0.5"]


def test_resuming_meets_the_same_texts(data, tmp_path):
    """2 + 1 epochs equal 3 to the bit."""
    whole = noisy_epochs(data, tmp_path / "whole", *SAME, "--max-epoch", 3)
    noisy_epochs(data, tmp_path / "parts", *SAME, "--max-epoch", 2)
    parts = noisy_epochs(data, tmp_path / "parts", *SAME, "--max-epoch", 3)
    assert_equal_models(whole, parts)
    plain = noisy_epochs(data, tmp_path / "plain", "--max-epoch", 3)
    with pytest.raises(AssertionError):
        assert_equal_models(whole, plain)


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_shares_only(data, tmp_path, rate):
    with pytest.raises(ValueError, match=r"--sb-same-text must be in \[0, 1\]"):
        run_train(data, tmp_path, *SB, "--sb-same-text", rate)


def test_there_must_be_two_texts(gold_data, tmp_path):
    with pytest.raises(ValueError, match=r"training data with R2L.*triples"):
        run_train(gold_data, tmp_path, *SB, *SAME)


def test_a_teacher_has_no_partner(data, tmp_path):
    teacher = ["--arch", "transformer_tiny", "--sb-direction", "l2r"]
    with pytest.raises(ValueError, match="--sb-same-text needs --sb-direction both"):
        run_train(data, tmp_path, *teacher, *SAME)


def test_decoding_has_no_use_for_it(data, trained):
    with pytest.raises(ValueError, match="--sb-same-text is for training"):
        run_generate(data, trained, *SAME)
