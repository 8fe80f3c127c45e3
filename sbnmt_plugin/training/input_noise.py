"""What a stream reads of the other one in training, where both hold the same text.

The same text in both streams gives the second half of each away.  A model learns from
it to read across (triples hardly reward that), so some of the triples may be made such
(:class:`SameText`).  But it also learns to trust what it reads.  So the streams'
*inputs* may be corrupted while the labels stay clean: by random edits
(:class:`PartnerNoise`), or by words that the model itself would have written
(:func:`own_words`).  None of them is in the paper, which names noise as future work.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sbnmt_plugin.layout import Layout

PARTNERS = ("text", "own")
SUBSTITUTIONS = 0.5  # share of all edits; the other kinds have equal shares
EDITS = ("insert", "delete", "swap")
CHOICE = 2  # in a key beside the directions 0 and 1: numpy takes no part for a 0


class SameText:
    """Which triples have one of their two texts in both streams.

    Takes no passes from the triples, as a stage on gold text does: one stream of the
    sentence keeps its text, and over the epochs both texts are labels of both.  The
    choice depends on seed, epoch and sentence alone: a resumed training sees the same.

    Args:
        rate: share of the sentences.
        seed: ``--seed``.
    """

    def __init__(self, rate: float, seed: int) -> None:
        self.rate = rate
        self.seed = seed

    def __call__(
        self, sample: dict[str, Any], epoch: int, index: int
    ) -> dict[str, Any]:
        """The example itself, or with either of ``target`` and ``opposite`` as both."""
        random = np.random.default_rng([self.seed, epoch, index, CHOICE])
        if random.random() >= self.rate:
            return sample
        text = sample["target" if random.random() < 0.5 else "opposite"]
        return {**sample, "target": text, "opposite": text}


class PartnerNoise:
    """Random edits of a stream's input.

    The rate is drawn for every stream from U(0, R).  An edited position gets another
    word, or one too many, or one is left out, or two change places.  Position i of the
    result depends on no later word than the i-th: where a word was inserted the rest
    comes later, and only such a delay can be made up for by leaving one out; else the
    input would give its own label away.

    Noise depends on seed, epoch, sentence and direction alone: a resumed training sees
    the same.

    Args:
        rate: R.
        seed: ``--seed``.
    """

    def __init__(self, rate: float, seed: int) -> None:
        self.rate = rate
        self.seed = seed

    def __call__(
        self, words: Tensor, texts: Any, epoch: int, index: int, direction: int
    ) -> Tensor:
        """Corrupt a text.

        Args:
            words: (n,) without ``</s>``.
            texts: of the training set, each with ``</s>``: new words are those of
                another sentence, as often as they occur there.

        Returns:
            (n,).
        """
        random = np.random.default_rng([self.seed, epoch, index, direction])
        rate = random.uniform(0, self.rate)
        other = int(random.integers(len(texts)))
        new = [] if other == index else texts[other][:-1].tolist()
        new = new or words[:1].tolist()  # of the sentence itself no later word
        waiting: deque[int] = deque()
        found = []
        for word in words.tolist():
            waiting.append(word)
            if random.random() < rate:
                self._edit(waiting, random, new)
            found.append(waiting.popleft())
        return words.new_tensor(found)

    def _edit(self, waiting: deque[int], random: Any, new: list[int]) -> None:
        """Change the words that have come but are not written yet, the next one first.

        Where none waits behind the next one, it is replaced instead of left out or
        moved.
        """
        other = new[random.integers(len(new))]
        edit = EDITS[random.integers(len(EDITS))]
        if random.random() < SUBSTITUTIONS or (len(waiting) == 1 and edit != "insert"):
            waiting[0] = other
        elif edit == "insert":
            waiting.appendleft(other)
        elif edit == "delete":
            waiting.popleft()
        else:
            waiting[0], waiting[1] = waiting[1], waiting[0]


def what_partners_hold(
    cfg: Any, two_texts: bool
) -> tuple[PartnerNoise | None, SameText | None]:
    """What ``--sb-partner-noise`` and ``--sb-same-text`` do to the training data.

    Args:
        cfg: the task's options.
        two_texts: whether the data has R2L texts of its own.

    Raises:
        ValueError: there are none of which a stream could take the other's.
    """
    noise, same = None, None
    if cfg.sb_partner_noise and cfg.sb_partner == "text":
        noise = PartnerNoise(cfg.sb_partner_noise, cfg.sb_seed)
    if cfg.sb_same_text:
        if not two_texts:
            raise ValueError(
                f"--sb-same-text {cfg.sb_same_text} needs training data with R2L "
                "texts, but both streams hold the same text anyway: leave it out, or "
                f"binarise triples (sbnmt triples, sbnmt binarise)"
            )
        same = SameText(cfg.sb_same_text, cfg.sb_seed)
    return noise, same


@torch.no_grad()
def own_words(
    model: Any, sample: dict[str, Any], never: tuple[int, ...], rate: float, random: Any
) -> dict[str, Any]:
    """The batch with words of its inputs replaced by what the model would have written.

    A first pass without interaction, teacher-forced and in evaluation mode, gives the
    best next word after every prefix.  Where both streams hold the same text, each word
    of a stream is replaced by it with a probability that is drawn for the stream from
    U(0, R).  This is scheduled sampling in two passes (Mihaylova and Martins, 2019)
    whose words the other stream reads as well.

    Args:
        model: an sb_transformer.
        sample: of :class:`dataset.SBLanguagePairDataset`.
        never: ids that are never written: padding, ``</s>`` and tags.
        rate: R.
        random: numpy's generator.

    Returns:
        dict: a copy with other ``prev_output_tokens``.
    """
    net_input, live = sample["net_input"], sample["live"]
    tokens = net_input["prev_output_tokens"]  # (BD, T)
    streams, width = tokens.shape
    was_training = model.training
    model.eval()
    encoder_out = model.encoder(
        net_input["src_tokens"], src_lengths=net_input["src_lengths"]
    )
    layout = Layout(directions=1, beam=2)
    best = model.decoder.best_words(tokens, live, layout, encoder_out, never)
    model.train(was_training)
    grid = tokens.new_zeros(width * streams).index_copy(0, live, best)
    written = grid.view(width, streams).t()[:, :-1]  # after position i, for i + 1
    rates = random.uniform(0, rate, (streams, 1))
    drawn = torch.from_numpy(random.random((streams, width - 1)) < rates)
    real = torch.zeros(width * streams, dtype=torch.bool, device=live.device)
    real = real.index_fill_(0, live, True).view(width, streams).t()[:, 1:]
    same = sample["same_text"].repeat_interleave(2)[:, None]
    replaced = drawn.to(live.device) & real & same
    mixed = torch.cat(
        [tokens[:, :1], torch.where(replaced, written, tokens[:, 1:])], dim=1
    )
    return {**sample, "net_input": {**net_input, "prev_output_tokens": mixed}}
