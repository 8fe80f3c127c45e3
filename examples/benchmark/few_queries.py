#!/usr/bin/env python3
"""Time both ways of attending to few queries on a CPU: torch's, and two products.

    few_queries.py [--threads 2]

Milliseconds of one call, the least of seven times sixty; keys and values lie as in the
cache of a search with 100 streams, in the last row with 2.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from sbnmt_plugin.network.dot_product import attend_at_once, attend_by_products
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.synthetic import parser_of

CASES = [  # streams, heads, queries, keys, channels of a head
    *((100, 4, 4, keys, 32) for keys in (10, 26, 40)),
    *((100, 8, 4, keys, 64) for keys in (14, 26, 52)),
    (2, 8, 4, 26, 64),
]
TIMES, CALLS = 7, 60


def milliseconds(call: Callable[[], object]) -> float:
    """Of one call, at its fastest."""
    call()
    found = []
    for _ in range(TIMES):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append(time.perf_counter() - start)
    return 1000 * min(found) / CALLS


@torch.no_grad()
def measured(streams: int, heads: int, queries: int, keys: int, size: int) -> list[str]:
    """A row of the table."""
    query = torch.randn(streams, heads, queries, size)
    slots = torch.randn(2, keys, streams, heads, size)
    key, value = slots.permute(0, 2, 3, 1, 4)
    mask = torch.zeros(streams, 1, queries, keys)
    given = query, key, value, mask
    ways = (lambda: attend_at_once(*given)), (lambda: attend_by_products(*given))
    torch.testing.assert_close(ways[0](), ways[1](), rtol=1e-4, atol=1e-5)
    shape = f"{streams}, {heads}, {queries}, {keys}, {size}"
    return [shape, *(f"{milliseconds(way):.3f}" for way in ways)]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--threads", type=int, default=1, help="of torch; default: 1")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    heads = ["streams, heads, queries, keys, size", "torch's", "two products"]
    print("\n".join(aligned(heads, [measured(*case) for case in CASES])))


if __name__ == "__main__":
    main()
