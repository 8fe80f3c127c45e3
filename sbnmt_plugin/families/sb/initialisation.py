"""Start of a training from the weights of another model."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from torch import Tensor

logger = logging.getLogger(__name__)

READER = ".self_attn.reader."
LEARNED = ".self_attn.fusion.weight"  # λ
# without effect at λ = 0
ACROSS = {READER: "--sb-reader", LEARNED: "--sb-learn-lambda"}

INPUT, OUTPUT = "decoder.embed_tokens.weight", "decoder.output_projection.weight"
EMBEDDINGS = "encoder.embed_tokens.weight", INPUT, OUTPUT


def adopt_transformer(
    weights: dict[str, Tensor],
    fresh: dict[str, Tensor],
    eos: int,
    source_tags: list[int],
    target_tags: list[int],
) -> None:
    """Turn a plain Transformer's weights into an SB model's, in place.

    The tags' embeddings start as the ``</s>`` row, with which a Transformer starts its
    output; rows that the Transformer does not have are added for them.  Fusion
    parameters keep their fresh values.  At λ = 0 the L2R half then scores as the
    Transformer does, if that has rows of its own for the tags in an output matrix of
    its own: where it has none they are fresh, and where the matrix is that of the
    embeddings ``</s>`` is counted three times, by which the end of a text has up to
    log 3 less, until training tells the rows apart.

    Args:
        weights: of the Transformer (a teacher of ours or fairseq's own).
        fresh: of the newly built SB model.
    """
    for name in EMBEDDINGS:
        tags = source_tags if name.startswith("encoder") else target_tags
        if name not in weights or name not in fresh:
            continue
        weight = fresh[name].to(weights[name], copy=True)
        weight[: len(weights[name])] = weights[name]
        if name != OUTPUT or fresh[name].data_ptr() == fresh[INPUT].data_ptr():
            weight[tags] = weights[name][eos]
        weights[name] = weight
    for name, value in fresh.items():
        if name == "decoder.sb_version" or ".self_attn.fusion." in name:
            weights[name] = value
    logger.info("initialised from a Transformer; tags are read as </s>")


def freezes_writer(settings: Any) -> bool:
    """Tell whether a training of these settings trains a reader and nothing else.

    Version 0.2.0 had an option for it, ``--sb-freeze-writer``, which its checkpoints
    name.

    Args:
        settings: a model's.
    """
    reads = getattr(settings, "sb_reader", False)
    return bool(reads and getattr(settings, "sb_freeze_writer", True))


def check_across(
    weights: Collection[str], fresh: Collection[str], interacts: bool
) -> None:
    """Refuse weights with a reader, or learned λ, for a model that reads without.

    Args:
        weights: names of any model's.
        fresh: names of the newly built one's.
        interacts: whether the newly built one reads.

    Raises:
        ValueError: see above.
    """
    for part, flag in ACROSS.items():
        given, wanted = (any(part in x for x in names) for names in (weights, fresh))
        if interacts and given and not wanted:
            raise ValueError(
                f"{flag} is not given, but the checkpoint has weights of it, without "
                "which it would read otherwise: add it, or --sb-lambda 0 and no "
                "--sb-learn-lambda (of a checkpoint, --model-overrides can set all)"
            )


def adopt_writer(
    weights: dict[str, Tensor], fresh: dict[str, Tensor], interacts: bool
) -> None:
    """Fit weights to a model with another reader or learned λ, in place.

    A reader, or learned λ, that the weights lack stays fresh; one that the model lacks
    is left out where nothing is read, at λ = 0.

    Args:
        weights: of an SB model.
        fresh: of the newly built one.
        interacts: whether the newly built one reads.

    Raises:
        ValueError: see :func:`check_across`.
    """
    check_across(weights, fresh, interacts)
    for part in ACROSS:
        given, wanted = ([k for k in names if part in k] for names in (weights, fresh))
        if wanted and not given:
            weights.update({name: fresh[name] for name in wanted})
            logger.info("%s*: none in the checkpoint, begins anew", part.strip("."))
        elif not wanted:
            for name in given:
                del weights[name]
