#!/usr/bin/env python3
"""Time float32 products on a CPU: torch's own, and oneDNN's.

    products.py [--threads 2]

GFLOP/s at its fastest of seven, of weights as they are and packed in oneDNN's own
order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear

from sbnmt_plugin.network.cpu_products import can_pack, multiplied
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.synthetic import parser_of

SHAPES = [  # rows, inputs, outputs
    *((800, 512, 2048), (800, 2048, 512), (800, 512, 512), (3500, 128, 256)),
    *((200, 64, 256), (8, 512, 2048)),
]
NEW_SHAPES = [(512, 2048), (512, 512), (128, 256)]  # inputs, outputs
FIRST, COUNT = 700, 200  # numbers of rows that none has had before
TIMES = 7


def seconds(call: Callable[[], object]) -> float:
    """Of one call, at its fastest, some calls at a time."""
    call()
    start = time.perf_counter()
    call()
    calls = max(1, round(0.02 / (time.perf_counter() - start)))
    found = []
    for _ in range(TIMES):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        found.append((time.perf_counter() - start) / calls)
    return min(found)


def ways(x: Tensor, weight: Tensor) -> list[Callable[[], Tensor]]:
    """The product by torch, by oneDNN, by oneDNN packed; each gradient by both."""
    packed = torch.ops.mkldnn._reorder_linear_weight(weight)
    gradient = torch.randn(len(x), len(weight))
    return [
        lambda: linear(x, weight),
        lambda: multiplied(x, weight),
        lambda: multiplied(x, packed),
        lambda: gradient @ weight,
        lambda: multiplied(gradient, weight.t()),
        lambda: gradient.t() @ x,
        lambda: multiplied(x.t(), gradient.t()).t(),
    ]


@torch.no_grad()
def speeds(rows: int, inputs: int, outputs: int) -> list[str]:
    """A row of the first table."""
    calls = ways(torch.randn(rows, inputs), torch.randn(outputs, inputs))
    for ours, right in (1, 0), (2, 0), (4, 3), (6, 5):
        torch.testing.assert_close(calls[ours](), calls[right](), rtol=1e-3, atol=1e-3)
    operations = 2 * rows * inputs * outputs
    found = [f"{operations / seconds(call) / 1e9:.0f}" for call in calls]
    return [f"{rows} × {inputs} × {outputs}", *found]


@torch.no_grad()
def kernels(inputs: int, outputs: int, first: int) -> list[str]:
    """A row of the second table: products of every number of rows from the first on."""
    weight = torch.randn(outputs, inputs)
    batches = [torch.randn(first + i, inputs) for i in range(COUNT)]

    def once() -> float:
        start = time.perf_counter()
        for batch in batches:
            multiplied(batch, weight)
        return time.perf_counter() - start

    for batch in batches:  # results have had their memory
        linear(batch, weight)
    new = once()
    again = min(once() for _ in range(TIMES))
    each = [1000 * new / COUNT, 1000 * again / COUNT]
    return [
        f"{first} to {first + COUNT - 1} × {inputs} × {outputs}",
        *(f"{value:.2f}" for value in (*each, each[0] - each[1])),
    ]


def shown(heads: Sequence[str], rows: Sequence[list[str]]) -> str:
    return "\n".join(["", *aligned(list(heads), list(rows))])


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=int, default=1, help="of torch; default: 1")
    args = parser.parse_args()
    if not can_pack(torch.float32):
        parser.error("there are no products of oneDNN's with this torch, or processor")
    torch.set_num_threads(args.threads)
    heads = ["GFLOP/s of", "torch", "oneDNN", "packed", "of inputs: torch", "oneDNN"]
    heads += ["of weights: torch", "oneDNN"]
    print(shown(heads, [speeds(*shape) for shape in SHAPES]))
    heads = ["new shapes", "first, ms", "again, ms", "kernel, ms"]
    print(shown(heads, [kernels(*shape, FIRST) for shape in NEW_SHAPES]))


if __name__ == "__main__":
    main()
