"""The grid on which rows are put for attention, and the packed batch of training.

Every layer but attention works on rows alone, (n, C).  A row is a position of a
stream that is no padding in training, the last step of a hypothesis in search.  For
attention rows are put on a grid with one column a stream, which has the mask:

                  rows               queries of a stream  its keys        mask
    packed batch  labels of a batch  Q = T steps          T' = T steps    causal, pad
    KV cache      N hypotheses       Q = K hypotheses     T' = tK slots   ancestors

Padding is put in for attention alone.  fairseq hands the grid from layer to layer as
its incremental state, in training too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.layout import TRAINING, Layout
from sbnmt_plugin.numerics import additive

MOST_QUERIES = 16  # of a head, that are few: see :func:`dot_product.small`


class AttentionGrid(dict[str, Any]):
    """Base of packed batch and KV cache.

    It is a dict, since fairseq looks for entries of its own in an incremental state.

    Attributes:
        layout: how rows split into sentences, directions and hypotheses.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self._mask: Tensor | None = None
        self._memories: dict[str, Tensor] = {}

    def begin(self, tokens: Tensor) -> None:
        """Begin a pass through the layers.

        Args:
            tokens: (N, T) decoder input.
        """

    def take(self, x: Tensor) -> Tensor:
        """Turn decoder input (N, T, C), in search its last step, into rows."""
        raise NotImplementedError

    def give(self, x: Tensor) -> Tensor:
        """Turn rows into decoder output (N, T, C), in search (N, 1, C)."""
        raise NotImplementedError

    def queries(self, x: Tensor, heads: int) -> Tensor:
        """Put the queries of all rows on a grid, split into heads (BD, H, Q, C/H)."""
        raise NotImplementedError

    def joined(self, heads: Tensor) -> Tensor:
        """Join the outputs of heads, in the order of :meth:`queries`, to rows."""
        raise NotImplementedError

    def grouped_queries(self, x: Tensor, heads: int, sentences: int) -> Tensor:
        """Put the queries of all rows of a sentence side by side.

        Args:
            x: rows (n, C).
            heads: H.
            sentences: B.

        Returns:
            (B, H, DQ, C/H), those of a stream next to each other.
        """
        queries: Tensor = self.queries(x, heads).unflatten(0, (sentences, -1))
        return queries.transpose(1, 2).flatten(2, 3)

    def grouped_joined(self, heads: Tensor) -> Tensor:
        """Join heads, in the order of :meth:`grouped_queries`, to rows."""
        raise NotImplementedError

    def past(self, owner: Any, *new: Tensor) -> Sequence[Tensor]:
        """Put rows of keys or values on a grid (T', BD, C), beside those of the past.

        Args:
            owner: the attention that reads them.
            new: rows of this step.
        """
        raise NotImplementedError

    def past_before(self, owner: Any, new: Tensor) -> Tensor:
        """Return :meth:`past` moved by a step: zeros at the first key."""
        raise NotImplementedError

    def weights(self, weights: Tensor) -> Tensor:
        """Turn cross-attention of a search (H, B, DQ, S) into (H, N, 1, S)."""
        raise NotImplementedError

    def mask(self, dtype: torch.dtype, heads: int) -> Tensor | None:
        """Return -inf where a query may not see a key, else 0; once for all layers.

        Args:
            dtype, heads: of the layers' attention, the same in all of them.

        Returns:
            (BD, H or 1, D · Q, T'), the stream's own queries first, then those of
            the opposite stream that read its keys; None where nothing is hidden.
        """
        raise NotImplementedError

    def memory_mask(
        self, memory: str, padding: Tensor | None, dtype: torch.dtype, heads: int
    ) -> Tensor | None:
        """Return the mask (B, H, 1, S) of an encoder's output.

        It is made once for all layers, and in search for all steps of the same
        sentences.

        Args:
            memory: name of the output, for a decoder may read several.
            padding: (B, S) True at its padding.
            dtype, heads: of the attention that reads it, the same in all layers.
        """
        if padding is None:
            return None
        if memory not in self._memories:
            hidden = padding[:, None, None].expand(-1, heads, -1, -1)
            self._memories[memory] = additive(hidden, dtype)
        return self._memories[memory]

    def encoder(
        self, owner: Any, compute: Callable[[], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Return keys and values (B, H, S, C/H) of cross-attention ``owner``."""
        return compute()


class PackedBatch(AttentionGrid):
    """Grid of training: rows are the places of BD streams of T steps without padding.

    Rows are time-major.  With the streams ``a b c`` and ``d e`` they are a d b e c.

    Args:
        live: (n,) places, among the T · BD of the time-major grid, that are no padding,
            ascending.
        shape: (T, BD).
        layout: who reads whom.
    """

    def __init__(
        self, live: Tensor, shape: tuple[int, int], layout: Layout = TRAINING
    ) -> None:
        super().__init__(layout)
        self.shape = shape
        self.places = live
        size = shape[0] * shape[1]
        self.live = None if live.numel() == size else live

    @property
    def padding(self) -> Tensor:
        """Mask (BD, T), True at padding."""
        steps, streams = self.shape
        size = steps * streams
        padding = torch.ones(size, dtype=torch.bool, device=self.places.device)
        return padding.index_fill_(0, self.places, False).view(steps, streams).t()

    def take(self, x: Tensor) -> Tensor:
        return self.rows(x.transpose(0, 1))

    def give(self, x: Tensor) -> Tensor:
        """Turn rows into decoder output, zero at padding."""
        return self.on_grid(x).transpose(0, 1)

    def on_grid(self, x: Tensor) -> Tensor:
        """Put rows on the grid (T, BD, C), zero at padding."""
        if self.live is None:
            return x.reshape(*self.shape, -1)
        grid = x.new_zeros(self.shape[0] * self.shape[1], x.size(-1))
        return grid.index_copy(0, self.live, x).view(*self.shape, -1)

    def rows(self, grid: Tensor) -> Tensor:
        """Take rows from a grid (T, BD, C)."""
        flat = grid.flatten(0, 1)
        return flat if self.live is None else flat.index_select(0, self.live)

    def queries(self, x: Tensor, heads: int) -> Tensor:
        queries: Tensor = self.on_grid(x).unflatten(2, (heads, -1))
        return queries.permute(1, 2, 0, 3)

    def joined(self, heads: Tensor) -> Tensor:
        return self.rows(heads.permute(2, 0, 1, 3).flatten(2))

    def grouped_joined(self, heads: Tensor) -> Tensor:
        streams = heads.unflatten(2, (-1, self.shape[0])).transpose(1, 2)
        return self.joined(streams.flatten(0, 1))

    def past(self, owner: Any, *new: Tensor) -> Sequence[Tensor]:
        """Put keys or values where the queries of the same steps are."""
        return [self.on_grid(x) for x in new]

    def past_before(self, owner: Any, new: Tensor) -> Tensor:
        return F.pad(self.on_grid(new)[:-1], (0, 0, 0, 0, 1, 0))

    def mask(self, dtype: torch.dtype, heads: int) -> Tensor:
        if self._mask is None:
            self._mask = additive(causal(self.padding, self.layout.directions), dtype)
        return self._mask


class PrefixTrees(PackedBatch):
    """Packed batch in which beginnings that streams share are computed once.

    Where streams begin alike, their places show the same row.  Keys and values stand at
    every place that shows them, so that masks and positions are a packed batch's.

    Args:
        live: (n,) places that are computed, the first of those that show a row.
        real: (m,) places of tokens.
        shown: (T · BD,) row that each place shows; any at padding.
        shape: (T, BD).
        layout: who reads whom.
    """

    def __init__(
        self,
        live: Tensor,
        real: Tensor,
        shown: Tensor,
        shape: tuple[int, int],
        layout: Layout,
    ) -> None:
        super().__init__(live, shape, layout)
        self.places = real
        self.shown = shown

    def on_grid(self, x: Tensor) -> Tensor:
        """Put rows at all places that show them; padding shows any."""
        return x.index_select(0, self.shown).view(*self.shape, -1)


def causal(padding: Tensor, directions: int = 2) -> Tensor:
    """Make M_hist and M_fut: query i may not see key j if j > i or j is padding.

    Padding is that of the stream whose keys are read, so both masks are the same, one
    after the other.  The tag at j = 0 is never padding, so no query sees nothing.

    Args:
        padding: (BD, T) True at padding of each row's own stream.
        directions: D.

    Returns:
        (BD, 1, DT, T) True where hidden.
    """
    steps = padding.size(1)
    later = torch.ones(steps, steps, dtype=torch.bool, device=padding.device).triu(1)
    return later.repeat(directions, 1) | padding[:, None, None, :]
