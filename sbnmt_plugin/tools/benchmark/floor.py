"""The floor: the matrix multiplications of a search, counted and timed by themselves.

No search does without those of weights and activations.  They are counted, one
translation of a batch long, and run alone, as often as the search runs them.  The rest
of its time a search spends on attention over the past, on choosing tokens and on moving
memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.network.cpu_products import multiplied
from sbnmt_plugin.numerics import by_onednn
from sbnmt_plugin.tools.benchmark.choices import SIZES
from sbnmt_plugin.tools.benchmark.models import Spec
from sbnmt_plugin.tools.benchmark.results import HEADLINE, Row
from sbnmt_plugin.tools.benchmark.stations import Stations

REPEATS = 5  # of a multiplication


@dataclass(frozen=True)
class MatMul:
    """(rows, inputs) x (inputs, outputs), ``count`` times in a translation."""

    rows: int
    inputs: int
    outputs: int
    count: int

    @property
    def operations(self) -> int:
        """Return how many multiplications and additions of numbers these are."""
        return 2 * self.rows * self.inputs * self.outputs * self.count

    @property
    def elements(self) -> int:
        """Return how many numbers are read or written."""
        weights = self.inputs * self.outputs
        return (weights + self.rows * (self.inputs + self.outputs)) * self.count


def matmuls(spec: Spec, sentences: int, length: int, beam: int) -> list[MatMul]:
    """Return all of a translation of ``length`` tokens and ``</s>``."""
    channels, inner, layers, _ = SIZES[spec.size]
    source, rows, steps = sentences * length, sentences * beam, length + 1
    square = channels, channels
    return [
        MatMul(source, *square, 4 * layers),  # the encoder's attention
        MatMul(source, channels, inner, layers),
        MatMul(source, inner, channels, layers),
        MatMul(source, *square, 2 * layers),  # keys and values of the source
        MatMul(rows, *square, 6 * layers * steps),  # self 4, cross 2
        MatMul(rows, channels, inner, layers * steps),
        MatMul(rows, inner, channels, layers * steps),
        MatMul(rows, channels, spec.vocabulary, steps),
    ]


class Floor:
    """Times the matrix multiplications alone, in a process of its own.

    Args:
        dtype: name of torch's type.
    """

    def __init__(self, spec: Spec, dtype: str) -> None:
        self.spec = spec
        self.dtype = getattr(torch, dtype)

    @torch.no_grad()
    def _seconds(self, one: MatMul) -> float:
        """Time one run, by whichever of torch's ways is faster here."""
        made = partial(torch.randn, device=self.spec.device, dtype=self.dtype)
        x, weight = made(one.rows, one.inputs), made(one.outputs, one.inputs)
        ways = [F.linear, *([multiplied] if by_onednn(x) else [])]
        return min(self._timed(partial(way, x, weight)) for way in ways)

    def _timed(self, run: Callable[[], Tensor]) -> float:
        found = []
        for _ in range(REPEATS + 2):
            start = time.perf_counter()
            run()
            if self.spec.device == "cuda":
                torch.cuda.synchronize()
            found.append(time.perf_counter() - start)
        return median(found[2:])

    def measure(self, sentences: int, length: int, beam: int) -> Row:
        """Return operations, bytes and seconds of a translation's multiplications."""
        counted = matmuls(self.spec, sentences, length, beam)
        seconds = sum(self._seconds(one) * one.count for one in counted)
        operations = sum(one.operations for one in counted)
        size = torch.empty(0, dtype=self.dtype).element_size()
        return {
            "operations": operations,
            "bytes": size * sum(one.elements for one in counted),
            "seconds": seconds,
            "operations/s": operations / seconds,
        }


def run_case(spec: Spec, dtype: str, threads: int) -> list[Row]:
    """Return the floor of the headline's case, or why it cannot be measured."""
    place = "sbnmt_plugin.tools.benchmark.floor:Floor"
    sizes = (HEADLINE[name] for name in ("batch", "length", "beam"))
    with Stations(place, lambda name: [(spec, name)], [dtype], threads) as stations:
        stations.begin()
        found = stations.ask(dtype, "measure", *sizes)
        return stations.rows(lambda name: {"dtype": name}, lambda _: found[0])
