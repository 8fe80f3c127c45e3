"""Starting from the weights of a plain Transformer."""

from __future__ import annotations

import logging

from torch import Tensor

logger = logging.getLogger(__name__)

EMBEDDINGS = (
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "decoder.output_projection.weight",
)


def adopt_transformer(
    weights: dict[str, Tensor],
    fresh: dict[str, Tensor],
    eos: int,
    source_tags: list[int],
    target_tags: list[int],
) -> None:
    """Turn a plain Transformer's weights into an SB model's, in place.

    The tags' rows start as the ``</s>`` row, with which a Transformer starts its
    output; rows that the Transformer does not have are added for them.  Fusion
    parameters keep their fresh values.  At λ = 0 the L2R half then scores as the
    Transformer does.

    Args:
        weights: of the Transformer (a teacher of ours or fairseq's own).
        fresh: of the newly built SB model.

    Raises:
        ValueError: the number of embedding rows says that dictionaries differ.
    """
    for name in EMBEDDINGS:
        tags = source_tags if name.startswith("encoder") else target_tags
        if name not in weights or name not in fresh:
            continue
        rows, wanted = weights[name].size(0), fresh[name].size(0)
        if rows not in (wanted, wanted - len(tags)):
            raise ValueError(
                f"{name} of the checkpoint has {rows} rows, but the dictionary asks "
                f"for {wanted}, or {wanted - len(tags)} without tags: initialise from "
                "a model trained with the same dict.*.txt"
            )
        weight = weights[name].new_empty(fresh[name].shape)
        weight[:rows] = weights[name]
        weight[tags] = weights[name][eos]
        weights[name] = weight
    for name, value in fresh.items():
        if name == "decoder.sb_version" or ".self_attn.fusion." in name:
            weights[name] = value
    logger.info("initialised from a Transformer; tags start as the </s> row")
