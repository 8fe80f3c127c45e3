"""Label-smoothed cross-entropy over both directions (paper, equation 14)."""

import math
from dataclasses import dataclass, field
from typing import Any

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
        output = model(**sample["net_input"])
        lprobs, target = self.get_lprobs_and_target(model, output, sample)
        loss, nll = label_smoothed_nll_loss(
            lprobs, target, self.eps, ignore_index=self.padding_idx, reduce=False
        )
        labels = target.ne(self.padding_idx)
        sentences = sample["nsentences"]
        sample_size = sentences if self.sentence_avg else sample["ntokens"]
        log: dict[str, Any] = {
            "loss": loss.data.sum(),
            "nll_loss": nll.data.sum(),
            "ntokens": sample["ntokens"],
            "nsentences": sentences,
            "sample_size": sample_size,
        }
        values = {"loss": loss.data, "nll_loss": nll.data, "labels": labels}
        if self.report_accuracy:
            values["n_correct"] = labels & lprobs.argmax(-1).eq(target)
            values["total"] = labels
            log["n_correct"] = values["n_correct"].sum()
            log["total"] = labels.sum()
        streams = len(self.directions)
        for name, value in values.items():  # (DB·T) -> (B, D, T) -> D sums
            sums = value.view(sentences, streams, -1).sum(dim=(0, 2))
            for direction, total in zip(self.directions, sums):
                log[f"{name}_{NAMES[direction]}"] = total
        return loss.sum() if reduce else loss, sample_size, log

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
