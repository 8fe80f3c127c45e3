"""ENAT's loss: the teacher's words, and where they are mapped both terms of the map."""

from typing import Any

from fairseq.criterions import register_criterion
from fairseq.logging import metrics

from sbnmt_plugin.training.criterion import (
    SBCriterionConfig,
    SBLabelSmoothedCrossEntropy,
    Values,
    live_rows_alone,
    total,
)


@register_criterion("enat_cross_entropy", dataclass=SBCriterionConfig)
class ENATCrossEntropy(SBLabelSmoothedCrossEntropy):
    """L_neg + μ L_align + λ L_adv (eq. 10), of a model of ``--enat-input map``.

    L_neg is a mean over labels, and the others are sentences': every label carries
    those of its sentence, so that the sum does not depend on how batches are divided
    among processes and ``--update-freq``.  Another model's loss is L_neg alone.

    Logged beside: ``align`` and ``adversary``, means over sentences.

    Departs from the paper, which does not say how its terms are summed.
    """

    flag = "enat_cross_entropy"
    arch, known_by = "enat_transformer", "reads_lookup"

    def _by_label(
        self, model: Any, sample: dict[str, Any]
    ) -> tuple[Values, dict[str, Any]]:
        live = sample["live"]
        with live_rows_alone(model, live):
            scores, extra = model(**sample["net_input"], with_terms=True)
        loss, nll = self.placed(scores, sample["target"], live)
        terms = extra.get("terms")
        if terms is None:
            return (loss, nll), {}
        counted = sample["target"].ne(self.padding_idx)
        loss = loss + counted * terms.loss[:, None].to(loss.dtype)
        beside = {"align": terms.align.sum(), "adversary": terms.adversary.sum()}
        return (loss, nll), beside

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log the parent's values, and both terms."""
        super().reduce_metrics(logging_outputs)
        if not any("align" in log for log in logging_outputs):
            return
        sentences = total(logging_outputs, "nsentences")
        for key in ("align", "adversary"):
            mean = total(logging_outputs, key) / sentences
            metrics.log_scalar(key, mean, sentences, round=3)
