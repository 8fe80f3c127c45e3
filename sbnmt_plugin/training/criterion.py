"""Label-smoothed cross-entropy over both directions (paper, equation 14)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from fairseq import utils
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.logging import metrics
from torch import Tensor

from sbnmt_plugin.layout import NAMES
from sbnmt_plugin.network.fairseq_decoder import DECODERS
from sbnmt_plugin.task_options import option
from sbnmt_plugin.training.smoothed_loss import smoothed_loss

Values = tuple[Tensor, Tensor, Tensor]  # loss, -log p, whether the best token is right


@dataclass
class SBCriterionConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """fairseq's options, with the paper's ε as default."""

    label_smoothing: float = option(
        0.1, "epsilon for label smoothing, 0 means no label smoothing"
    )


def total(logging_outputs: list[dict[str, Any]], key: str) -> Any:
    """Add up a value over processes and batches, 0 where one has none."""
    return sum(log.get(key, 0) for log in logging_outputs)


def projects_rows(model: Any) -> bool:
    """Tell whether a model's logits are one linear layer on its decoder's features.

    A family's decoder says so by its attribute ``projects_rows``; of fairseq's own only
    the Transformer is known to be such.
    """
    decoder: Any = getattr(model, "decoder", None)
    if type(decoder) in DECODERS:
        return decoder.adaptive_softmax is None
    return bool(getattr(decoder, "projects_rows", False))


@contextmanager
def live_rows_alone(model: Any, live: Tensor) -> Iterator[None]:
    """Make a model compute logits of live positions alone, (n, V), not (B, T, V).

    A hook selects rows of the last layer's input within the model's own forward:
    every wrapper of distributed training sees its parameters used where it expects
    them, and padding costs no logits.

    Args:
        live: (n,) places in the time-major grid (T, B).
    """

    def pick(layer: Any, inputs: tuple[Tensor]) -> tuple[Tensor]:
        (features,) = inputs  # (B, T, C)
        return (features.transpose(0, 1).flatten(0, 1).index_select(0, live),)

    hook = model.decoder.output_projection.register_forward_pre_hook(pick)
    try:
        yield
    finally:
        hook.remove()


@register_criterion("sb_label_smoothed_cross_entropy", dataclass=SBCriterionConfig)
class SBLabelSmoothedCrossEntropy(LabelSmoothedCrossEntropyCriterion):
    """Sum over the labels of both streams, normalised by their number.

    Departs from the paper, which averages over sentences (``--sentence-avg`` does
    that) and does not mention smoothing in the formula.

    Besides fairseq's values, loss, nll and ppl (and accuracy) are logged by
    direction.  A teacher's single stream gives its own direction's values.

    Raises:
        ValueError: the task does not make streams.

    Attributes:
        flag: its name on the command line.
        arch, known_by: the one family that it is for, and an attribute that only models
            of that family have; "": any.
        known_names: of all streams that may be logged.
        names: of a sentence's streams, in their order.
    """

    flag = "sb_label_smoothed_cross_entropy"
    arch = known_by = ""
    known_names: tuple[str, ...] = NAMES

    def __init__(
        self,
        task: Any,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int,
        report_accuracy: bool,
    ) -> None:
        super().__init__(
            task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy
        )
        self.names = self.streams_of(task)
        if not self.names:
            raise ValueError(
                f"--criterion {self.flag} needs the streams of --task sb_translation"
            )

    def streams_of(self, task: Any) -> tuple[str, ...]:
        """Name the streams of a sentence of this task."""
        return tuple(NAMES[d] for d in getattr(task, "directions", ()))

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """Compute the loss of a batch.

        Args:
            sample: fairseq's batch, whose ``target`` is (BD, T) here: the task
                hands the streams' labels to every criterion under that name.

        Returns:
            loss: the sum over the labels, or (BDT, 1) without ``reduce``.
            sample_size: labels, or sentences with ``--sentence-avg``.
            logging outputs, sums that may be added up over processes.

        Raises:
            ValueError: a model of another family than the criterion's.
        """
        if self.known_by and not hasattr(model, self.known_by):
            raise ValueError(
                f"--criterion {self.flag} is for --arch {self.arch}: for another leave "
                "it to sb_label_smoothed_cross_entropy"
            )
        (loss, nll, correct), beside = self._by_label(model, sample)
        sentences = sample["nsentences"]
        sample_size = sentences if self.sentence_avg else sample["ntokens"]
        log: dict[str, Any] = {
            "loss": loss.data.sum(),
            "nll_loss": nll.sum(),
            "ntokens": sample["ntokens"],
            "nsentences": sentences,
            "sample_size": sample_size,
            **beside,
        }
        values = {"loss": loss.data, "nll_loss": nll}
        # counts of labels come from the collater: no host-device synchronisation
        skipped, streams = self.ignore_prefix_size, len(self.names)
        labels = [max(0, length - skipped) for length in sample["stream_lengths"]]
        if self.report_accuracy:
            values["n_correct"] = correct
            log["n_correct"], log["total"] = correct.sum(), sum(labels)
        for place, name in enumerate(self.names):
            for key, value in values.items():  # (BD, T) -> (B, D, T)
                grouped = value.view(sentences, streams, -1)
                log[f"{key}_{name}"] = grouped[:, place].sum()
            log[f"labels_{name}"] = sum(labels[place::streams])
        return loss.sum() if reduce else loss.reshape(-1, 1), sample_size, log

    def _by_label(
        self, model: Any, sample: dict[str, Any]
    ) -> tuple[Values, dict[str, Any]]:
        """Compute loss and -log p, and whether the best token is right.

        Models of both directions compute logits of live positions alone, and so do
        those that project rows (see :func:`projects_rows`).  Any other computes
        log-probabilities everywhere, which are logits of themselves.

        Returns:
            (BD, T) each, 0 where no label counts: at padding, and in
            ``--ignore-prefix-size``; and other values to be logged, as sums.
        """
        live = sample["live"]
        if getattr(model, "bidirectional", False):
            scores, _ = model(**sample["net_input"], live=live)  # (n, V)
        elif projects_rows(model):
            with live_rows_alone(model, live):
                scores, _ = model(**sample["net_input"])  # (n, V)
        else:
            output = model(**sample["net_input"])
            lprobs = model.get_normalized_probs(output, log_probs=True)
            scores = lprobs.transpose(0, 1).flatten(0, 1).index_select(0, live)
        return self.placed(scores, sample["target"], live), {}

    def placed(self, scores: Tensor, labels: Tensor, live: Tensor) -> Values:
        """Compute :data:`Values`, each at its label's place: see :meth:`_by_label`.

        Args:
            scores: (n, V).
            labels: (BD, T).
            live: (n,) places of the scores, in the time-major grid (T, BD).
        """
        target = labels.t()  # (T, BD), as rows are
        labels = target.flatten().index_select(0, live)
        loss, nll = smoothed_loss(scores, labels, self.eps)
        correct = torch.zeros_like(nll)
        if self.report_accuracy:
            correct = scores.argmax(-1).eq(labels).to(nll)
        blank = loss.new_zeros(target.numel())
        counted = torch.arange(target.size(0), device=live.device) >= (
            self.ignore_prefix_size
        )  # (T,)
        loss, nll, correct = (
            blank.index_copy(0, live, x).view(target.shape).t() * counted
            for x in (loss, nll, correct)
        )
        return loss, nll, correct

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log fairseq's values, then the same by direction; 0 where no label counts."""
        logged = set().union(*logging_outputs)
        # fairseq logs no accuracy of nothing
        empty = "total" in logged and not total(logging_outputs, "total")
        super().reduce_metrics([*logging_outputs, *([{"total": 1e-9}] * empty)])
        for name in cls.known_names:
            if f"labels_{name}" not in logged:
                continue
            labels = total(logging_outputs, f"labels_{name}")
            counted = max(labels, 1)
            for key in (f"loss_{name}", f"nll_loss_{name}"):
                bits = total(logging_outputs, key) / (math.log(2) * counted)
                metrics.log_scalar(key, bits, labels, round=3)
            metrics.log_derived(
                f"ppl_{name}",
                lambda meters, key=f"nll_loss_{name}": utils.get_perplexity(
                    meters[key].avg
                ),
            )
            if f"n_correct_{name}" in logged:
                accuracy = 100 * total(logging_outputs, f"n_correct_{name}") / counted
                metrics.log_scalar(f"accuracy_{name}", accuracy, labels, round=3)
