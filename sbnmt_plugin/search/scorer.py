"""Scores of next tokens, and of whole texts, by one model or the mean of several."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.fairseq_decoder import searchable
from sbnmt_plugin.network.kv_cache import select_sentences
from sbnmt_plugin.network.next_tokens import NextTokens
from sbnmt_plugin.network.protocol import DecoderState, Forced
from sbnmt_plugin.numerics import LOGITS_AT_A_TIME


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
            net_input: of the batch, without ``prev_output_tokens``.
        """
        return cls(searchable(model), model.encoder.forward_torchscript(net_input))

    def start(self, layout: Layout, weights: bool = False) -> None:
        """Begin to write: see :meth:`protocol.Decoder.start`."""
        self.state: DecoderState = self.decoder.start(self.encoder_out, layout, weights)

    def step(
        self, tokens: Tensor, temperature: float
    ) -> tuple[NextTokens, Tensor | None]:
        """See :meth:`protocol.Decoder.step`."""
        found: tuple[NextTokens, Tensor | None]
        found = self.decoder.step(tokens, self.state, temperature)
        return found

    def select(self, rows: Tensor) -> None:
        """See :meth:`protocol.DecoderState.select`."""
        self.state.select(rows)

    def log_probabilities(
        self,
        inputs: Tensor,
        labels: Tensor,
        live: Tensor,
        layout: Layout,
        sentences: Tensor,
        temperature: float,
    ) -> Tensor:
        """Score given texts of some sentences: see :meth:`protocol.Forced`.

        Args:
            sentences: (B',) their places in the batch.
        """
        read = select_sentences(self.encoder_out, sentences)
        found: Tensor = self.decoder.log_probabilities(
            inputs, labels, live, layout, read, temperature
        )
        return found


class WholeTextScorer(Scorer):
    """Any model of fairseq's, which scores texts by its own forward pass.

    Args:
        model: of one direction.
        encoder_out: of all sentences.
    """

    def __init__(self, model: Any, encoder_out: Any) -> None:
        super().__init__(model.decoder, encoder_out)
        self.model = model

    def log_probabilities(
        self,
        inputs: Tensor,
        labels: Tensor,
        live: Tensor,
        layout: Layout,
        sentences: Tensor,
        temperature: float,
    ) -> Tensor:
        """Score texts, some at a time; each has a copy of its encoded sentence."""
        source = sentences.repeat_interleave(layout.group)
        rows = torch.arange(len(inputs), device=inputs.device)
        vocabulary = len(self.decoder.dictionary)
        size = max(1, LOGITS_AT_A_TIME // (inputs.size(1) * vocabulary))
        found = []
        for part in rows.split(size):
            copies = self.model.encoder.reorder_encoder_out(
                self.encoder_out, source[part]
            )
            logits, extra = self.decoder(inputs[part], encoder_out=copies)
            output = logits / temperature, extra
            lprobs = self.model.get_normalized_probs(output, log_probs=True)
            found.append(lprobs.gather(-1, labels[part][..., None])[..., 0])
        return torch.cat(found).t().flatten().index_select(0, live)


def text_scorer(model: Any, net_input: dict[str, Tensor]) -> Scorer:
    """Let a model of one direction read a batch of which it will score texts."""
    scorer = Scorer.encode(model, net_input)
    if isinstance(scorer.decoder, Forced):
        return scorer
    return WholeTextScorer(model, scorer.encoder_out)


def mean_probability(lprobs: list[Tensor]) -> Tensor:
    """Average probabilities that are given and returned as logarithms."""
    if len(lprobs) == 1:
        return lprobs[0]
    return torch.stack(lprobs).logsumexp(0) - math.log(len(lprobs))


def ensemble_step(
    scorers: list[Scorer], tokens: Tensor, temperature: float
) -> tuple[NextTokens, Tensor | None]:
    """Average the next tokens' probabilities and the attention of several models.

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
