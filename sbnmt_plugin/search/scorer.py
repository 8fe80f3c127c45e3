"""Scoring the next token with one model, or with the mean of several."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.fairseq_decoder import searchable
from sbnmt_plugin.network.next_tokens import NextTokens


class Scorer:
    """One model of the ensemble, with its decoder's state for a batch.

    Args:
        model: fairseq's encoder-decoder.
        net_input: of the batch, without ``prev_output_tokens``.
        layout: how the hypotheses are laid out.
        weights: whether attention to the source is wanted.

    Attributes:
        encoder_out: of all sentences, also of those that have left the batch.
    """

    def __init__(
        self,
        model: Any,
        net_input: dict[str, Tensor],
        layout: Layout,
        weights: bool = False,
    ) -> None:
        self.decoder = searchable(model)
        self.encoder_out = model.encoder.forward_torchscript(net_input)
        self.state = self.decoder.start(self.encoder_out, layout, weights)

    def step(
        self, tokens: Tensor, temperature: float
    ) -> tuple[NextTokens, Tensor | None]:
        """See :meth:`protocol.Decoder.step`."""
        return self.decoder.step(tokens, self.state, temperature)

    def select(self, rows: Tensor) -> None:
        """See :meth:`protocol.DecoderState.select`."""
        self.state.select(rows)


def mean_probability(lprobs: list[Tensor]) -> Tensor:
    """Mean of probabilities, all as logarithms."""
    if len(lprobs) == 1:
        return lprobs[0]
    return torch.stack(lprobs).logsumexp(0) - math.log(len(lprobs))


def ensemble_step(
    scorers: list[Scorer], tokens: Tensor, temperature: float
) -> tuple[NextTokens, Tensor | None]:
    """Mean probability, as a logarithm, and mean attention of several models.

    Args:
        tokens: (N, t + 1).

    Returns:
        (N, V) scores; (N, S) attention or None.
    """
    outputs = [scorer.step(tokens, temperature) for scorer in scorers]
    following = outputs[0][0]
    if len(outputs) > 1:
        mean = mean_probability([scores.lprobs() for scores, _ in outputs])
        following = NextTokens.of_lprobs(mean)
    attention = [weights for _, weights in outputs if weights is not None]
    return following, torch.stack(attention).mean(0) if attention else None
