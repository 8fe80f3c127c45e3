"""ENAT's loss: the teacher's words, and where they are mapped both terms of the map."""

from typing import Any

from fairseq.criterions import register_criterion

from sbnmt_plugin.training.criterion import (
    SBCriterionConfig,
    SBLabelSmoothedCrossEntropy,
    Values,
    live_rows_alone,
)


@register_criterion("enat_cross_entropy", dataclass=SBCriterionConfig)
class ENATCrossEntropy(SBLabelSmoothedCrossEntropy):
    """L_neg + μ L_align + λ L_adv (eq. 10), of a model of ``--enat-input map``.

    L_neg is a mean over labels, and the others are sentences': every label carries
    those of its sentence, so that the sum does not depend on how batches are divided
    among processes and ``--update-freq``.  Another model's loss is L_neg alone, and so
    is each in validation: L_adv falls where the map fools f less, so that the sum says
    nothing of which checkpoint is the best.

    Departs from the paper, which does not say how its terms are summed.
    """

    flag = "enat_cross_entropy"
    arch, known_by = "enat_transformer", "reads_lookup"

    def _by_label(self, model: Any, sample: dict[str, Any]) -> Values:
        live = sample["live"]
        with live_rows_alone(model, live):
            scores, extra = model(**sample["net_input"], with_terms=self.training)
        loss, nll = self.placed(scores, sample["target"], live)
        terms = extra.get("terms")
        if terms is not None:
            counted = sample["target"].ne(self.padding_idx)
            loss = loss + counted * terms[:, None].to(loss.dtype)
        return loss, nll
