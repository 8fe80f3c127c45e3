"""Label-smoothed cross-entropy over both directions (paper, equation 14)."""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq import utils
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
    label_smoothed_nll_loss,
)
from fairseq.logging import metrics
from torch import Tensor

from sbnmt_plugin.directions import NAMES


@dataclass
class SBCriterionConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """fairseq's options, with the paper's ε as default."""

    label_smoothing: float = field(
        default=0.1,
        metadata={"help": "epsilon for label smoothing, 0 means no label smoothing"},
    )


def smoothed_loss(
    logits: Tensor, labels: Tensor, epsilon: float
) -> tuple[Tensor, Tensor]:
    """Label-smoothed loss and -log p of each row's label, (n,), in float32 at least.

    Args:
        logits: (n, V).
        labels: (n,).
    """
    wide = torch.promote_types(logits.dtype, torch.float32)
    lprobs = logits.log_softmax(-1, dtype=wide)
    loss, nll = label_smoothed_nll_loss(lprobs, labels, epsilon, reduce=False)
    return loss, nll.detach()


@register_criterion("sb_label_smoothed_cross_entropy", dataclass=SBCriterionConfig)
class SBLabelSmoothedCrossEntropy(LabelSmoothedCrossEntropyCriterion):  # type: ignore[misc]
    """Sum over the labels of both streams, normalised by their number.

    Departs from the paper, which averages over sentences (``--sentence-avg`` does
    that) and does not mention smoothing in the formula.

    Besides fairseq's values, loss, nll and ppl (and accuracy) are logged by
    direction.  A teacher's single stream gives its own direction's values.

    Raises:
        ValueError: the task does not make streams.
    """

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
        self.directions: tuple[int, ...] = getattr(task, "directions", ())
        if not self.directions:
            raise ValueError(
                "--criterion sb_label_smoothed_cross_entropy needs the two streams of "
                "--task sb_translation"
            )

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """Loss of a batch.

        Args:
            sample: fairseq's batch, whose ``target`` is (DB, T) here: the task
                hands the streams' labels to every criterion under that name.

        Returns:
            loss: the sum over the labels, or (DB·T, 1) without ``reduce``.
            sample_size: labels, or sentences with ``--sentence-avg``.
            logging outputs, sums that may be added up over processes.
        """
        target = sample["target"]
        loss, nll, correct = self._by_label(model, sample["net_input"], target)
        labels = self._counted(target)
        sentences = sample["nsentences"]
        sample_size = sentences if self.sentence_avg else sample["ntokens"]
        log: dict[str, Any] = {
            "loss": loss.data.sum(),
            "nll_loss": nll.sum(),
            "ntokens": sample["ntokens"],
            "nsentences": sentences,
            "sample_size": sample_size,
        }
        values = {"loss": loss.data, "nll_loss": nll, "labels": labels}
        if self.report_accuracy:
            values["n_correct"] = correct
            values["total"] = labels
            log["n_correct"] = values["n_correct"].sum()
            log["total"] = labels.sum()
        streams = len(self.directions)
        for name, value in values.items():  # (DB, T) -> (B, D, T) -> D sums
            sums = value.view(sentences, streams, -1).sum(dim=(0, 2))
            for direction, total in zip(self.directions, sums):
                log[f"{name}_{NAMES[direction]}"] = total
        return loss.sum() if reduce else loss.view(-1, 1), sample_size, log

    def _counted(self, target: Tensor) -> Tensor:
        """Which labels count: no padding, and none of ``--ignore-prefix-size``."""
        labels = target.ne(self.padding_idx)
        labels[:, : self.ignore_prefix_size] = False
        return labels

    def _by_label(
        self, model: Any, net_input: dict[str, Tensor], target: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Loss, -log p and whether the best token is right, (DB, T) each, 0 elsewhere.

        An SB-NMT model gives logits of live positions alone; what any other gives is
        taken from its log-probabilities, whose softmax they are themselves.
        """
        live = target.ne(self.padding_idx).t()  # (T, DB): time-major, as rows are
        if getattr(model, "bidirectional", False):
            scores, _ = model(**net_input, live_only=True)  # (n, V)
        else:
            output = model(**net_input)
            lprobs = model.get_normalized_probs(output, log_probs=True)
            scores = lprobs.transpose(0, 1)[live]
        labels = target.t()[live]
        loss, nll = smoothed_loss(scores, labels, self.eps)
        found = [loss, nll]
        if self.report_accuracy:
            found.append(scores.argmax(-1).eq(labels).to(loss))
        blank = loss.new_zeros(live.shape)
        counted = self._counted(target)
        loss, nll, *correct = (
            blank.masked_scatter(live, x).t().masked_fill(~counted, 0) for x in found
        )
        return loss, nll, correct[0] if correct else blank

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log fairseq's values, then the same by direction."""
        super().reduce_metrics(logging_outputs)

        def total(key: str) -> Any:
            return utils.item(sum(log.get(key, 0) for log in logging_outputs))

        for name in NAMES:
            labels = total(f"labels_{name}")
            if not labels:
                continue
            bits = math.log(2) * labels
            metrics.log_scalar(
                f"loss_{name}", total(f"loss_{name}") / bits, labels, round=3
            )
            metrics.log_scalar(
                f"nll_loss_{name}", total(f"nll_loss_{name}") / bits, labels, round=3
            )
            metrics.log_derived(
                f"ppl_{name}",
                lambda meters, key=f"nll_loss_{name}": utils.get_perplexity(
                    meters[key].avg
                ),
            )
            if total(f"total_{name}"):
                accuracy = 100 * total(f"n_correct_{name}") / total(f"total_{name}")
                metrics.log_scalar(
                    f"accuracy_{name}", accuracy, total(f"total_{name}"), round=3
                )
