"""Reranking: hypotheses of two teachers, scored by both (Liu et al., NAACL 2016)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from fairseq import utils
from torch import Tensor

from sbnmt_plugin.checkpoints import read_checkpoint, settings_of
from sbnmt_plugin.layout import L2R, R2L
from sbnmt_plugin.search.registry import Search
from sbnmt_plugin.search.score_texts import check_scores_texts, score_texts
from sbnmt_plugin.search.scorer import Scorer
from sbnmt_plugin.tools.translator import Translator

Candidate = tuple[int, ...]  # tokens in natural order, without </s>


class Reranker(Translator):
    """Two teachers, searching and scoring the same batches.

    Args:
        arguments: fairseq-generate's command line, without model and direction.
        l2r, r2l: the teachers' checkpoints.

    Raises:
        ValueError: one of another direction, or that cannot score given texts.
    """

    def __init__(self, arguments: list[str], l2r: str, r2l: str) -> None:
        for direction, path in ("l2r", l2r), ("r2l", r2l):
            if not os.path.isfile(path):  # with --checkpoint-suffix it is another
                continue
            saved = settings_of(read_checkpoint(path)).get("sb_direction")
            if str(saved or direction) != direction:
                raise ValueError(
                    f"--{direction} must be a teacher trained with --sb-direction "
                    f"{direction}, but {path} was trained with {saved}: give such a one"
                )
        own = [*arguments, "--path", l2r, "--sb-direction", "l2r"]
        super().__init__(own, nbest=None)
        others = [*arguments, "--path", r2l, "--sb-direction", "r2l"]
        self.r2l = Translator(others, nbest=None)
        check_scores_texts(self.models[0], f"--l2r {l2r}")
        check_scores_texts(self.r2l.models[0], f"--r2l {r2l}")
        both = self.max_positions, self.r2l.max_positions
        self.max_positions = utils.resolve_max_positions(*both)
        decoders = [self.models[0].decoder, self.r2l.models[0].decoder]
        most = min(decoder.max_positions() for decoder in decoders)
        for decoder in decoders:  # each scores what the other has written
            decoder.max_target_positions = most

    def best(self, batch: dict[str, Any]) -> list[dict[str, Any]]:
        """Return every sentence's best candidate, scored by a sum of log-probabilities.

        A tie goes to the one that the L2R teacher, or else the R2L teacher, ranks
        higher.
        """
        proposals = zip(self.search(batch), self.r2l.search(batch))
        candidates = []
        for lists in proposals:
            texts = [tuple(h["tokens"][:-1].tolist()) for own in lists for h in own]
            candidates.append(list(dict.fromkeys(texts)))  # the different ones
        net_input = batch["net_input"]
        searches = self.generator, self.r2l.generator
        totals = sum_of_both(searches, net_input, candidates)
        answers = []
        for found, scores in zip(candidates, totals.cpu()):
            place = int(scores[: len(found)].argmax())
            answer = {"tokens": torch.tensor(found[place]), "score": scores[place]}
            answers.append(answer)
        return answers


def sum_of_both(
    searches: Sequence[Search],
    net_input: dict[str, Tensor],
    candidates: list[list[Candidate]],
) -> Tensor:
    """Score given translations by an L2R and an R2L teacher.

    Args:
        searches: the teachers', of a single model each.
        net_input: of B sentences.
        candidates: the translations of each, K at most.

    Returns:
        (B, K) sums of both log-probabilities, ``</s>`` included: see
        :func:`score_texts.score_texts`.
    """
    device = net_input["src_tokens"].device
    found = []
    for direction, search in enumerate(searches):
        eos = search.symbols.eos
        symbols = replace(
            search.symbols, starts=(eos, eos)
        )  # a teacher's start is </s>
        streams = [[((*c, eos), direction) for c in own] for own in candidates]
        (model,) = search.models
        scorers = [Scorer.encode(model, net_input)]
        found.append(score_texts(scorers, streams, symbols, device).sum(2))
    return found[L2R] + found[R2L]
