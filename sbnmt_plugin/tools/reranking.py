"""Reranking: hypotheses of two teachers, scored by both (Liu et al., NAACL 2016)."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data.data_utils import collate_tokens
from torch import Tensor

from sbnmt_plugin.tools.translator import Translator, refuse_at_once

Candidate = tuple[int, ...]  # tokens in natural order, without </s>


class Reranker(Translator):
    """Two teachers, searching and scoring the same batches.

    Args:
        arguments: fairseq-generate's command line, without model and direction.
        l2r, r2l: the teachers' checkpoints.
    """

    def __init__(self, arguments: list[str], l2r: str, r2l: str) -> None:
        own = [*arguments, "--path", l2r, "--sb-direction", "l2r"]
        super().__init__(own, whole_beam=True)
        refuse_at_once(self.models[0], f"L2R {l2r}")
        others = [*arguments, "--path", r2l, "--sb-direction", "r2l"]
        self.r2l = Translator(others, whole_beam=True)

    def best(self, batch: dict[str, Any]) -> list[dict[str, Any]]:
        """Every sentence's best candidate; ``score`` is the sum of log-probabilities.

        A tie goes to the one that the L2R teacher, or else the R2L teacher, ranks
        higher.
        """
        proposals = zip(self.search(batch), self.r2l.search(batch))
        candidates = [unite(*lists) for lists in proposals]
        net_input = batch["net_input"]
        totals = forced_scores(self, net_input, candidates, backwards=False)
        totals += forced_scores(self.r2l, net_input, candidates, backwards=True)
        totals = totals.cpu()
        answers = []
        counts = [len(found) for found in candidates]
        for found, scores in zip(candidates, totals.split(counts)):
            place = int(scores.argmax())
            answer = {"tokens": torch.tensor(found[place]), "score": scores[place]}
            answers.append(answer)
        return answers


def unite(*lists: list[dict[str, Any]]) -> list[Candidate]:
    """The different hypotheses of several lists, in order."""
    found = [tuple(h["tokens"][:-1].tolist()) for hyps in lists for h in hyps]
    return list(dict.fromkeys(found))


@torch.no_grad()
def forced_scores(
    teacher: Translator,
    net_input: dict[str, Tensor],
    candidates: list[list[Candidate]],
    backwards: bool,
) -> Tensor:
    """Log-probability of given translations, ``</s>`` included.

    Every source is encoded once; its encoding is copied for each of its candidates, as
    many of them at a time as --max-tokens holds.

    Args:
        teacher: whose single model scores.
        net_input: of B sentences.
        candidates: the translations of each.
        backwards: whether the teacher reads them from right to left.

    Returns:
        One number a candidate, in order.
    """
    dictionary = teacher.task.target_dictionary
    pad, eos = dictionary.pad(), dictionary.eos()
    device = net_input["src_tokens"].device
    texts = [c[::-1] if backwards else c for found in candidates for c in found]
    ends = [torch.tensor([*text, eos]) for text in texts]
    starts = [torch.tensor([eos, *text]) for text in texts]
    both = collate_tokens(ends, pad), collate_tokens(starts, pad)
    target, previous = (tokens.to(device) for tokens in both)  # (N, T)
    (model,) = teacher.models
    encoded = model.encoder.forward_torchscript(net_input)
    counts = torch.tensor([len(found) for found in candidates], device=device)
    source = torch.arange(len(candidates), device=device).repeat_interleave(counts)
    size = max(1, teacher.max_tokens // target.size(1))
    scores = []
    for rows in torch.arange(len(texts), device=device).split(size):
        copies = model.encoder.reorder_encoder_out(encoded, source[rows])
        output = model.decoder(previous[rows], encoder_out=copies)
        lprobs = model.get_normalized_probs(output, log_probs=True)  # (N, T, V)
        labels = target[rows]
        chosen = lprobs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
        scores.append(chosen.masked_fill(labels == pad, 0).sum(-1))
    return torch.cat(scores)
