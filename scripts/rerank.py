#!/usr/bin/env python3
"""Rerank-NMT: the best of what both teachers propose, by what both think of it.

    rerank.py data --l2r l2r/model.pt --r2l r2l/model.pt --beam 10 --lenpen 0.6 \
        --input bpe/test.en --output rerank.tsv

Each teacher proposes its --beam best translations of a sentence (the paper's k = 10);
both score the union, each in its own direction, and the translation with the largest
sum of both log-probabilities wins (Liu et al., NAACL 2016).  The result has a line
"id<TAB>sum<TAB>translation" per sentence, in natural logarithms.  Files, shards and
resuming are those of translate.py, and so are all other options.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data.data_utils import collate_tokens
from texts import run
from torch import Tensor
from translate import Translator, job_parser, run_job

Candidate = tuple[int, ...]  # tokens in natural order, without </s>


class Reranker(Translator):
    """Two teachers, searching and scoring the same batches.

    Args:
        arguments: fairseq-generate's command line, without model and direction.
        l2r, r2l: the teachers' checkpoints.
    """

    def __init__(self, arguments: list[str], l2r: str, r2l: str) -> None:
        super().__init__([*arguments, "--path", l2r, "--sb-direction", "l2r"])
        self.r2l = Translator([*arguments, "--path", r2l, "--sb-direction", "r2l"])

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
    ends = [torch.tensor([*text, eos], device=device) for text in texts]
    starts = [torch.tensor([eos, *text], device=device) for text in texts]
    target, previous = collate_tokens(ends, pad), collate_tokens(starts, pad)  # (N, T)
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


def main() -> None:
    parser = job_parser(__doc__)
    parser.add_argument("--l2r", required=True, help="the L2R teacher's checkpoint")
    parser.add_argument("--r2l", required=True, help="the R2L teacher's checkpoint")
    args, others = parser.parse_known_args()
    for flag in ("--path", "--sb-direction", "--sb-answer"):
        if any(word.split("=")[0] == flag for word in others):
            raise ValueError(f"{flag} is not for reranking: give --l2r and --r2l")
    for flag, path in ("--l2r", args.l2r), ("--r2l", args.r2l):
        if ":" in path:
            raise ValueError(f"{flag} must be one checkpoint, but is {path}")
    words = [*others, args.l2r, args.r2l]
    run_job(args, words, lambda: Reranker(others, args.l2r, args.r2l))


if __name__ == "__main__":
    run(main)
