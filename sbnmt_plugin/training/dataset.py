"""Triples (source, L2R text, R2L text) as batches of two target streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from fairseq.data import FairseqDataset, LanguagePairDataset, data_utils
from torch import Tensor

from sbnmt_plugin.layout import L2R, R2L, live_places, reverse_tokens
from sbnmt_plugin.training.input_noise import PartnerNoise


class SBLanguagePairDataset(FairseqDataset):
    """fairseq's ``LanguagePairDataset`` with target streams.

    A batch is fairseq's, ``target`` with the natural-order text included, and

    * ``net_input.prev_output_tokens`` (BD, T): start symbol + tokens,
    * ``stream_target`` (BD, T): tokens + ``</s>``,
    * ``live`` (n,): places in the time-major grid (T, BD) that are no padding, by which
      model and loss tell labels from padding,
    * ``stream_lengths``: a list of BD numbers of labels,

    where row ``b * D + d`` is direction d of sentence b.  ``</s>`` follows the last
    token of its own stream and padding comes after it, so that both streams learn
    where they end.  (Departs from the authors' code, which pads before ``</s>``.)

    Args:
        pairs: the wrapped dataset of source and natural-order target.
        opposite: dataset of the R2L texts, natural order too; None where the R2L
            stream is the target itself.
        starts: (D,) first decoder input of each direction.
        directions: of the streams: (L2R, R2L), or a teacher's one.
        completions: add to a batch's ``net_input`` what a family reads beside:
            see :meth:`task_options.TaskOptions.completion`.
        noise: corrupts the inputs of sentences whose streams hold the same text.
    """

    def __init__(
        self,
        pairs: LanguagePairDataset,
        opposite: Any,
        starts: tuple[int, ...],
        directions: tuple[int, ...] = (L2R, R2L),
        completions: Sequence[Callable[[dict[str, Any]], dict[str, Any]]] = (),
        noise: PartnerNoise | None = None,
    ) -> None:
        super().__init__()
        self.noise = noise
        self.completions = completions
        self.epoch = 1
        self.left_out: tuple[int, Any] = 0, ()  # an epoch, and (n,) examples not in it
        self.pairs = pairs
        self.opposite = opposite
        self.starts = starts
        self.directions = directions
        self.tgt = pairs.tgt  # ``--prefix-size`` takes its prefixes from here
        self.src_sizes = pairs.src_sizes
        self.tgt_sizes = pairs.tgt_sizes
        if opposite is not None:  # T is the longer stream's
            self.tgt_sizes = np.maximum(pairs.tgt_sizes, opposite.sizes)

    @property
    def sizes(self) -> Any:
        """Lengths (examples, 2) of source and longer stream; (examples,) without."""
        if self.tgt_sizes is None:
            return self.src_sizes
        return np.vstack((self.src_sizes, self.tgt_sizes)).T

    def __getitem__(self, index: int) -> dict[str, Any]:
        example = self.pairs[index]
        if example["target"] is not None:
            example["opposite"] = (
                example["target"] if self.opposite is None else self.opposite[index]
            )
        return example

    def __len__(self) -> int:
        return len(self.pairs)

    def collater(
        self, samples: list[dict[str, Any]], pad_to_length: Any = None
    ) -> dict[str, Any]:
        """Make fairseq's batch with both streams: see the class.

        ``ntokens`` counts the labels of all streams, by which the loss is
        normalised.
        """
        if not samples:
            return {}
        widest = pad_to_length["target"] if pad_to_length is not None else None
        batch = self.pairs.collater(samples, pad_to_length)
        for complete in self.completions:
            batch["net_input"] = complete(batch["net_input"])
        if batch.get("target") is None:
            return batch
        by_id = {int(sample["id"]): sample for sample in samples}
        inputs, labels = [], []
        for index in batch["id"].tolist():  # fairseq has sorted them by length
            sample = by_id[index]
            same = torch.equal(sample["target"], sample["opposite"])
            for direction, start in zip(self.directions, self.starts):
                stream = sample["target"]
                if direction == R2L:
                    stream = reverse_tokens(sample["opposite"])
                labels.append(stream)
                words = stream[:-1]
                if self.noise is not None and same:
                    words = self.noise(words, self.tgt, self.epoch, index, direction)
                inputs.append(torch.cat([stream.new_tensor([start]), words]))
        batch["net_input"]["prev_output_tokens"] = self._pad(inputs, widest)
        batch["stream_target"] = self._pad(labels, widest)
        width = batch["stream_target"].size(1)
        lengths = [len(stream) for stream in labels]
        real = torch.arange(width) < torch.tensor(lengths)[:, None]
        batch["live"], batch["stream_lengths"] = live_places(real), lengths
        batch["ntokens"] = sum(lengths)
        return batch

    def set_epoch(self, epoch: int) -> None:
        """Begin an epoch."""
        super().set_epoch(epoch)
        self.epoch = epoch

    def _pad(self, rows: list[Tensor], width: int | None) -> Tensor:
        return data_utils.collate_tokens(
            rows,
            self.pairs.src_dict.pad(),
            pad_to_length=width,
            pad_to_multiple=self.pairs.pad_to_multiple,
        )

    def num_tokens_vec(self, indices: Any) -> Any:
        """Count max(source, D * longer stream), examples' shares of ``--max-tokens``.

        The decoder holds D rows of the longer stream.  A batch of the same
        ``--max-tokens`` therefore has about half the sentences of a Transformer's, and
        takes the same memory.
        """
        sizes = self.src_sizes[indices]
        if self.tgt_sizes is None:
            return sizes
        return np.maximum(sizes, len(self.directions) * self.tgt_sizes[indices])

    def batch_by_size(
        self,
        indices: Any,
        max_tokens: int | None = None,
        max_sentences: int | None = None,
        required_batch_size_multiple: int = 1,
    ) -> list[Any]:
        """Make fairseq's batches, and the last one also where it is no full multiple.

        ve-fairseq 0.12.3 drops a last batch whose size is not a multiple of
        ``--required-batch-size-multiple``: up to a batch of every epoch, and of
        every test set, silently.

        Raises:
            ValueError: no example is left, which fairseq's batches do not allow; a
                multiple below 1, which ends fairseq by a signal.
        """
        if required_batch_size_multiple < 1:
            raise ValueError(
                "--required-batch-size-multiple must be ≥ 1, but is "
                f"{required_batch_size_multiple} instead"
            )
        if not len(indices):
            if len(self.left_out[1]):
                return []  # an epoch that has been trained on before
            raise ValueError(
                "a data set must have at least one example that fits into a batch, but "
                "none is left: give texts that are not empty, or raise --max-tokens, "
                "--max-source-positions and --max-target-positions"
            )
        batches = list(
            super().batch_by_size(
                indices, max_tokens, max_sentences, required_batch_size_multiple
            )
        )
        kept = sum(len(batch) for batch in batches)
        return batches if kept == len(indices) else [*batches, indices[kept:]]

    # both read the lengths of source and longer stream
    size = LanguagePairDataset.size
    filter_indices_by_size = LanguagePairDataset.filter_indices_by_size

    def ordered_indices(self) -> Any:
        """Return fairseq's order by length, without what an epoch leaves out."""
        indices = self.pairs.ordered_indices()
        epoch, seen = self.left_out
        return indices[~np.isin(indices, seen)] if epoch == self.epoch else indices


def with_stream_labels(sample: dict[str, Any]) -> dict[str, Any]:
    """Return a batch for a criterion, whose ``target`` (BD, T) are the streams' labels.

    Elsewhere ``target`` is the natural-order text, which fairseq prints and scores.
    """
    if not sample:
        return sample
    return {**sample, "target": sample["stream_target"]}
