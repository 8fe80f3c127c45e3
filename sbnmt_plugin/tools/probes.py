"""Probes of a model: its search and its loss as trained, and with parts taken away.

``sbnmt probe-interaction`` and ``sbnmt probe-reading`` tell what each of them means.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from fairseq import utils

from sbnmt_plugin.layout import RANK, Layout
from sbnmt_plugin.network.protocol import Ablatable
from sbnmt_plugin.tools.translator import Translator
from sbnmt_plugin.training.read_bits import bits, halves


class Prober(Translator):
    """A translator whose batches have two sentences at least, if there are two."""

    def shifted(self, shift: int) -> None:
        """Search with partners moved by ``shift`` sentences from now on."""
        asked = self.generator
        pairing = replace(asked.options.pairing, shift=shift)
        options = replace(asked.options, pairing=pairing)
        self.generator = type(asked)(asked.models, asked.symbols, options)

    def grouped(self, batches: Any) -> list[list[int]]:
        """A batch of one sentence joins the next; the last one joins the one before."""
        groups: list[list[int]] = []
        for batch in batches:
            if groups and len(groups[-1]) == 1:
                groups[-1] += list(batch)
            else:
                groups.append(list(batch))
        if len(groups) > 1 and len(groups[-1]) == 1:
            alone = groups.pop()
            groups[-1] += alone
        return groups


@contextlib.contextmanager
def without(part: str, models: list[Any]) -> Iterator[None]:
    """Take away what models read, by its name: see :class:`protocol.Ablatable`.

    Args:
        part: ``future``, what a stream reads of the other one, or ``histories``.
    """
    found = [
        module.ablate()
        for model in models
        for module in model.modules()
        if isinstance(module, Ablatable) and module.ablated == part
    ]
    try:
        yield
    finally:
        for handle in found:
            handle.remove()


# the change of the models, and by how many sentences partners are moved
SETTINGS: dict[str, tuple[Callable[[list[Any]], Any], int]] = {
    "as trained": (nullcontext, 0),
    "λ = 0": (partial(without, "future"), 0),
    "partners shuffled": (nullcontext, 1),
}
HALVES = ("first half", "second half")


def bits_by_half(
    model: Any, batches: list[dict[str, Any]], pad: int, shift: int = 0
) -> list[float]:
    """Measure mean bits a token in each half.

    Args:
        shift: sentences that partners are moved by.
    """
    layout = Layout(pairing=replace(RANK, shift=shift))
    total: dict[int, float] = defaultdict(float)
    count: dict[int, int] = defaultdict(int)
    for batch in batches:
        each = bits(model, batch, layout)
        for half, mask in enumerate(halves(batch["stream_target"], pad)):
            total[half] += float(each[mask].sum())
            count[half] += int(mask.sum())
    return [round(total[half] / max(1, count[half]), 3) for half in (0, 1)]


def gold_batches(translator: Translator, subset: str) -> list[dict[str, Any]]:
    """Make batches of two sentences or more with the gold text in both streams."""
    task = translator.task
    task.load_dataset(subset)
    batches = task.get_batch_iterator(
        task.dataset(subset),
        max_tokens=translator.max_tokens,
        max_sentences=translator.cfg.dataset.batch_size,
        max_positions=translator.max_positions,
        ignore_invalid_inputs=True,
    ).next_epoch_itr(shuffle=False)
    found = [batch for batch in batches if len(batch.get("id", [])) > 1]
    if not found:
        raise ValueError(
            f"--subset {subset} must give batches of two sentences at least, but gives "
            "none: raise --max-tokens or --batch-size"
        )
    return [utils.move_to_cuda(b) if translator.cuda else b for b in found]
