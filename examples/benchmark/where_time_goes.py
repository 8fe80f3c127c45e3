#!/usr/bin/env python3
"""Say where the time of decoding goes, by kinds of operators.

    where_time_goes.py [--case base-50-25-4] [--work work/toy] [--threads 1]

One translation of a case of the benchmark (or of --batches batches of a recipe's test
set) by stock fairseq and by SB-NMT in both types of numbers, under torch.profiler:
shares of the operators' own time.  The last two lines are their sum, and a translation
without the profiler, which lengthens every call.
"""

from __future__ import annotations

import time

import torch
from torch.profiler import ProfilerActivity, profile

from sbnmt_plugin import quiet
from sbnmt_plugin.tools.benchmark.cases import named
from sbnmt_plugin.tools.benchmark.decoding import Station
from sbnmt_plugin.tools.benchmark.models import Spec
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.synthetic import parser_of

COLUMNS = (("fairseq", "float32"), ("SB-NMT", "float32"), ("SB-NMT", "bfloat16"))
KINDS = {
    "products of weights": ("addmm", "mm", "_linear_pointwise"),
    "attention": (
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_attention_math",
        "baddbmm",
        "bmm",
        "_softmax",
        "masked_fill_",
        "masked_fill",
    ),
    "choice of tokens, normaliser": (
        "topk",
        "sort",
        "_log_softmax",
        "amax",
        "sub",
        "exp_",
        "sum",
        "log_",
        "div_",
    ),
    "moved, joined, copied": (
        "copy_",
        "cat",
        "index_select",
        "index",
        "index_put_",
        "gather",
        "flip",
        "clone",
        "fill_",
    ),
    "norms, sums, activations": (
        "native_layer_norm",
        "add",
        "add_",
        "mul",
        "mul_",
        "tanh",
        "clamp_min",
        "relu",
        "embedding",
    ),
}
OTHERS = "views, and operators of the rest"


def kind_of(operator: str) -> str:
    """Where an operator belongs, by torch's name for it."""
    name = operator.rpartition("::")[2]
    return next((kind for kind, names in KINDS.items() if name in names), OTHERS)


def shares(station: Station) -> tuple[dict[str, float], float]:
    """Seconds of all operators by kind, and of a run without the profiler."""
    start = time.perf_counter()
    station.translate()
    seconds = time.perf_counter() - start
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        station.translate()
    found = dict.fromkeys([*KINDS, OTHERS], 0.0)
    for event in profiler.key_averages():
        if "::" in event.key:  # the others are marks of whole functions
            found[kind_of(event.key)] += event.self_cpu_time_total / 1e6
    return found, seconds


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--case", default="base-50-25-4", help="SIZE-BATCH-LENGTH-BEAM")
    parser.add_argument("--work", help="a recipe's folder, whose models are taken")
    parser.add_argument("--batches", type=int, default=6, help="of the test set")
    parser.add_argument("--threads", type=int, default=1, help="of torch; default: 1")
    args = parser.parse_args()
    quiet.only_warnings("fairseq")
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    models = args.case.rsplit("-", 3)[0]
    spec = Spec(work=args.work) if args.work else Spec(size=models)
    case = named(args.case, models, args.work is not None)
    columns = []
    for name, dtype in COLUMNS:
        station = Station(spec, name, dtype)
        station.prepare(case)
        station.batches = station.batches[: args.batches]
        found, seconds = shares(station)
        total = sum(found.values())
        cells = [f"{100 * value / total:.0f} %" for value in found.values()]
        columns.append([*cells, f"{total:.2f}", f"{seconds:.2f}"])
    rows = [*KINDS, OTHERS, "operators, s, under the profiler", "all, s, without it"]
    heads = ["", *(f"{name}, {dtype}" for name, dtype in COLUMNS)]
    table = [[row, *cells] for row, *cells in zip(rows, *columns)]
    print("\n".join(aligned(heads, table)))


if __name__ == "__main__":
    main()
