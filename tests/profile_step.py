"""Times a search step on a GPU, and the same step as a CUDA graph.

    python tests/profile_step.py gpu-step.json

Of each system: a whole search of the benchmark's base models, how much of it the GPU
computes, in how many kernels, and a step in the middle of the search.  The step is then
recorded as a CUDA graph, and replayed with the same input.  What a step costs more than
its graph is work of the CPU, which starts one kernel after the other.
"""

import json
import sys
import time
from pathlib import Path
from statistics import median

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from sbnmt_plugin.search.scorer import Scorer
from sbnmt_plugin.tools.benchmark.cases import Case
from sbnmt_plugin.tools.benchmark.models import Spec, batches_of
from sbnmt_plugin.tools.benchmark.systems import SYSTEMS
from sbnmt_plugin.tools.machine import commit, machine, versions

AT, STEPS, SEARCHES, REPLAYS = 12, 6, 5, 50
BATCHES = {50: ("fairseq", "SB-NMT", "SB-NMT λ=0"), 1: ("SB-NMT λ=0",)}
MODULE = "EnsembleModel"  # how fairseq marks its own calls, which are no kernels


def milliseconds(run, times):
    """Mean time of a call, once the device has done everything."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(times):
        run()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - began) / times


def kernels(run):
    """Number of kernels of a call, and milliseconds that the GPU computes."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        run()
        torch.cuda.synchronize()
    events = [x for x in seen.events() if x.device_type == DeviceType.CUDA]
    spent = [x.device_time_total for x in events if not x.name.startswith(MODULE)]
    return len(spent), sum(spent) / 1000


class Opened:
    """A search that has done some steps of one batch."""

    def __init__(self, search, sample):
        given = {k: v for k, v in sample["net_input"].items() if k.startswith("src")}
        self.search, self.steps = search, []
        self.scorers = [Scorer.encode(model, given) for model in search.models]
        for scorer in self.scorers:
            scorer.start(search.layout)
        source = given["src_tokens"]
        self.batch = search._open(source, source.new_empty(len(source), 0))
        for _ in range(AT):
            self.step()

    def step(self):
        parents = self.search._step(self.batch, self.scorers, self.steps)
        self.batch.done |= self.search._done(self.batch, len(self.steps))
        for scorer in self.scorers:
            scorer.state.select(parents)


def graph_of(run):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    for _ in range(3):
        graph.replay()
    return graph


@torch.no_grad()
def measured(name, dtype, batch):
    system, case = SYSTEMS[name](Spec(device="cuda"), dtype), Case(batch)
    (sample,) = batches_of(system.loaded, case, "cuda")
    search = system.search(case)
    search(sample)
    whole = median(milliseconds(lambda: search(sample), 1) for _ in range(SEARCHES))
    count, computing = kernels(lambda: search(sample))
    row = {"system": name, "dtype": dtype, "batch": batch, "search, ms": whole}
    row |= {"of it the GPU computes, ms": computing, "kernels": count}
    if name != "fairseq":
        row["a step, ms"] = milliseconds(
            Opened(system.generator(case), sample).step, STEPS
        )
        graph = graph_of(Opened(system.generator(case), sample).step)
        row["its CUDA graph, ms"] = milliseconds(graph.replay, REPLAYS)
    return row


def main():
    rows = [
        measured(name, dtype, batch)
        for batch, names in BATCHES.items()
        for dtype in ("float32", "float16")
        for name in names
    ]
    origin = {"commit": commit(), "machine": machine(), "versions": versions()}
    origin["machine"] += f", {torch.cuda.get_device_name()}"
    held = {"command": f"python {' '.join(sys.argv)}", **origin, "rows": rows}
    Path(sys.argv[1]).write_text(json.dumps(held, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
