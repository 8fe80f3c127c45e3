"""Label-smoothed cross-entropy over both directions (paper, equation 14)."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
)
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from sbnmt_plugin.layout import NAMES
from sbnmt_plugin.network.fairseq_decoder import DECODERS
from sbnmt_plugin.task_options import option
from sbnmt_plugin.training.smoothed_loss import smoothed_loss

Values = tuple[Tensor, Tensor]  # loss, -log p


@dataclass
class SBCriterionConfig(FairseqDataclass):
    """The options of fairseq's that act here, with the paper's ε as default."""

    label_smoothing: float = option(
        0.1, "epsilon for label smoothing, 0 means no label smoothing"
    )
    sentence_avg: bool = II("optimization.sentence_avg")


def total(logging_outputs: list[dict[str, Any]], key: str) -> Any:
    """Add up a value over processes and batches, 0 where one has none."""
    return sum(log.get(key, 0) for log in logging_outputs)


def projects_rows(model: Any) -> bool:
    """Tell whether a model's logits are one linear layer on its decoder's features.

    A family's decoder says so by its attribute ``projects_rows``; of fairseq's own only
    the Transformer is known to be such.
    """
    decoder: Any = getattr(model, "decoder", None)
    return type(decoder) in DECODERS or getattr(decoder, "projects_rows", False)


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

    Besides fairseq's values, loss and nll are logged by direction.  A teacher's single
    stream gives its own direction's values.

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

    def __init__(self, task: Any, sentence_avg: bool, label_smoothing: float) -> None:
        super().__init__(task, sentence_avg, label_smoothing)
        self.names = self.streams_of(task)
        if not self.names:
            raise ValueError(
                f"--criterion {self.flag} needs the streams of --task sb_translation"
            )

    def streams_of(self, task: Any) -> tuple[str, ...]:
        """Name the streams of a sentence of this task."""
        return tuple(NAMES[d] for d in getattr(task, "directions", ()))

    def forward(
        self, model: Any, sample: dict[str, Any]
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """Compute the loss of a batch.

        Args:
            sample: fairseq's batch, whose ``target`` is (BD, T) here: the task
                hands the streams' labels to every criterion under that name.

        Returns:
            loss: the sum over the labels.
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
        loss, nll = self._by_label(model, sample)
        sentences = sample["nsentences"]
        sample_size = sentences if self.sentence_avg else sample["ntokens"]
        log: dict[str, Any] = {
            "loss": loss.data.sum(),
            "nll_loss": nll.sum(),
            "ntokens": sample["ntokens"],
            "nsentences": sentences,
            "sample_size": sample_size,
        }
        streams = len(self.names)
        for place, name in enumerate(self.names):
            for key, value in ("loss", loss.data), ("nll_loss", nll):
                grouped = value.view(sentences, streams, -1)  # (BD, T) -> (B, D, T)
                log[f"{key}_{name}"] = grouped[:, place].sum()
            # counts come from the collater: no host-device synchronisation
            log[f"labels_{name}"] = sum(sample["stream_lengths"][place::streams])
        return loss.sum(), sample_size, log

    def _by_label(self, model: Any, sample: dict[str, Any]) -> Values:
        """Compute loss and -log p.

        Models of both directions compute logits of live positions alone, and so do
        those that project rows (see :func:`projects_rows`).  Any other computes
        log-probabilities everywhere, which are logits of themselves.

        Returns:
            (BD, T) each, 0 at padding.
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
        return self.placed(scores, sample["target"], live)

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
        blank = loss.new_zeros(target.numel())
        loss, nll = (
            blank.index_copy(0, live, x).view(target.shape).t() for x in (loss, nll)
        )
        return loss, nll

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log fairseq's values, then loss and nll by direction."""
        super().reduce_metrics(logging_outputs)
        logged = set().union(*logging_outputs)
        for name in cls.known_names:
            if f"labels_{name}" not in logged:
                continue
            labels = total(logging_outputs, f"labels_{name}")
            for key in (f"loss_{name}", f"nll_loss_{name}"):
                bits = total(logging_outputs, key) / (math.log(2) * labels)
                metrics.log_scalar(key, bits, labels, round=3)
