"""Noise in what a stream reads of the other, where both hold the same text.

The same text in both streams gives the second half of each away.  A model learns from
it to read across (triples hardly reward that), but it also learns to trust what it
reads.  So the streams' *inputs* may be corrupted while the labels stay clean.  The
paper names noise as future work.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

SUBSTITUTIONS = 0.5  # share of all edits; the other kinds have equal shares
EDITS = ("insert", "delete", "swap")


@dataclass
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

    rate: float
    seed: int

    def __call__(
        self, words: Tensor, texts: Any, epoch: int, index: int, direction: int
    ) -> Tensor:
        """Corrupt a text.

        Args:
            words: (n,) without ``</s>``.
            texts: of the training set, each with ``</s>``: new words are those of
                another sentence, as often as they occur there.
            epoch, index, direction: of the text.

        Returns:
            (n,) words.
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
        """Edit the words that are not written yet, the next one first, in place.

        Where none waits behind the next one, that is replaced instead of left out or
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
