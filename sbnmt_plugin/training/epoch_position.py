"""The position in an epoch, by its sentences: other batches may go on from there.

fairseq keeps it as a number of batches of one process.  With another number of
processes, or batches of another size, it would leave out a part of the epoch, or train
on one twice, and say nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from fairseq.data.iterators import EpochBatchIterator

logger = logging.getLogger(__name__)

# what batches, their order and their places depend on, beside data and epoch
SETTINGS = ("required_batch_size_multiple", "seed", "num_shards", "grouped_shuffling")
Part = tuple[dict[str, Any], bool, int]  # settings, whether shuffled, batches of each


class ResumableIterator(EpochBatchIterator):
    """fairseq's iterator of epochs, whose state says what its batches depend on.

    An iterator of fairseq's becomes one by :meth:`adopt`.

    Attributes:
        settings: arguments of the task's ``get_batch_iterator``.
        make: makes an iterator of other settings, for the same data.
        earlier: parts of an epoch that were trained on with other settings, by epoch.
    """

    settings: dict[str, Any]
    make: Callable[..., EpochBatchIterator]
    earlier: dict[int, list[Part]]

    @classmethod
    def adopt(
        cls, made: Any, settings: dict[str, Any], make: Callable[..., Any]
    ) -> ResumableIterator:
        """Turn an iterator of fairseq's into one of these; itself, if it is one."""
        if not isinstance(made, cls):
            made.__class__ = cls
            made.settings, made.make, made.earlier = settings, make, {}
        return cast(ResumableIterator, made)

    def state_dict(self) -> dict[str, Any]:
        """Return fairseq's state, and what its position means."""
        state: dict[str, Any] = super().state_dict()
        earlier = self.earlier.get(state["epoch"], [])
        return {**state, "settings": self.settings, "earlier": earlier}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where a training stopped, with the sentences that are left.

        A state of fairseq's own, or of an earlier version, has no settings: it is taken
        for one of the same.
        """
        state = dict(state_dict)
        epoch, place = state["epoch"], state.get("iterations_in_epoch", 0)
        settings = state.get("settings", self.settings)
        earlier = [tuple(part) for part in state.get("earlier", ())]
        if place and settings != self.settings:
            earlier.append((settings, state.get("shuffle", True), place))
            state["iterations_in_epoch"] = 0
        if earlier:
            self._leave_out(epoch, cast(list[Part], earlier))
        super().load_state_dict(state)

    def _leave_out(self, epoch: int, earlier: list[Part]) -> None:
        """Take the sentences of earlier parts, each made once more, out of an epoch."""
        data: Any = self.dataset
        seen = np.zeros(0, dtype=np.int64)
        for settings, shuffled, place in earlier:
            data.left_out = epoch, seen
            old = self.make(**settings, epoch=epoch)
            for process in range(old.num_shards):
                old.shard_id = process
                batches = old.ordered_batches(epoch, False, shuffled)[:place]
                seen = np.concatenate([seen, *batches]).astype(np.int64)  # [] is float
        data.left_out = epoch, seen
        self.earlier, self._frozen_batches = {epoch: earlier}, None
        logger.info(
            "epoch %d goes on after %s sentences: number of processes or size of "
            "batches differ from those before",
            *(epoch, f"{len(seen):,}"),
        )
