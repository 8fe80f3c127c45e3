"""One checkpoint as it is and crippled: what the interaction is worth, what is read.

as trained          the search of the paper, or the text in the other stream
λ = 0               nothing of the future attention reaches the model
partners shuffled   the partner is another sentence's of the batch, always the same one

Of an ABD-NMT model, whose forward decoder reads a whole text ȳ: nothing of ȳ, or that
of another sentence.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from fairseq import utils

from sbnmt_plugin.families.abd.decoder import ReverseAttention
from sbnmt_plugin.families.ba.attention import HistoryAttention
from sbnmt_plugin.layout import RANK, Layout
from sbnmt_plugin.network.attention import SBSelfAttention
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
        """A sentence alone joins its neighbours."""
        groups: list[list[int]] = []
        for batch in batches:
            if groups and 1 in (len(batch), len(groups[-1])):
                groups[-1] += list(batch)
            else:
                groups.append(list(batch))
        return groups


@contextlib.contextmanager
def without_future(models: list[Any]) -> Iterator[None]:
    """Fuse without a future, λ = 0 for linear, tanh and relu; of an ABD-NMT model, add
    nothing of what is read."""
    hooks: list[Any] = []
    for module in (module for model in models for module in model.modules()):
        if isinstance(module, ReverseAttention):
            hooks.append(
                module.register_forward_hook(
                    lambda _, given, found: (torch.zeros_like(found[0]), None)
                )
            )
        elif isinstance(module, SBSelfAttention):
            hooks.append(
                module.fusion.register_forward_pre_hook(lambda _, pair: (pair[0], None))
            )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def without_histories(models: list[Any]) -> Iterator[None]:
    """Give the attention of a BA-NMT model histories of zeros at every step."""

    def forget(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
        *others, histories = given
        return *others, [torch.zeros_like(history) for history in histories]

    hooks = [
        module.register_forward_pre_hook(forget)
        for model in models
        for module in model.modules()
        if isinstance(module, HistoryAttention)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


# what is done to the models, and by how many sentences partners are moved
SETTINGS: dict[str, tuple[Callable[[list[Any]], Any], int]] = {
    "as trained": (nullcontext, 0),
    "λ = 0": (without_future, 0),
    "partners shuffled": (nullcontext, 1),
}
HALVES = ("first half", "second half")


def bits_by_half(
    model: Any, batches: list[dict[str, Any]], pad: int, shift: int = 0
) -> list[float]:
    """Mean bits a token in each half.

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
    """Batches of at least two sentences with the gold text in both streams."""
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
