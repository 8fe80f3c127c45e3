"""How rows are laid out for attention: streams in training, hypotheses in search.

Every layer but attention works on rows alone, (1, n, C).  A row is a live position of a
stream in training, the last step of a hypothesis in search.  For attention a
:class:`Layout` puts them on a grid, one column a stream, and says what may be seen:

             rows               queries of a stream  its keys        mask
    training labels of a batch  the T steps          the T steps     causal, padding
    search   N hypotheses       K hypotheses         K slots a step  ancestors

Padding is put in for attention alone.  fairseq hands the layout from layer to layer as
its incremental state, in training too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.directions import TRAINING, Layout

FIRST_CAPACITY = 32  # steps a cache holds before it doubles


class Rows(dict):  # type: ignore[type-arg]
    """What both layouts share.  A dict, since fairseq looks for its own entries in it.

    Attributes:
        directions: D.
    """

    def __init__(self, directions: int) -> None:
        super().__init__()
        self.directions = directions
        self._mask: Tensor | None = None
        self._source: Tensor | None = None

    def take(self, x: Tensor) -> Tensor:
        """Decoder input (N, T, C), in search its last step, -> rows (1, n, C)."""
        raise NotImplementedError

    def give(self, x: Tensor) -> Tensor:
        """Rows (1, n, C) -> decoder output (N, T, C), in search (N, 1, C)."""
        raise NotImplementedError

    def queries(self, x: Tensor) -> Tensor:
        """Rows (1, n, C) -> grid (Q, BD, C) of the queries of each stream."""
        raise NotImplementedError

    def rows(self, grid: Tensor) -> Tensor:
        """Grid (Q, BD, C) -> rows (1, n, C)."""
        raise NotImplementedError

    def past(self, owner: Any, *new: Tensor) -> list[Tensor]:
        """Keys or values of ``owner``, rows (1, n, C), -> grid (T', BD, C) of all that
        a stream may be asked for."""
        raise NotImplementedError

    def weights(self, weights: Tensor) -> Tensor:
        """Cross-attention (H, BD, Q, S) -> (H, N, T, S)."""
        raise NotImplementedError

    def hidden(self) -> Tensor | None:
        """True where a query may not see a key: (BD or 1, 1, D · Q, T'), the stream's
        own queries first, then those of the opposite stream that read its keys."""
        raise NotImplementedError

    def mask(self, dtype: torch.dtype) -> Tensor | None:
        """:meth:`hidden` as 0 and -inf, made once for all layers."""
        if self._mask is None or self._mask.dtype != dtype:
            hidden = self.hidden()
            self._mask = None if hidden is None else additive(hidden, dtype)
        return self._mask

    def source_mask(self, padding: Tensor | None, dtype: torch.dtype) -> Tensor | None:
        """The source's padding (B, S) as (B, 1, 1, S), made once for all layers, and
        in search for all steps of the same sentences."""
        if padding is None:
            return None
        if self._source is None or self._source.dtype != dtype:
            self._source = additive(padding[:, None, None], dtype)
        return self._source

    def encoder(
        self, owner: Any, compute: Callable[[], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of the encoder output for ``owner``."""
        return compute()


class Streams(Rows):
    """The rows of a training batch: what is no padding in 2B streams of T steps.

    Rows are time-major.  With the streams ``a b c`` and ``d e`` they are a d b e c.

    Args:
        padding: (2B, T) True at padding.
    """

    def __init__(self, padding: Tensor) -> None:
        super().__init__(TRAINING.directions)
        self.padding = padding
        self.shape = padding.size(1), padding.size(0)
        live = (~padding).t().flatten().nonzero().squeeze(1)  # of T · 2B places
        self.live = None if live.numel() == padding.numel() else live

    def take(self, x: Tensor) -> Tensor:
        return self.rows(x.transpose(0, 1))

    def give(self, x: Tensor) -> Tensor:
        """Zero at padding."""
        return self.queries(x).transpose(0, 1)

    def queries(self, x: Tensor) -> Tensor:
        """Zero at padding."""
        if self.live is None:
            return x[0].unflatten(0, self.shape)
        grid = x.new_zeros(self.padding.numel(), x.size(-1))
        return grid.index_copy(0, self.live, x[0]).unflatten(0, self.shape)

    def rows(self, grid: Tensor) -> Tensor:
        flat = grid.flatten(0, 1)
        return (flat if self.live is None else flat.index_select(0, self.live))[None]

    def past(self, owner: Any, *new: Tensor) -> list[Tensor]:
        """The same steps as the queries."""
        return [self.queries(x) for x in new]

    def weights(self, weights: Tensor) -> Tensor:
        return weights

    def hidden(self) -> Tensor:
        return causal(self.padding)


class DecoderCache(Rows):
    """Keys and values of the steps so far, handed to fairseq as incremental state.

    Nothing is moved when hypotheses are re-paired.  At every step the K hypotheses
    of a direction fill K slots; :attr:`ancestors` says which of them belong to whom.
    With K = 2, after a step at which both continued hypothesis 1::

        slots       1  2 | 1  2       ancestors of row 0: 1 1
        step        0  0 | 1  1       ancestors of row 1: 1 2

    so row 0 sees slots 1, 1' and row 1 sees slots 1, 2', and slot 2 of step 0 has no
    descendants.  Cached steps stay as computed with the partner of their time, also
    after re-pairing (algorithm, section 6).

    Entries are kept by attention module: buffers (BD, capacity · K, C) for
    self-attention, which grow by doubling, and the encoder's keys and values
    (B, H, S, C/H), one copy a sentence, for cross-attention.

    Args:
        layout: what the rows are.

    Attributes:
        length: t, steps begun.
        ancestors: (N, t) the rank, at each step, of the slot that is row's own past.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout.directions)
        self.layout = layout
        self.length = 0
        self.ancestors: Tensor | None = None
        self._steps: dict[Any, list[Tensor]] = {}
        self._encoder: dict[Any, tuple[Tensor, Tensor]] = {}

    def begin(self, rows: Tensor) -> None:
        """Begin a step.

        Args:
            rows: a tensor of N rows, on the device of the search.
        """
        rank = torch.arange(rows.size(0), device=rows.device) % self.layout.beam
        if self.ancestors is None:
            self.ancestors = rank.new_empty(rank.size(0), 0)
        self.ancestors = torch.cat([self.ancestors, rank[:, None]], dim=1)
        self.length += 1
        self._mask = None

    def take(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)

    def give(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1)

    def queries(self, x: Tensor) -> Tensor:
        """The K hypotheses of each direction."""
        return x[0].unflatten(0, (-1, self.layout.beam)).transpose(0, 1)

    def rows(self, grid: Tensor) -> Tensor:
        return grid.transpose(0, 1).flatten(0, 1)[None]

    def weights(self, weights: Tensor) -> Tensor:
        return weights.flatten(1, 2).unsqueeze(2)

    def past(self, owner: Any, *new: Tensor) -> list[Tensor]:
        """Write this step's rows; the slots of all steps, (t · K, BD, C)."""
        beam = self.layout.beam
        new = tuple(x[0] for x in new)
        buffers = self._steps.get(owner)
        if buffers is None:
            streams = new[0].size(0) // beam
            shape = streams, FIRST_CAPACITY * beam, new[0].size(1)
            buffers = [x.new_empty(shape, dtype=attention_dtype(x)) for x in new]
        elif buffers[0].size(1) < self.length * beam:
            buffers = [torch.cat([x, torch.empty_like(x)], dim=1) for x in buffers]
        self._steps[owner] = buffers
        end = self.length * beam
        for buffer, x in zip(buffers, new):
            buffer[:, end - beam : end] = x.unflatten(0, (-1, beam))
        return [buffer[:, :end].transpose(0, 1) for buffer in buffers]

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
        best = layout.pairing == "best"
        across = own[:, :, :1].expand_as(own) if best else own
        return torch.cat([own, across], dim=2)

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
        self._source = None
        beam, group = self.layout.beam, self.layout.group
        streams, sentences = rows[::beam] // beam, rows[::group] // group
        for buffers in self._steps.values():
            for i, buffer in enumerate(buffers):
                buffers[i] = buffer.index_select(0, streams)
        for owner, pair in self._encoder.items():
            keys, values = (x.index_select(0, sentences) for x in pair)
            self._encoder[owner] = (keys, values)


def attention_dtype(x: Tensor) -> torch.dtype:
    """In what numbers attention is computed and cached: float32 for bfloat16 on a CPU,
    which is faster there for few queries, and more exact; else as they are."""
    narrow = x.is_cpu and x.dtype == torch.bfloat16
    return torch.float32 if narrow else x.dtype


def additive(hidden: Tensor, dtype: torch.dtype) -> Tensor:
    """-inf where hidden, else 0: to be added to attention logits."""
    zeros = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device)
    return zeros.masked_fill_(hidden, float("-inf"))


def causal(padding: Tensor) -> Tensor:
    """M_hist and M_fut: query i may not see key j if j > i or j is padding.

    Padding is that of the row whose keys are read, so both masks are the same, and
    follow each other.  The tag at j = 0 is never padding, so no query sees nothing.

    Args:
        padding: (2B, T) True at padding of each row's own stream.

    Returns:
        (2B, 1, 2T, T) True where hidden.
    """
    steps = padding.size(1)
    later = torch.ones(steps, steps, dtype=torch.bool, device=padding.device).triu(1)
    return later.repeat(2, 1) | padding[:, None, None, :]
