"""Training: an update of as many sentences by fairseq's Transformer and by ours."""

from __future__ import annotations

import socket
import time
from argparse import Namespace
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
)
from fairseq.data import FairseqDataset, LanguagePairDataset, ListDataset
from fairseq.distributed import ModuleProxyWrapper
from fairseq.distributed.legacy_distributed_data_parallel import (
    LegacyDistributedDataParallel,
)
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig

from sbnmt_plugin.layout import L2R, R2L
from sbnmt_plugin.network.cpu_products import bfloat16_products, for_processor
from sbnmt_plugin.symbols import TAGS
from sbnmt_plugin.tools.benchmark.models import SEED, Loaded, Spec, load, to_device
from sbnmt_plugin.tools.benchmark.results import Row
from sbnmt_plugin.tools.benchmark.stations import Rounds, Stations, compared, timed
from sbnmt_plugin.training.criterion import SBLabelSmoothedCrossEntropy
from sbnmt_plugin.training.dataset import SBLanguagePairDataset, with_stream_labels

BASELINE = "fairseq"
BFLOAT16 = "SB-NMT, --sb-autocast"  # on a CPU; a GPU trains everything in float16
SYSTEMS = {"fairseq": "l2r", "SB-NMT": "both", BFLOAT16: "both", "ABD-NMT": "abd"}
POOL = 8  # batches of sentences to choose one of equal lengths from
PARTS = ("forward", "backward", "optimiser")


@dataclass(frozen=True)
class Case:
    """A training of a few updates.

    Attributes:
        sentences: in an update, all processes together.
        length: mean number of tokens of a source sentence.
        processes: that share an update.
        updates: that are timed together.
    """

    sentences: int = 32
    length: int = 25
    processes: int = 1
    updates: int = 1


def made_up_triples(loaded: Loaded, case: Case, both: bool) -> FairseqDataset:
    """Make random sentences; both their targets are about as long as the source."""
    random = np.random.default_rng(SEED)
    words = loaded.words
    last = len(words) - len(TAGS)
    count = POOL * case.sentences

    def text(lengths: Any) -> ListDataset:
        rows = [random.integers(words.nspecial, last, n) for n in lengths]
        ends = [torch.tensor([*row, words.eos()]) for row in rows]
        return ListDataset(ends, np.array([len(row) for row in ends]))

    def near(lengths: Any) -> Any:
        return (lengths * random.normal(1, 0.1, count)).round().clip(2).astype(int)

    lengths = random.normal(case.length, case.length / 3, count).round()
    lengths = lengths.clip(2).astype(int)
    source, gold = text(lengths), text(near(lengths))
    pairs = LanguagePairDataset(
        source, source.sizes, words, gold, gold.sizes, words, shuffle=False
    )
    if not both:
        return pairs
    starts = tuple(words.index(tag) for tag in TAGS)
    pseudo = text(near(gold.sizes))
    return SBLanguagePairDataset(pairs, pseudo, starts, (L2R, R2L))


