"""Scores of next tokens by one model or the mean of several."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.fairseq_decoder import searchable
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.network.protocol import DecoderState


@dataclass(eq=False)
class Scorer:
    """A decoder and the encoded sentences that it reads.

    Args:
        decoder: as :class:`protocol.Decoder` says, or :class:`protocol.Forced` where
            only given texts are scored.
        encoder_out: of all sentences, also of those that have left the batch.
    """

    decoder: Any
    encoder_out: Any

    @classmethod
    def encode(cls, model: Any, net_input: dict[str, Tensor]) -> Scorer:
        """Let a model read a batch.

        Args:
            model: fairseq's encoder-decoder.
            net_input: of the batch.
        """
        return cls(searchable(model), model.encoder.forward_torchscript(net_input))

    def start(self, layout: Layout, weights: bool = False) -> None:
        """Begin to write: see :meth:`protocol.Decoder.start`."""
        self.state: DecoderState = self.decoder.start(self.encoder_out, layout, weights)


def mean_probability(lprobs: list[Tensor]) -> Tensor:
    """Average probabilities that are given and returned as logarithms."""
    if len(lprobs) == 1:
        return lprobs[0]
    return torch.stack(lprobs).logsumexp(0) - math.log(len(lprobs))


def ensemble_step(
    scorers: list[Scorer], tokens: Tensor
) -> tuple[NextTokens, Tensor | None]:
    """Average the next tokens' probabilities and the attention of several models.

    Args:
        tokens: (N, t + 1).

    Returns:
        (N, V) scores; (N, S) attention or None.
    """
    outputs = [scorer.decoder.step(tokens, scorer.state) for scorer in scorers]
    following = outputs[0][0]
    if len(outputs) > 1:
        mean = mean_probability([scores.lprobs() for scores, _ in outputs])
        following = NextTokens.of_lprobs(mean)
    attention = [weights for _, weights in outputs if weights is not None]
    return following, torch.stack(attention).mean(0) if attention else None
