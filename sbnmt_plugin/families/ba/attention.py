"""Attention with histories of what every source word has given, and for which words.

Xue, Feng, You, Zhang, Li: Neural Machine Translation with Bilingual History Involved
Attention.  With h_j the source's states and q_i the decoder's state that asks, at step
i for every source place j::

    e_ji = v · tanh(W q_i + U h_j [+ V_h h̃_j] [+ V_s s̃_j] + b)     eq. 4, 11, 17, 19
    α_·i = softmax_j e_·i ;   a_i = Σ_j α_ji h_j                    eq. 5, 6
    h̄_i  = Σ_j α_ji h̃_j ;     s̄_i = Σ_j α_ji s̃_j                   eq. 14, 18
    then   h̃_j ← GRU_S(α_ji h_j, h̃_j) ;   s̃_j ← GRU_T(α_ji q_i, s̃_j)   eq. 12-16

Histories begin at 0.  The source history h̃ tells what a place has given so far, the
target history s̃ for which words; with neither this is the attention of RNNsearch.

Shapes: those of :mod:`layout`, D = 1, so rows are (B, K); A is the size of the
attention, G here that of a history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from sbnmt_plugin.numerics import DEAD, wide

SOURCE, TARGET = "source", "target"
HISTORIES: dict[str, tuple[str, ...]] = {
    "none": (),
    "source": (SOURCE,),
    "target": (TARGET,),
    "both": (SOURCE, TARGET),
}


class HistoryGRU(nn.GRUCell):
    """A GRU cell whose inputs are α x.

    W (α x) = α (W x), and an x is shared by all steps (h_j) or by all places (q_i): so
    W x is computed once.  Parameters and result are those of ``nn.GRUCell`` on α x.
    """

    def inputs(self, x: Tensor) -> Tensor:
        """W x: (…, X) -> (…, 3G), without its bias."""
        return F.linear(x, self.weight_ih)

    def forward(  # type: ignore[override]
        self, weights: Tensor, inputs: Tensor, history: Tensor
    ) -> Tensor:
        """One step.

        Args:
            weights: α, (B, K, S).
            inputs: W x; its shape goes with (B, K, S, 3G).
            history: (B, K, S, G).

        Returns:
            (B, K, S, G).
        """
        given = torch.addcmul(self.bias_ih, weights[..., None], inputs)
        kept = F.linear(history, self.weight_hh, self.bias_hh)
        (r, z, n), (reset, stay, old) = given.chunk(3, -1), kept.chunk(3, -1)
        reset, stay = (r + reset).sigmoid(), (z + stay).sigmoid()
        new = torch.addcmul(n, reset, old).tanh()
        return torch.lerp(new, history.to(new.dtype), stay)  # the first may be narrow


@dataclass
class Memory:
    """Memory of B sentences, which all steps share.

    Attributes:
        states: h, (B, S, C).
        keys: U h, (B, 1, S, A).
        given: W h of GRU_S, (B, 1, S, 3G); None without a source history.
        padding: (B, 1, S) True at padding.
    """

    states: Tensor
    keys: Tensor
    given: Tensor | None
    padding: Tensor

    def select(self, sentences: Tensor) -> Memory:
        """Keep these sentences (B',)."""
        given = None if self.given is None else self.given[sentences]
        states, keys = self.states[sentences], self.keys[sentences]
        return Memory(states, keys, given, self.padding[sentences])


class HistoryAttention(nn.Module):
    """Attention with histories: see the module.

    Args:
        channels: of q_i.
        states: channels of h_j.
        size: A.
        history_size: G.
        names: the histories, of :data:`HISTORIES`.
    """

    ablated = "histories"

    def __init__(
        self,
        channels: int,
        states: int,
        size: int,
        history_size: int,
        names: tuple[str, ...],
    ) -> None:
        super().__init__()
        self.query = nn.Linear(channels, size)  # W, b
        self.memory = nn.Linear(states, size, bias=False)  # U
        self.score = nn.Linear(size, 1, bias=False)  # v
        reads = {SOURCE: states, TARGET: channels}
        cells = {name: HistoryGRU(reads[name], history_size) for name in names}
        self.cells = nn.ModuleDict(cells)
        self.keys = nn.ModuleDict(
            {name: nn.Linear(history_size, size, bias=False) for name in names}
        )  # V_h, V_s
        self.history_size = history_size

    def ablate(self) -> RemovableHandle:
        """Read histories of zeros at every step: see :class:`protocol.Ablatable`."""

        def forget(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
            *others, histories = given
            return *others, [torch.zeros_like(history) for history in histories]

        return self.register_forward_pre_hook(forget)

    def read(self, states: Tensor, padding: Tensor) -> Memory:
        """Compute what all steps share.

        Args:
            states: (B, S, C).
            padding: (B, S) True at padding.
        """
        given = None
        if SOURCE in self.cells:
            cell: Any = self.cells[SOURCE]
            given = cell.inputs(states)[:, None]
        return Memory(states, self.memory(states)[:, None], given, padding[:, None])

    def start(self, memory: Memory, beam: int) -> list[Tensor]:
        """Make the histories before the first step: zeros (B, K, S, G) each."""
        sentences, places, _ = memory.states.shape
        shape = sentences, beam, places, self.history_size
        return [memory.states.new_zeros(shape) for _ in self.cells]

    def forward(
        self, query: Tensor, memory: Memory, histories: list[Tensor]
    ) -> tuple[Tensor, Tensor, list[Tensor]]:
        """One step.  The history of a padded place moves, too, but is never read.

        Args:
            query: q_i, (B, K, C').
            memory: see :meth:`read`.
            histories: see :meth:`start`.

        Returns:
            α (B, K, S); a, h̄ and s̄ side by side, (B, K, C + G + G), of the histories
            that there are; the histories of the next step.
        """
        hidden = self.query(query)[:, :, None] + memory.keys  # (B, K, S, A)
        for key, history in zip(self.keys.values(), histories):
            hidden = hidden + key(history)
        scores = self.score(hidden.tanh())[..., 0].masked_fill(memory.padding, DEAD)
        weights = F.softmax(scores, -1, dtype=wide(scores.dtype)).to(scores.dtype)
        contexts = [weights @ memory.states]
        contexts += [(weights[..., None] * history).sum(2) for history in histories]
        following = []
        for (name, cell), history in zip(self.cells.items(), histories):
            x: Any = memory.given
            if name == TARGET:
                x = cell.inputs(query)[:, :, None]  # type: ignore[operator]
            following.append(cell(weights, x, history))
        return weights, torch.cat(contexts, -1), following