class Station:
    """A system in training, in its process.

    Args:
        rank, port: this process among the case's, and where they meet.
    """

    def __init__(
        self, spec: Spec, name: str, case: Case, dropout: float, rank: int, port: int
    ) -> None:
        self.device = spec.device
        if spec.device == "cuda" and case.processes > torch.cuda.device_count():
            raise ValueError(
                f"{case.processes} processes need as many GPUs, but torch sees "
                f"{torch.cuda.device_count()}"
            )
        if case.processes > 1:
            torch.distributed.init_process_group(
                "nccl" if spec.device == "cuda" else "gloo",
                init_method=f"tcp://127.0.0.1:{port}",
                rank=rank,
                world_size=case.processes,
            )
            if spec.device == "cuda":
                torch.cuda.set_device(rank)
        self.loaded = load(spec, SYSTEMS[name], dropout=dropout)
        both = name != BASELINE
        dataset = made_up_triples(self.loaded, case, both)
        order = dataset.ordered_indices()
        batches = np.array_split(order, POOL)
        chosen = batches[POOL // 2][rank :: case.processes]
        sample = dataset.collater([dataset[i] for i in chosen])
        self.sample = to_device(sample, spec.device)
        task = Namespace(
            target_dictionary=self.loaded.words, directions=(L2R, R2L), source=None
        )
        kind = LabelSmoothedCrossEntropyCriterion
        if both:
            kind = SBLabelSmoothedCrossEntropy
            self.sample = with_stream_labels(self.sample)
        self.criterion = kind(task, False, 0.1, 0, False)
        self.model = self.loaded.model.train()
        self.bfloat16 = name == BFLOAT16
        if both:
            for_processor(self.model)
        if case.processes > 1:
            wrapped = LegacyDistributedDataParallel(
                self.model, torch.distributed.group.WORLD
            )
            self.model = ModuleProxyWrapper(wrapped)
        options = FairseqAdamConfig(
            lr=[1e-5], adam_betas="(0.9, 0.98)", adam_eps=1e-9, tpu=False
        )
        self.optimiser = FairseqAdam(options, list(self.model.parameters()))
        self.case = case

    def _clock(self) -> float:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def _update(self) -> list[float]:
        """Run an update.

        Returns:
            When it began, and when each of :data:`PARTS` was done.
        """
        at = [self._clock()]
        precision = bfloat16_products(torch.device("cpu"), self.bfloat16)
        if self.device == "cuda":
            precision = torch.autocast("cuda", torch.float16)
        with precision:
            loss, size, _ = self.criterion(self.model, self.sample)
        at.append(self._clock())
        self.optimiser.backward(loss / size)
        if self.case.processes > 1:
            self.model.all_reduce_grads()
        at.append(self._clock())
        self.optimiser.step()
        self.optimiser.zero_grad()
        at.append(self._clock())
        return at

    def prepare(self) -> Row:
        """Run an update that is not timed, and return what its batch holds."""
        self._update()
        target = self.sample["target"]
        return {
            "sentences": len(self.sample["id"]),
            "labels": int(target.ne(self.loaded.words.pad()).sum()),
            "padding": float(target.eq(self.loaded.words.pad()).float().mean()),
        }

    def measure(self) -> Row:
        """Time some updates, and the parts of each."""

        def updates() -> list[list[float]]:
            return [self._update() for _ in range(self.case.updates)]

        times, seconds, memory = timed(updates, self.device)
        found: Row = {"seconds": seconds / self.case.updates, "memory": memory}
        for place, part in enumerate(PARTS):
            found[part] = median(at[place + 1] - at[place] for at in times)
        return found


def free_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_case(
    spec: Spec,
    case: Case,
    systems: list[str],
    dropout: float,
    rounds: int,
    threads: int,
) -> list[Row]:
    """Measure systems in turn; a row each, or the reason for which it failed."""

    def arguments(name: str) -> list[tuple[Any, ...]]:
        port = free_port()
        ranks = range(case.processes)
        return [(spec, name, case, dropout, rank, port) for rank in ranks]

    place = "sbnmt_plugin.tools.benchmark.training:Station"
    each = max(1, threads // case.processes)
    with Stations(place, arguments, systems, each) as stations:
        heads, runs = stations.measure(rounds, "training")
    baseline = None if BASELINE in stations.failed else runs[BASELINE]
    sizes = {name: getattr(case, name) for name in ("processes", "length", "sentences")}
    return stations.rows(
        lambda name: {"system": name, **sizes},
        lambda name: summary(heads[name], runs[name], baseline),
    )


def summary(heads: list[Row], runs: Rounds, baseline: Rounds | None) -> Row:
    """Return medians over the rounds of a system's processes."""
    times = compared(runs, baseline)
    sentences = sum(head["sentences"] for head in heads)
    labels = sum(head["labels"] for head in heads)
    return {
        "sentences": sentences,
        "labels": labels,
        "padding": heads[0]["padding"],
        "sentences/s": sentences / median(times["seconds"]),
        "tokens/s": labels / median(times["seconds"]),
        **times,
        **{part: median(group[0][part] for group in runs) for part in PARTS},
    }
