"""The floor: what a search cannot do without, counted and timed by itself.

The products of weights and activations are counted, one translation of a batch long,
and run alone, as often as the search runs them.  What a search takes longer is spent
on attention over the past, on choosing tokens and on moving memory.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.network.cpu_products import multiplied
from sbnmt_plugin.numerics import by_onednn
from sbnmt_plugin.tools.benchmark.models import SIZES, Spec
from sbnmt_plugin.tools.benchmark.results import FAILED, HEADLINE
from sbnmt_plugin.tools.benchmark.workers import Failure, Worker

REPEATS = 5  # of a product
Row = dict[str, Any]


@dataclass(frozen=True)
class Product:
    """(rows, inputs) x (inputs, outputs), ``count`` times in a translation."""

    rows: int
    inputs: int
    outputs: int
    count: int

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.rows * self.inputs * self.outputs * self.count

    @property
    def numbers(self) -> int:
        """Numbers that are read or written."""
        weights = self.inputs * self.outputs
        return (weights + self.rows * (self.inputs + self.outputs)) * self.count


def products(spec: Spec, sentences: int, length: int, beam: int) -> list[Product]:
    """All products of a translation of ``length`` tokens and ``</s>``."""
    channels, inner, layers, _ = SIZES[spec.size]
    source, rows, steps = sentences * length, sentences * beam, length + 1
    square = channels, channels
    return [
        Product(source, *square, 4 * layers),  # the encoder's attention
        Product(source, channels, inner, layers),
        Product(source, inner, channels, layers),
        Product(source, *square, 2 * layers),  # keys and values of the source
        Product(rows, *square, 6 * layers * steps),  # self 4, cross 2
        Product(rows, channels, inner, layers * steps),
        Product(rows, inner, channels, layers * steps),
        Product(rows, channels, spec.vocabulary, steps),
    ]


class Floor:
    """Times the products alone, in a worker.

    Args:
        dtype: name of torch's type.
    """

    def __init__(self, spec: Spec, dtype: str) -> None:
        self.spec = spec
        self.dtype = getattr(torch, dtype)

    @torch.no_grad()
    def _seconds(self, product: Product) -> float:
        """Of one run of a product, by whichever of torch's ways is faster here."""
        device = self.spec.device
        shape = product.rows, product.inputs
        x = torch.randn(shape, device=device, dtype=self.dtype)
        weight = torch.randn(
            product.outputs, product.inputs, device=device, dtype=self.dtype
        )
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
        """Operations, bytes and seconds of all products of a translation."""
        counted = products(self.spec, sentences, length, beam)
        seconds = sum(self._seconds(p) * p.count for p in counted)
        operations = sum(p.operations for p in counted)
        size = torch.empty(0, dtype=self.dtype).element_size()
        return {
            "operations": operations,
            "bytes": size * sum(p.numbers for p in counted),
            "seconds": seconds,
            "operations/s": operations / seconds,
        }


def floor_row(spec: Spec, dtype: str, threads: int) -> Row:
    """The floor of the headline's case, or why it cannot be measured."""
    sizes = (HEADLINE[name] for name in ("batch", "length", "beam"))
    place = "sbnmt_plugin.tools.benchmark.floor:Floor"
    try:
        with Worker(place, (spec, dtype), threads) as worker:
            return {"dtype": dtype, **worker.ask("measure", *sizes)}
    except Failure as failure:
        print(f"the floor in {dtype} failed: {failure}", file=sys.stderr)
        return {"dtype": dtype, FAILED: failure.reason}
