"""Scoring the next token with one model, or with the mean of several."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from sbnmt_plugin.choice import NextTokens
from sbnmt_plugin.directions import Layout
from sbnmt_plugin.onedirectional import adopt


class Scorer:
    """One model of the ensemble, its encoder output and its cache.

    A decoder of ours reads one encoder output a sentence, and so does fairseq's own
    Transformer, seen through :mod:`onedirectional`; any other fairseq decoder gets
    one copy a row, as in fairseq's generator.

    Args:
        weights: whether attention to the source is wanted.
    """

    def __init__(
        self,
        model: Any,
        net_input: dict[str, Tensor],
        layout: Layout,
        weights: bool = False,
    ) -> None:
        self.model = model
        self.layout = layout
        self.decoder = adopt(model.decoder)
        self.grouped = hasattr(self.decoder, "start")
        self.encoder_out = model.encoder.forward_torchscript(net_input)
        self.rows = net_input["src_tokens"].size(0) * layout.group
        if self.grouped:
            self.decoder.need_attn = weights
            self.state = self.decoder.start(layout)
        else:
            self.state = {}
            self._reorder_encoder_out(
                torch.arange(self.rows, device=net_input["src_tokens"].device)
                // layout.group
            )

    def _reorder_encoder_out(self, order: Tensor) -> None:
        self.encoder_out = self.model.encoder.reorder_encoder_out(
            self.encoder_out, order
        )

    def step(
        self, tokens: Tensor, temperature: float
    ) -> tuple[NextTokens, Tensor | None]:
        """Score the next token of every row.

        Args:
            tokens: (N, t + 1), the start symbols first.

        Returns:
            (N, V) scores; (N, S) attention to the source or None.
        """
        logits, extra = self.decoder(
            tokens, encoder_out=self.encoder_out, incremental_state=self.state
        )
        logits = logits[:, -1:]
        if temperature != 1:
            logits = logits / temperature
        if self.grouped:
            following = self.decoder.next_tokens(logits[:, 0])
        else:
            lprobs = self.model.get_normalized_probs((logits, extra), log_probs=True)
            following = NextTokens.of_lprobs(lprobs[:, 0])
        # recurrent decoders give it as it is, Transformers in a dictionary
        attention = extra if isinstance(extra, Tensor) else (extra or {}).get("attn")
        if isinstance(attention, list):
            attention = attention[0]
        return following, None if attention is None else attention[:, -1]

    def select(self, rows: Tensor) -> None:
        """Go on with these rows; fewer than before where sentences have finished."""
        self.decoder.reorder_incremental_state_scripting(self.state, rows)
        if rows.numel() != self.rows:
            self.rows = rows.numel()
            group = self.layout.group
            self._reorder_encoder_out(rows[::group] // group if self.grouped else rows)


def ensemble_step(
    scorers: list[Scorer], tokens: Tensor, temperature: float
) -> tuple[NextTokens, Tensor | None]:
    """Mean probability, as a logarithm, and mean attention of several models."""
    outputs = [scorer.step(tokens, temperature) for scorer in scorers]
    following = outputs[0][0]
    if len(outputs) > 1:
        stacked = torch.stack([scores.lprobs() for scores, _ in outputs])
        mean = stacked.logsumexp(0) - math.log(len(outputs))
        following = NextTokens.of_lprobs(mean)
    attention = [weights for _, weights in outputs if weights is not None]
    return following, torch.stack(attention).mean(0) if attention else None
