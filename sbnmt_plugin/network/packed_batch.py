"""The packed batch of training: no layer but attention works on padding."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.layout import TRAINING, Layout
from sbnmt_plugin.network.grid import AttentionGrid
from sbnmt_plugin.numerics import additive


class PackedBatch(AttentionGrid):
    """The rows of a training batch: what is no padding in BD streams of T steps.

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
        """(BD, T) True at padding."""
        steps, streams = self.shape
        size = steps * streams
        padding = torch.ones(size, dtype=torch.bool, device=self.places.device)
        return padding.index_fill_(0, self.places, False).view(steps, streams).t()

    def take(self, x: Tensor) -> Tensor:
        return self.rows(x.transpose(0, 1))

    def give(self, x: Tensor) -> Tensor:
        """Zero at padding."""
        return self.queries(x).transpose(0, 1)

    def queries(self, x: Tensor) -> Tensor:
        """Zero at padding."""
        if self.live is None:
            return x[0].reshape(*self.shape, -1)
        grid = x.new_zeros(self.shape[0] * self.shape[1], x.size(-1))
        return grid.index_copy(0, self.live, x[0]).view(*self.shape, -1)

    def rows(self, grid: Tensor) -> Tensor:
        flat = grid.flatten(0, 1)
        return (flat if self.live is None else flat.index_select(0, self.live))[None]

    def past(self, owner: Any, *new: Tensor) -> list[Tensor]:
        """The same steps as the queries."""
        return [self.queries(x) for x in new]

    def past_before(self, owner: Any, new: Tensor) -> Tensor:
        return F.pad(self.queries(new)[:-1], (0, 0, 0, 0, 1, 0))

    def weights(self, weights: Tensor) -> Tensor:
        return weights

    def mask(self, dtype: torch.dtype, heads: int) -> Tensor:
        if self._mask is None or self._mask.dtype != dtype:
            self._mask = additive(causal(self.padding, self.layout.directions), dtype)
        return self._mask


def causal(padding: Tensor, directions: int = 2) -> Tensor:
    """M_hist and M_fut: query i may not see key j if j > i or j is padding.

    Padding is that of the row whose keys are read, so both masks are the same, and
    follow each other.  The tag at j = 0 is never padding, so no query sees nothing.

    Args:
        padding: (BD, T) True at padding of each row's own stream.
        directions: D.

    Returns:
        (BD, 1, DT, T) True where hidden.
    """
    steps = padding.size(1)
    later = torch.ones(steps, steps, dtype=torch.bool, device=padding.device).triu(1)
    return later.repeat(directions, 1) | padding[:, None, None, :]
