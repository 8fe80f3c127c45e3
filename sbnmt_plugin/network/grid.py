"""How rows are put on a grid for attention: in training, and in search.

Every layer but attention works on rows alone, (1, n, C).  A row is a position of a
stream that is no padding in training, the last step of a hypothesis in search.  For
attention they are put on a grid, one column a stream, that knows what may be seen:

                  rows               queries of a stream  its keys        mask
    packed batch  labels of a batch  Q = T steps          T' = T steps    causal, pad
    KV cache      N hypotheses       Q = K hypotheses     T' = tK slots   ancestors

Padding is put in for attention alone.  fairseq hands the grid from layer to layer as
its incremental state, in training too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.numerics import additive

MOST_QUERIES = 16  # of a head, that are few: see :func:`dot_product.few_queries`


class AttentionGrid(dict[str, Any]):
    """What packed batch and KV cache share.

    A dict, since fairseq looks for entries of its own in an incremental state; ours are
    attributes.

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

    def joined(self, heads: Tensor) -> Tensor:
        """What heads have found, (B, D, H, Q, C/H) -> rows (1, n, C)."""
        grid = heads.permute(3, 0, 1, 2, 4).flatten(3)  # (Q, B, D, C)
        return self.rows(grid.flatten(1, 2))

    def past(self, owner: Any, *new: Tensor) -> list[Tensor]:
        """Keys or values of ``owner``, rows (1, n, C), -> grid (T', BD, C) of all that
        a stream may be asked for."""
        raise NotImplementedError

    def past_before(self, owner: Any, new: Tensor) -> Tensor:
        """As :meth:`past`, at each key what the step before it had; zeros at the first
        key."""
        raise NotImplementedError

    def weights(self, weights: Tensor) -> Tensor:
        """Cross-attention (H, BD, Q, S) -> (H, N, T, S), in search (H, N, 1, S)."""
        raise NotImplementedError

    def mask(self, dtype: torch.dtype, heads: int) -> Tensor | None:
        """-inf where a query may not see a key, else 0, made once for all layers.

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
        """Padding (B, S) of what is read across, as (B, H, 1, S), made once for all
        layers, and in search for all steps of the same sentences.

        Args:
            memory: its name, for a decoder may read several.
            dtype, heads: of the attention that reads it.
        """
        if padding is None:
            return None
        mask = self._memories.get(memory)
        if mask is None or mask.dtype != dtype or mask.size(1) != heads:
            hidden = padding[:, None, None].expand(-1, heads, -1, -1)
            mask = self._memories[memory] = additive(hidden, dtype)
        return mask

    def encoder(
        self, owner: Any, compute: Callable[[], tuple[Tensor, Tensor]]
    ) -> tuple[Tensor, Tensor]:
        """Keys and values (B, H, S, C/H) of what ``owner`` reads across."""
        return compute()
