"""Back-pointers: the choices of every step, from which hypotheses are read back.

A hypothesis is known by where it ends: step, sentence, direction and rank.  Its tokens
are found by walking from there to the first step, each step's parent being the rank
one step before::

    step       0    1    2          rank 0 after step 2:  c <- parent 1
    token      a    b    c          rank 1 after step 1:  d <- parent 0
      rank 1   x    d    e          rank 0 after step 0:  a
    parent     0    0    1          so it reads  a d c
      rank 1   1    0    0

So nothing is copied when ranks change, and nothing is asked of the device before the
batch is done: then all steps are fetched at once, and walked on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any]


@dataclass
class Step:
    """Choices of one step for the sentences of the batch at that time.

    Attributes:
        index: (B',) their places in the sample.
        parent: (B', D, K) rank, before the step, of what each hypothesis continues.
        token: (B', D, K) by which it does.
        gained: (B', D, K) log-probability of this token.
        before: (B', D, K) log-probability, before the step, of what had this rank.
        ending: (B', D, K) that of ``</s>`` after it.
        norm: (B', D, K) the model's normaliser there; see
            :attr:`next_tokens.NextTokens.norm`.
        attention: (B', D, K, S) to the source there, or None where it is not wanted.
    """

    index: Tensor
    parent: Tensor
    token: Tensor
    gained: Tensor
    before: Tensor
    ending: Tensor
    norm: Tensor
    attention: Tensor | None = None


@dataclass
class Paths:
    """Tokens written on the way to E places, in the order in which they were written.

    Attributes:
        tokens: (E, T), any value from each path's length on.
        gained: (E, T) log-probability of each token.
        asked: (E, T + 1) rank of the path before each step, whose query it was; 0
            before the first, at which one hypothesis lives.
    """

    tokens: Array
    gained: Array
    asked: Array


class BackPointers:
    """The steps of a batch, on the host.

    Attributes:
        columns: those of :class:`Step` that the steps have, (steps, B, D, K, …).
    """

    def __init__(self, steps: list[Step], sentences: int) -> None:
        """Fetch the steps of a search.

        Args:
            steps: of the batch, from the first.
            sentences: B, of the sample.
        """
        self.sentences = sentences
        self.index = fetched([step.index for step in steps])
        columns = {
            field.name: [getattr(step, field.name) for step in steps]
            for field in fields(Step)
            if field.name != "index" and getattr(steps[0], field.name) is not None
        }
        self.columns = {name: self._whole(x) for name, x in columns.items()}

    def _whole(self, parts: list[Tensor]) -> Array:
        """(steps, B, D, K, …) of all sentences, 0 where one has left the batch."""
        found = fetched(parts)
        whole = np.zeros(
            (len(found), self.sentences, *found[0].shape[1:]), found[0].dtype
        )
        for place, (index, part) in enumerate(zip(self.index, found)):
            whole[place, index] = part
        return whole

    def broken(self, sentences: Array) -> bool:
        """Tell whether the model has ever given one of these a NaN or an infinity."""
        return not np.isfinite(self.columns["norm"][:, sentences]).all()

    def totals(self, ends: Sequence[Array], length: Array) -> Array:
        """Return log-probabilities of finished hypotheses, (E,) in float64.

        Args:
            ends: sentence, direction and rank before the step at which each ended.
            length: (E,) L.
        """
        at = (length - 1, *ends)
        before, ending = (self.columns[name][at] for name in ("before", "ending"))
        total: Array = (before + ending).astype(np.float64)
        return total

    def walk(self, ends: Sequence[Array], length: Array) -> Paths:
        """Read E paths back.

        Args:
            ends: sentence, direction and rank at which each ends, (E,) each.
            length: (E,) how many steps it has.
        """
        sentence, direction, rank = ends
        names = "parent", "token", "gained"
        parent, token, gained = (self.columns[name] for name in names)
        longest = int(length.max(initial=0))
        shape = len(rank), longest
        found = Paths(
            np.zeros(shape, token.dtype),
            np.zeros(shape, gained.dtype),
            np.zeros((len(rank), longest + 1), rank.dtype),
        )
        rank = rank.copy()
        for step in reversed(range(longest)):
            on = np.flatnonzero(length > step)
            place = (step, sentence[on], direction[on], rank[on])
            found.asked[on, step + 1] = rank[on]
            found.tokens[on, step] = token[place]
            found.gained[on, step] = gained[place]
            rank[on] = parent[place]
        return found


def fetched(parts: list[Tensor]) -> list[Array]:
    """Fetch tensors of one type as arrays on the host, by one transfer."""
    whole = torch.cat([part.flatten() for part in parts]).cpu().numpy()
    ends = np.cumsum([part.numel() for part in parts])
    return [
        values.reshape(part.shape)
        for values, part in zip(np.split(whole, ends[:-1]), parts)
    ]
