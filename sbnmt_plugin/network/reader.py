"""Reading with parameters of its own (docs/reading.md, a reader beside a writer)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from sbnmt_plugin.network.grid import AttentionGrid


class Reader(nn.Module):
    """Projections with which a stream reads the other, beside those of its own past.

    What it finds is nothing at first, for ``out_proj``, which takes what attention has
    found, starts at 0; without biases, so that it is nothing wherever there is nothing
    to read.  Not in the paper.

    Args:
        channels: C.
        wrap: what is done to each projection (fairseq's quantisation noise).
    """

    def __init__(self, channels: int, wrap: Callable[[nn.Linear], Any]) -> None:
        super().__init__()

        def projection() -> Any:
            made = nn.Linear(channels, channels, bias=False)
            nn.init.xavier_uniform_(made.weight, gain=2**-0.5)  # as fairseq's three
            return wrap(made)

        self.q_proj, self.k_proj, self.v_proj = (projection() for _ in range(3))
        self.out_proj = projection()
        nn.init.zeros_(self.out_proj.weight)

    def forward(
        self, rows: Tensor, grid: AttentionGrid, shift: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of rows (1, n, C).

        Args:
            grid: that the rows are put on.
            shift: whether a key has the value of the step before.

        Returns:
            (Q, BD, C) and twice (T', BD, C).
        """
        queries = grid.queries(self.q_proj(rows))
        if shift:
            (keys,) = grid.past(self, self.k_proj(rows))
            return queries, keys, grid.past_before(self, self.v_proj(rows))
        keys, values = grid.past(self, self.k_proj(rows), self.v_proj(rows))
        return queries, keys, values
