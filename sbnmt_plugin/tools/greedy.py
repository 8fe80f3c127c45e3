"""Greedy decoding of each direction beside a partner whose text is given.

``sbnmt probe-reading`` tells what the partners are.  A direction that writes better
beside the reference than beside the other's own words trusts its partner; where it does
not, no better partner can help it.  This is no search: it has no lengths, penalties or
pools.  A text that has not ended at twice the length of the longest reference of its
batch is cut.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sbnmt_plugin.layout import L2R, NAMES, R2L, TRAINING, Layout
from sbnmt_plugin.tools.scoring import tokenised_bleu
from sbnmt_plugin.tools.translator import Translator
from sbnmt_plugin.training.read_bits import ALONE

OWN, GOLD, NONE = "own", "gold", "none"
PARTNERS = (OWN, GOLD, NONE)


@torch.no_grad()
def write(
    model: Any, batch: dict[str, Any], eos: int, pad: int, partner: str = OWN
) -> Tensor:
    """Write both directions greedily, each word the best after those before it.

    Args:
        batch: the reference in both streams.
        partner: one of :data:`PARTNERS`.

    Returns:
        (BD, 2 T): the words of every stream in the order of its writing, padded.
    """
    given = batch["net_input"]
    gold = given["prev_output_tokens"]
    source = model.encoder(given["src_tokens"], src_lengths=given["src_lengths"])
    never = [pad, *gold[:2, 0].tolist()]  # nor the tags

    def written(layout: Layout, others: Tensor) -> Tensor:
        """Write all streams; those of ``others`` (BD,) hold the reference."""
        streams = F.pad(gold, (0, 1 + gold.size(1)), value=pad)
        streams[~others, 1:] = pad
        done = others.clone()
        for step in range(1, streams.size(1)):
            features, _ = model.decoder(
                streams[:, :step], source, features_only=True, layout=layout
            )
            logits = model.decoder.output_layer(features[:, -1])
            logits[:, never] = -torch.inf
            words = logits.argmax(-1)
            done |= words == eos
            streams[~done, step] = words[~done]
            if done.all():
                break
        return streams[:, 1:]

    nobody = torch.zeros_like(gold[:, 0], dtype=torch.bool)
    if partner != GOLD:
        return written(ALONE if partner == NONE else TRAINING, nobody)
    right_to_left = torch.arange(len(gold), device=gold.device) % 2 == R2L
    l2r, r2l = (written(TRAINING, x) for x in (right_to_left, ~right_to_left))
    return torch.where(right_to_left[:, None], r2l, l2r)


def bleu_by_partner(
    translator: Translator, batches: list[dict[str, Any]]
) -> dict[str, dict[str, float]]:
    """Return the tokenised BLEU of each direction, by its partner.

    Args:
        batches: the reference in both streams.

    Returns:
        partner -> direction -> BLEU.
    """
    (model,) = translator.models
    dictionary = translator.task.target_dictionary
    eos, pad = dictionary.eos(), dictionary.pad()
    subwords = translator.cfg.common_eval.post_process

    def text(words: Tensor, direction: int, right: bool = False) -> str:
        kept = words[(words != pad) & (words != eos)]
        in_order = kept if direction == L2R else kept.flip(0)
        found: str = dictionary.string(in_order.cpu(), subwords, escape_unk=right)
        return found

    right = [
        text(x, row % 2, right=True)
        for batch in batches
        for row, x in enumerate(batch["stream_target"])
    ]
    results = {}
    for partner in PARTNERS:
        streams = [x for b in batches for x in write(model, b, eos, pad, partner)]
        found = [text(words, row % 2) for row, words in enumerate(streams)]
        scores = [
            tokenised_bleu(found[d::2], [right[d::2]])["score"] for d in (L2R, R2L)
        ]
        results[partner] = dict(zip(NAMES, scores))
    return results
