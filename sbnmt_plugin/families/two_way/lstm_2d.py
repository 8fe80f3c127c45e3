"""An LSTM over a grid of two texts: training by anti-diagonals, decoding row by row.

Bahar, Brix, Ney: Two-Way Neural Machine Translation (see :mod:`two_way.model`).  The
paper says no more of the cell than its name; this is RETURNN's ``TwoDLSTM``, with which
its systems were made: one forget gate, and a gate that mixes the two pasts.

Letters: J labels of the source and I of the target, ``</s>`` counted on both sides; Z
units.  Cell (j, i) has read f_<j and e_<i, and what stands left of and below it::

    [in, fg, out, mix, g] = W_h h_j + b + W_s s_i + U z_{j-1,i} + V z_{j,i-1}
    c_{j,i} = σ(fg) ⊙ (σ(mix) ⊙ c_{j,i-1} + (1 - σ(mix)) ⊙ c_{j-1,i}) + σ(in) ⊙ tanh(g)
    z_{j,i} = σ(out) ⊙ tanh(c_{j,i})

z and c are 0 beyond the border.  Texts of a batch may differ in length: no cell depends
on one with a larger j or i, so padding, which comes last, is left out by the maxima
alone.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

GATES = ("in", "fg", "out", "mix", "g")
FORGET, MIX = GATES.index("fg"), GATES.index("mix")


class Cell(nn.Module):
    """One step of many cells: a module, so that a hook can count its calls."""

    def forward(
        self, gates: Tensor, source_past: Tensor, target_past: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute z and c, (…, Z).

        Args:
            gates: (…, 5Z) sums, in the order of :data:`GATES`.
            source_past: c_{j-1,i}, (…, Z).
            target_past: c_{j,i-1}, (…, Z).
        """
        entering, forget, leaving, mix, new = gates.chunk(len(GATES), -1)
        share = mix.sigmoid()
        past = share * target_past + (1 - share) * source_past
        c = forget.sigmoid() * past + entering.sigmoid() * new.tanh()
        return leaving.sigmoid() * c.tanh(), c


class TwoDimensionalLSTM(nn.Module):
    """The grid's weights, and its two orders of computation.

    Args:
        channels: C, of what either axis gives.
        units: Z.
    """

    def __init__(self, channels: int, units: int) -> None:
        super().__init__()
        gates = len(GATES) * units
        self.units = units
        self.source = nn.Linear(channels, gates)  # W_h, b
        self.target = nn.Linear(channels, gates, bias=False)  # W_s
        self.source_past = nn.Linear(units, gates, bias=False)  # U
        self.target_past = nn.Linear(units, gates, bias=False)  # V
        self.cell = Cell()
        with torch.no_grad():
            biases = self.source.bias.zero_().unflatten(0, (len(GATES), units))
            biases[FORGET] = 1

    def by_diagonals(self, source: Tensor, target: Tensor) -> Tensor:
        """Compute the whole grid, in I + J - 1 steps of an anti-diagonal each.

        Args:
            source: W_h h + b, (B, J, 5Z).
            target: W_s s, (B, I, 5Z).

        Returns:
            z, (B, J, I, Z).
        """
        places, steps = source.size(1), target.size(1)
        flipped = target.flip(1)  # along a diagonal i falls as j rises
        # slot j + 1 holds cell j of the diagonal before; slot 0 lies beyond the border
        z = c = source.new_zeros(source.size(0), places + 1, self.units)
        found = []
        for diagonal in range(places + steps - 1):
            low = max(0, diagonal - steps + 1)
            high = min(places - 1, diagonal) + 1
            first = steps - 1 - diagonal  # where j = 0 would be among the flipped
            left, below = slice(low, high), slice(low + 1, high + 1)
            gates = (
                source[:, low:high]
                + flipped[:, first + low : first + high]
                + self.source_past(z[:, left])
                + self.target_past(z[:, below])
            )
            made = self.cell(gates, c[:, left], c[:, below])
            z, c = (F.pad(x, (0, 0, low + 1, places - high)) for x in made)
            found.append(z[:, 1:])
        j = torch.arange(places, device=source.device)[:, None]
        i = torch.arange(steps, device=source.device)
        return torch.stack(found, 1)[:, j + i, j]

    def row(self, inputs: Tensor, z: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the next row of N grids: all j for one more i, in J small steps.

        Args:
            inputs: W_h h + b + W_s s_i, (N, J, 5Z).
            z, c: the row before, (N, J, Z).

        Returns:
            z and c of this row.
        """
        gates = inputs + self.target_past(z)
        before = z.new_zeros(z.size(0), self.units)
        last = before, before
        found = []
        for j, below in enumerate(c.unbind(1)):
            last = self.cell(gates[:, j] + self.source_past(last[0]), last[1], below)
            found.append(last)
        made, cells = zip(*found)
        return torch.stack(made, 1), torch.stack(cells, 1)


def masked_maximum(grid: Tensor, padding: Tensor, dim: int) -> Tensor:
    """Return the largest value of each unit along an axis, without padding.

    Args:
        grid: (…, Z).
        padding: True at padding, broadcast to all of ``grid``.
        dim: the axis.
    """
    found: Tensor = grid.masked_fill(padding, -math.inf).max(dim).values
    return found


def mix_negated(weight: Tensor) -> Tensor:
    """Exchange the two pasts in gates' weights or bias (5Z, …).

    1 - σ(x) = σ(-x), so the gate that mixes the two pasts changes its sign.
    """
    parts = list(weight.chunk(len(GATES)))
    parts[MIX] = -parts[MIX]
    return torch.cat(parts)
