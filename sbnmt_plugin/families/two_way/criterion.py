"""The loss of a two-way model: both texts, each given the other."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.criterions import register_criterion
from torch import Tensor

from sbnmt_plugin.task_options import option
from sbnmt_plugin.training.criterion import (
    SBCriterionConfig,
    SBLabelSmoothedCrossEntropy,
    Values,
)


@dataclass
class TwoWayCriterionConfig(SBCriterionConfig):
    """The same options, without smoothing, of which the paper does not speak."""

    label_smoothing: float = option(
        0.0, "epsilon for label smoothing, 0 means no label smoothing"
    )


@register_criterion("two_way_cross_entropy", dataclass=TwoWayCriterionConfig)
class TwoWayCrossEntropy(SBLabelSmoothedCrossEntropy):
    """-log p(e|f) - log p(f|e), over the labels of both, logged as forth and back.

    Departs from the paper, which does not say by what it is normalised: here by the
    number of all labels, as for two streams of SB-NMT.
    """

    flag = "two_way_cross_entropy"
    arch, known_by = "two_way", "exchanged"
    known_names = ("forth", "back")

    def streams_of(self, task: Any) -> tuple[str, ...]:
        """Name both texts, where the task makes streams at all."""
        return self.known_names if super().streams_of(task) else ()

    def forward(
        self, model: Any, sample: dict[str, Any]
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """Compute the parent's loss on two streams, the target and the source."""
        sources = sample["net_input"]["src_lengths"].tolist()
        pairs = zip(sample["stream_lengths"], sources)
        lengths = [length for pair in pairs for length in pair]
        both = {**sample, "stream_lengths": lengths, "ntokens": sum(lengths)}
        return super().forward(model, both)

    def _by_label(self, model: Any, sample: dict[str, Any]) -> Values:
        """(2B, T) each, a sentence's target before its source, T the longest of all."""
        live = sample["live"]
        scores, extra = model(**sample["net_input"], live=live)
        forth = self.placed(scores, sample["target"], live)
        back = self.placed(*extra["back"])
        loss, nll = map(side_by_side, forth, back)
        return loss, nll


def side_by_side(forth: Tensor, back: Tensor) -> Tensor:
    """Interleave the rows of (B, I) and (B, J): (2B, T)."""
    width = max(forth.size(1), back.size(1))
    sides = [F.pad(x, (0, width - x.size(1))) for x in (forth, back)]
    return torch.stack(sides, 1).flatten(0, 1)
