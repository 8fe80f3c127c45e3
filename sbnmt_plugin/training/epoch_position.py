"""The position in an epoch by its sentences, from which other batches may go on.

fairseq's is a number of batches of one process: with other processes, or batches of
another size, a part of the epoch would be left out, or come twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fairseq.data.iterators import EpochBatchIterator

logger = logging.getLogger(__name__)

# what batches and their order depend on, beside the data and the epoch
SIZE = ("max_tokens", "max_sentences", "max_positions", "ignore_invalid_inputs")
SETTINGS = ("required_batch_size_multiple", "seed", "num_shards", "grouped_shuffling")
Part = tuple[dict[str, Any], bool, int]  # settings, whether shuffled, batches of each


class ResumableIterator(EpochBatchIterator):
    """fairseq's iterator, whose state says what its batches depend on.

    Attributes:
        settings: arguments of the task's ``get_batch_iterator``.
        make: makes an iterator of other settings, for the same data.
        update_freq: batches of an update, by epoch; empty where nobody trains.
        sharded: whether epochs differ in data.
        earlier: parts of an epoch that were trained on with other settings, by epoch.
    """

    settings: dict[str, Any]
    make: Callable[..., EpochBatchIterator]
    update_freq: Sequence[int]
    sharded: bool
    earlier: dict[int, list[Part]] = {}  # noqa: RUF012 (replaced, never changed)

    @property
    def frozen_batches(self) -> Any:
        """All batches of an epoch, as many for each process.

        fairseq gives some processes an empty last one, and then leaves out all labels
        of theirs in that update, or leaves the last batches of others out.  So it still
        is where no batch has two sentences.
        """
        if self._frozen_batches is None:
            batches: list[Any] = list(super().frozen_batches)
            while len(batches) % self.num_shards:
                place = max(range(len(batches)), key=lambda i: len(batches[i]))
                half = len(batches[place]) // 2
                if not half:
                    break
                halves = batches[place][:half], batches[place][half:]
                batches[place : place + 1] = halves
            self._frozen_batches: Any = tuple(batches)
        return self._frozen_batches

    def state_dict(self) -> dict[str, Any]:
        """Return fairseq's state, and what its position means."""
        state: dict[str, Any] = super().state_dict()
        earlier = self.earlier.get(state["epoch"], [])
        return {**state, "settings": self.settings, "earlier": earlier}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on where a training stopped, with the sentences that are left.

        A state without settings, of an earlier version, is taken for one of the same.
        """
        place, earlier = state_dict["iterations_in_epoch"], state_dict.get("earlier")
        earlier, settings = [*(earlier or ())], state_dict.get("settings")
        if place and settings not in (None, self.settings):
            earlier.append((settings, state_dict["shuffle"], place))
            state_dict = {**state_dict, "iterations_in_epoch": 0}
        if earlier:
            self._leave_out(state_dict["epoch"], earlier)
        epoch, place = state_dict["epoch"], state_dict["iterations_in_epoch"]
        if (place or earlier) and self._is_over(epoch, place):
            if self.sharded:  # the next one is of other data than this iterator's
                raise ValueError(
                    f"epoch {epoch} of sharded data has no update left in batches of "
                    "this size: go on with --update-freq and --max-tokens as before"
                )
            logger.info("epoch %d has no update left: the next one begins", epoch)
            state_dict = {**state_dict, "epoch": epoch + 1, "iterations_in_epoch": 0}
            self.earlier, self._frozen_batches = {}, None
        super().load_state_dict(state_dict)

    def _is_over(self, epoch: int, place: int) -> bool:
        """Tell whether no update follows a place, without which fairseq would fail."""
        if not self.update_freq:
            return False
        size = self.update_freq[min(epoch, len(self.update_freq)) - 1]
        if self.skip_remainder_batch:  # and the last batch
            return (len(self) - 1) // size <= -(-place // size)
        return -(-len(self) // size) <= -(-place // size)

    def _leave_out(self, epoch: int, earlier: list[Part]) -> None:
        """Take the sentences of earlier parts, whose batches are made anew, out."""
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
        logger.info("epoch %d goes on in other batches after %d", epoch, len(seen))
