"""Decoding: a system translates a case's batches, and its time and memory are taken."""

from __future__ import annotations

import contextlib
import ctypes
import re
import resource
import time
from itertools import pairwise
from pathlib import Path

import torch

from sbnmt_plugin.symbols import BLANK
from sbnmt_plugin.tools.benchmark.cases import Case
from sbnmt_plugin.tools.benchmark.models import Batch, Spec, batches_of
from sbnmt_plugin.tools.benchmark.results import Row
from sbnmt_plugin.tools.benchmark.systems import CONVERTED, SYSTEMS
from sbnmt_plugin.tools.subwords import undoing

GIB = 2**30
Text = tuple[int, list[int]]  # number of a sentence, tokens with </s>


def reset_peak(device: str) -> None:
    """Forget the peak of memory so far, and give freed memory back to the system."""
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        return
    with contextlib.suppress(OSError, AttributeError):  # else it is the process's peak
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory(device: str) -> float:
    """Return the peak since :func:`reset_peak`, weights included.

    Returns:
        GiB: of the GPU's memory, or of memory that is resident.
    """
    if device == "cuda":
        return float(torch.cuda.max_memory_allocated()) / GIB
    path = Path("/proc/self/status")
    text = path.read_text() if path.exists() else ""
    if (found := re.search(r"VmHWM:\s+(\d+)", text)) is None:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB
    return int(found[1]) * 1024 / GIB


def knows_memory(name: str, device: str) -> bool:
    """Tell whether torch knows what a system takes: not CTranslate2's of a GPU."""
    return device == "cpu" or name not in CONVERTED


def clock(device: str) -> float:
    """Return the time in seconds, once the device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


class Station:
    """A system that is measured.

    Args:
        name, dtype: a name of :data:`systems.SYSTEMS`, and the type of its weights.
    """

    def __init__(self, spec: Spec, name: str, dtype: str) -> None:
        self.device = spec.device
        self.system = SYSTEMS[name](spec, dtype)
        self.knows_memory = knows_memory(name, spec.device)

    def prepare(self, case: Case) -> None:
        """Make batches and search, and run them once without timing."""
        self.batches = batches_of(self.system.loaded, case, self.device)
        self.search = self.system.search(case)
        self.translate()

    def answers(self, sample: Batch) -> list[Text]:
        """Return the translations of a batch."""
        return list(zip(sample["id"].tolist(), self.search(sample)))

    def translate(self) -> list[Text]:
        """Return the translations of all batches."""
        return [text for sample in self.batches for text in self.answers(sample)]

    def measure(self) -> Row:
        """Translate once.

        Returns:
            Seconds, of each batch too, what was translated in them, and GiB, if known.
        """
        reset_peak(self.device)
        self.found: list[Text] = []
        times = [clock(self.device)]
        for sample in self.batches:
            self.found += self.answers(sample)
            times.append(clock(self.device))
        return {
            "seconds": times[-1] - times[0],
            "each": [end - start for start, end in pairwise(times)],
            "memory": peak_memory(self.device) if self.knows_memory else None,
            "sentences": len(self.found),
            "tokens": sum(len(tokens) for _, tokens in self.found),
        }

    def texts(self) -> tuple[list[str], list[str]]:
        """Return what was measured, in the test set's order, and its references.

        Subwords are joined, for BLEU.
        """
        words = self.system.loaded.words
        gold = self.system.loaded.task.dataset("test").tgt
        undo = undoing(any(word.startswith(BLANK) for word in words.symbols))
        found = (tokens for _, tokens in sorted(self.found))
        return (
            [undo(words.string(tokens)) for tokens in found],
            [undo(words.string(tokens)) for tokens in gold],
        )
