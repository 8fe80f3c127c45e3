"""Cache of keys and values in a step-by-step search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.grid import MOST_QUERIES, AttentionGrid
from sbnmt_plugin.numerics import additive, attention_dtype

FIRST_CAPACITY = 32  # steps a cache holds before it doubles


class KVCache(AttentionGrid):
    """Keys and values of the steps so far, handed to fairseq as incremental state.

    Nothing is moved when hypotheses are re-paired.  At every step the K hypotheses
    of a direction fill K slots; :attr:`hides` says which of them belong to whom.
    With K = 2, after a step at which both continued hypothesis 0::

        step        0  0 | 1  1       row 0 sees   x  . | x  .
        slots       0  1 | 0  1       row 1 sees   x  . | .  x

    and slot 1 of step 0 has no descendants.  Cached steps stay as computed with the
    partner of their time, also after re-pairing.

    Tensors are kept by attention module: a buffer (2, capacity · K, BD, C) of keys and
    values for self-attention, which grows by doubling, and the encoder's keys and
    values (B, H, S, C/H), one copy a sentence, for cross-attention.  A shifted future
    also keeps the last step's values, (N, C), which move with the hypotheses, and a
    buffer of the values of each slot's step before.

    Args:
        layout: of the rows.
        encoder_out: fairseq's, of the B sentences.
        weights: whether attention to the source is wanted.

    Attributes:
        encoder_out: of the sentences that are left.
        length: t, steps begun.
        hides: (N, tK) added to each row's logits: 0 for the slots that are its own
            past, one a step, else -inf; None until a mask is asked for, which is at no
            step or at every one.
    """

    def __init__(self, layout: Layout, encoder_out: Any, weights: bool = False) -> None:
        super().__init__(layout)
        self.encoder_out = encoder_out
        self.wants_weights = weights
        self.length = 0
        self.hides: Tensor | None = None
        self._rows, self._device = 0, torch.device("cpu")
        self._new: Tensor | None = None
        self._positions: Tensor | None = None
        self._steps: dict[Any, Tensor] = {}
        self._last: dict[Any, Tensor] = {}
        self._encoder: dict[Any, tuple[Tensor, Tensor]] = {}

    def begin(self, tokens: Tensor) -> None:
        """Begin a step."""
        self._rows, self._device = len(tokens), tokens.device
        self.length += 1
        self._mask = None

    def position(self, first: Callable[[int], Tensor]) -> Tensor:
        """Return the embedding (1, 1, C) of the position of the step that has begun.

        Args:
            first: embeds as many positions as it is told, (1, T, C).
        """
        if self._positions is None or self._positions.size(1) < self.length:
            known = 0 if self._positions is None else self._positions.size(1)
            self._positions = first(max(FIRST_CAPACITY, 2 * known))
        return self._positions[:, self.length - 1 : self.length]

    def take(self, x: Tensor) -> Tensor:
        return x[:, 0]

    def give(self, x: Tensor) -> Tensor:
        return x[:, None]

    def queries(self, x: Tensor, heads: int) -> Tensor:
        """Give the K hypotheses of each direction to its stream."""
        return split_rows(x, self.layout.beam, heads)

    def joined(self, heads: Tensor) -> Tensor:
        return heads.transpose(1, 2).reshape(-1, heads.size(1) * heads.size(3))

    def grouped_queries(self, x: Tensor, heads: int, sentences: int) -> Tensor:
        return split_rows(x, len(x) // sentences, heads)

    def grouped_joined(self, heads: Tensor) -> Tensor:
        return self.joined(heads)  # a sentence's rows are neighbours, as a stream's

    def weights(self, weights: Tensor) -> Tensor:
        return weights.flatten(1, 2).unsqueeze(2)

    def past(self, owner: Any, *new: Tensor) -> Sequence[Tensor]:
        """Write this step's rows; return the slots of all steps, (tK, BD, C)."""
        beam, end = self.layout.beam, self.length * self.layout.beam
        rows = torch.stack(new).unflatten(1, (-1, beam))  # (n, BD, K, C), of n kinds
        buffer = self._steps.get(owner)
        if buffer is None:
            kinds, streams, _, channels = rows.shape
            shape = kinds, FIRST_CAPACITY * beam, streams, channels
            buffer = rows.new_empty(shape, dtype=attention_dtype(rows))
        elif buffer.size(1) < end:
            buffer = torch.cat([buffer, torch.empty_like(buffer)], dim=1)
        self._steps[owner] = buffer
        buffer[:, end - beam : end] = rows.transpose(1, 2)
        return buffer[:, :end].unbind(0)

    def past_before(self, owner: Any, new: Tensor) -> Tensor:
        """Return :meth:`past` moved by a step, that of a hypothesis's parent."""
        before = self._last[owner] if owner in self._last else torch.zeros_like(new)
        self._last[owner] = new
        return self.past((owner, "before"), before)[0]

    def mask(self, dtype: torch.dtype, heads: int) -> Tensor | None:
        """Return the mask: row (d, k) sees its past.

        The opposite's row k sees what (d, k) sees, or with ``best`` pairing what (d, 0)
        sees.  With one hypothesis a direction nothing is hidden.  Few queries share a
        copy for each head, which all layers read.
        """
        layout, beam = self.layout, self.layout.beam
        if beam == 1:
            return None
        if self._mask is None:
            new = self._new_slots(dtype)
            past = new if self.hides is None else torch.cat([self.hides, new], dim=1)
            self.hides = past
            own = past.view(-1, 1, beam, past.size(1))
            if own.is_cpu and layout.group <= MOST_QUERIES:
                own = own.expand(-1, heads, -1, -1)
            readers = [own, layout.pairing.partners(own, 2)]
            self._mask = torch.cat(readers[: layout.directions], dim=2)
        return self._mask

    def _new_slots(self, dtype: torch.dtype) -> Tensor:
        """Make the mask (N, K) of this step's slots: a row sees its own."""
        if self._new is None:
            device, beam = self._device, self.layout.beam
            others = ~torch.eye(beam, dtype=torch.bool, device=device)
            self._new = additive(others, dtype).repeat(self._rows // beam, 1)
        return self._new[: self._rows]

    def encoder(
        self, owner: Any, compute: Callable[[], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Compute keys and values at the first step, and keep them."""
        if owner not in self._encoder:
            self._encoder[owner] = compute()
        return self._encoder[owner]

    def select(self, rows: Tensor) -> None:
        """Make row i what row ``rows[i]`` was.

        Args:
            rows: (N',) row numbers, parents of the hypotheses that live on.  Fewer
                than before where sentences have finished: whole ones are left out.
        """
        if self.hides is not None:
            self.hides = self.hides[rows]
        self._last = {owner: x[rows] for owner, x in self._last.items()}
        if rows.numel() == self._rows:
            return
        self._memories.clear()
        beam, group = self.layout.beam, self.layout.group
        streams, sentences = rows[::beam] // beam, rows[::group] // group
        used = self.length * beam
        for owner, buffer in self._steps.items():
            kinds, slots, _, channels = buffer.shape
            left = buffer.new_empty(kinds, slots, len(streams), channels)
            for kind, old in zip(left, buffer):  # a part of one is no whole tensor
                torch.index_select(old[:used], 1, streams, out=kind[:used])
            self._steps[owner] = left
        for owner, pair in self._encoder.items():
            keys, values = (x.index_select(0, sentences) for x in pair)
            self._encoder[owner] = (keys, values)
        self.encoder_out = select_sentences(self.encoder_out, sentences)


def split_rows(x: Tensor, count: int, heads: int) -> Tensor:
    """Split rows (n, C) into groups of neighbours: (n/count, H, count, C/H)."""
    return x.view(-1, count, heads, x.size(1) // heads).transpose(1, 2)


def select_sentences(encoder_out: Any, sentences: Tensor) -> dict[str, list[Tensor]]:
    """Select the parts of fairseq's encoder output that our decoders read."""
    dims = {"encoder_out": 1, "encoder_padding_mask": 0}  # (S, B, C) and (B, S)
    return {
        name: [x.index_select(dim, sentences) for x in encoder_out.get(name) or []]
        for name, dim in dims.items()
    }
