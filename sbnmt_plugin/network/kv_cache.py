"""The cache of keys and values of a step-by-step search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.grid import AttentionGrid
from sbnmt_plugin.numerics import attention_dtype

FIRST_CAPACITY = 32  # steps a cache holds before it doubles


class KVCache(AttentionGrid):
    """Keys and values of the steps so far, handed to fairseq as incremental state.

    Nothing is moved when hypotheses are re-paired.  At every step the K hypotheses
    of a direction fill K slots; :attr:`ancestors` says which of them belong to whom.
    With K = 2, after a step at which both continued hypothesis 1::

        slots       1  2 | 1  2       ancestors of row 0: 1 1
        step        0  0 | 1  1       ancestors of row 1: 1 2

    so row 0 sees slots 1, 1' and row 1 sees slots 1, 2', and slot 2 of step 0 has no
    descendants.  Cached steps stay as computed with the partner of their time, also
    after re-pairing (algorithm, section 6).

    Numbers are kept by attention module: buffers (capacity · K, BD, C) for
    self-attention, which grow by doubling, and the encoder's keys and values
    (B, H, S, C/H), one copy a sentence, for cross-attention.

    Args:
        layout: what the rows are.
        encoder_out: fairseq's, of the B sentences.
        weights: whether attention to the source is wanted.

    Attributes:
        encoder_out: of the sentences that are left.
        length: t, steps begun.
        ancestors: (N, t) the rank, at each step, of the slot that is the row's past.
    """

    def __init__(
        self, layout: Layout, encoder_out: Any = None, weights: bool = False
    ) -> None:
        super().__init__(layout)
        self.encoder_out = encoder_out
        self.wants_weights = weights
        self.length = 0
        self.ancestors: Tensor | None = None
        self._positions: Tensor | None = None
        self._steps: dict[Any, list[Tensor]] = {}
        self._encoder: dict[Any, tuple[Tensor, Tensor]] = {}

    def begin(self, tokens: Tensor) -> None:
        """Begin a step."""
        rank = torch.arange(len(tokens), device=tokens.device) % self.layout.beam
        if self.ancestors is None:
            self.ancestors = rank.new_empty(rank.size(0), 0)
        self.ancestors = torch.cat([self.ancestors, rank[:, None]], dim=1)
        self.length += 1
        self._mask = None

    def position(self, first: Callable[[int], Tensor]) -> Tensor:
        """(1, 1, C) what is added to the input of the step that has begun.

        Args:
            first: gives it for that many positions, (1, T, C).
        """
        if self._positions is None or self._positions.size(1) < self.length:
            known = 0 if self._positions is None else self._positions.size(1)
            self._positions = first(max(FIRST_CAPACITY, 2 * known))
        return self._positions[:, self.length - 1 : self.length]

    def take(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)

    def give(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)

    def queries(self, x: Tensor) -> Tensor:
        """The K hypotheses of each direction."""
        columns: Tensor = x[0].unflatten(0, (-1, self.layout.beam))  # (BD, K, C)
        return columns.transpose(0, 1)

    def rows(self, grid: Tensor) -> Tensor:
        return grid.transpose(0, 1).flatten(0, 1)[None]

    def weights(self, weights: Tensor) -> Tensor:
        return weights.flatten(1, 2).unsqueeze(2)

    def past(self, owner: Any, *new: Tensor) -> list[Tensor]:
        """Write this step's rows, (1, N, C); the slots of all steps, (tK, BD, C)."""
        beam = self.layout.beam
        new = tuple(x[0] for x in new)
        buffers = self._steps.get(owner)
        if buffers is None:
            streams = new[0].size(0) // beam
            shape = FIRST_CAPACITY * beam, streams, new[0].size(1)
            buffers = [x.new_empty(shape, dtype=attention_dtype(x)) for x in new]
        elif buffers[0].size(0) < self.length * beam:
            buffers = [torch.cat([x, torch.empty_like(x)]) for x in buffers]
        self._steps[owner] = buffers
        end = self.length * beam
        for buffer, x in zip(buffers, new):
            buffer[end - beam : end] = x.unflatten(0, (-1, beam)).transpose(0, 1)
        return [buffer[:end] for buffer in buffers]

    def hidden(self) -> Tensor | None:
        """Row (d, k) sees its ancestors; the opposite's row k sees what (d, k) sees, or
        with ``best`` pairing what (d, 0) sees.  With one hypothesis a direction nothing
        is hidden.
        """
        layout = self.layout
        if layout.beam == 1 or self.ancestors is None:
            return None
        ranks = torch.arange(layout.beam, device=self.ancestors.device)
        own = self.ancestors[..., None] != ranks  # (N, t, K)
        own = own.view(-1, 1, layout.beam, self.length * layout.beam)
        if layout.directions == 1:
            return own
        return torch.cat([own, layout.pairing.partners(own, 2)], dim=2)

    def encoder(
        self, owner: Any, compute: Callable[[], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Computed at the first step."""
        if owner not in self._encoder:
            self._encoder[owner] = compute()
        return self._encoder[owner]

    def select(self, rows: Tensor) -> None:
        """Make row i what row ``rows[i]`` was.

        Args:
            rows: (N',) row numbers, parents of the hypotheses that live on.  Fewer
                than before where sentences have finished: whole ones are left out.
        """
        if self.ancestors is None:
            return
        shrunk = rows.numel() != self.ancestors.size(0)
        self.ancestors = self.ancestors[rows]
        if not shrunk:
            return
        self._memories.clear()
        beam, group = self.layout.beam, self.layout.group
        streams, sentences = rows[::beam] // beam, rows[::group] // group
        used = self.length * beam
        for buffers in self._steps.values():
            for i, buffer in enumerate(buffers):
                slots, _, channels = buffer.shape
                buffers[i] = buffer.new_empty(slots, len(streams), channels)
                torch.index_select(buffer[:used], 1, streams, out=buffers[i][:used])
        for owner, pair in self._encoder.items():
            keys, values = (x.index_select(0, sentences) for x in pair)
            self._encoder[owner] = (keys, values)
        if self.encoder_out is not None:
            self.encoder_out = select_sentences(self.encoder_out, sentences)


def select_sentences(encoder_out: Any, sentences: Tensor) -> dict[str, list[Tensor]]:
    """What our decoders read of fairseq's encoder output, of these sentences alone."""
    dims = {"encoder_out": 1, "encoder_padding_mask": 0}  # (S, B, C) and (B, S)
    return {
        name: [x.index_select(dim, sentences) for x in encoder_out.get(name) or []]
        for name, dim in dims.items()
    }
