#!/usr/bin/env python3
"""Does the interaction matter?  Decode with one checkpoint as it is and crippled.

    probe_interaction.py data --path sb/model.pt --input bpe/test.src \
        --reference text/test.tgt [--reference …] [--json FILE] \
        [options of fairseq-generate]

Prints tokenised BLEU of

    as trained          the search of the paper
    λ = 0               nothing of the future attention reaches the model
    partners shuffled   every hypothesis attends to the opposite hypothesis of another
                        sentence of its batch, always the same one
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import torch
from score import tokenised_bleu
from texts import new_file, read_parallel, refuse_tags, remove_bpe, run
from torch import Tensor
from translate import Translator

from sbnmt_plugin import attention
from sbnmt_plugin.attention import SBSelfAttention
from sbnmt_plugin.generator import Generator


class Pairing(Translator):
    """A translator whose batches have two sentences at least, if there are two."""

    def grouped(self, batches: Any) -> list[list[int]]:
        """A sentence alone joins its neighbours."""
        groups: list[list[int]] = []
        for batch in batches:
            if groups and 1 in (len(batch), len(groups[-1])):
                groups[-1] += list(batch)
            else:
                groups.append(list(batch))
        return groups


@contextlib.contextmanager
def without_future(models: list[Any]) -> Iterator[None]:
    """Fuse with a future of zeros: λ = 0 for linear, tanh and relu."""
    hooks = [
        module.fusion.register_forward_pre_hook(
            lambda _, pair: (pair[0], torch.zeros_like(pair[1]))
        )
        for model in models
        for module in model.modules()
        if isinstance(module, SBSelfAttention)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def finished_sentences_stay() -> Iterator[None]:
    """Keep a batch as it is until all its sentences have finished."""

    def staying(self: Generator, done: Tensor) -> Tensor:
        places = torch.arange(len(done), device=done.device)
        return places[:0] if bool(done.all()) else places

    original = Generator._staying
    Generator._staying = staying
    try:
        yield
    finally:
        Generator._staying = original


@contextlib.contextmanager
def shuffled_partners(models: list[Any]) -> Iterator[None]:
    """Move every future by one sentence within the batch.

    Finished sentences stay until all have finished, so that the last one that lives
    still has another's partner.

    Raises:
        ValueError: a batch of one sentence.
    """
    original = attention.attend_both_ways

    def moved(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        directions: int,
        mask: Tensor | None,
        *rest: Any,
    ):
        if len(key) == directions:
            raise ValueError(
                "partners are shuffled within a batch, but one has a single sentence: "
                "raise --batch-size or --max-tokens, or give more lines to --input"
            )
        history, _ = original(query, key, value, directions, mask, *rest)
        # a sentence's keys and the mask that says whose they are move together
        others = [x if x is None else x.roll(directions, 0) for x in (key, value, mask)]
        _, future = original(query, *others[:2], directions, others[2], *rest)
        return history, future

    attention.attend_both_ways = moved
    try:
        with finished_sentences_stay():
            yield
    finally:
        attention.attend_both_ways = original


@contextlib.contextmanager
def untouched(models: list[Any]) -> Iterator[None]:
    yield


SETTINGS = {
    "as trained": untouched,
    "λ = 0": without_future,
    "partners shuffled": shuffled_partners,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--input", required=True, help="source text, as binarised")
    parser.add_argument("--reference", action="append", required=True, help="tokenised")
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    parser.add_argument("--json", help="file to write the scores to")
    args, others = parser.parse_known_args()
    lines, *references = read_parallel(args.input, *args.reference)
    refuse_tags(args.input, lines)
    translator = Pairing(others)
    if not all(getattr(m, "bidirectional", False) for m in translator.models):
        raise ValueError("--path must be an sb_transformer: a teacher has no partner")
    if translator.cfg.dataset.batch_size == 1 or len(lines) == 1:
        raise ValueError(
            "--batch-size must be ≥ 2, and so must the lines of --input: partners are "
            "shuffled within a batch"
        )
    results = {}
    for name, setting in SETTINGS.items():
        with setting(translator.models):
            found, _ = translator.translate(lines)
        texts = [
            remove_bpe(translator.text(found[i])) if i in found else ""
            for i in range(len(lines))
        ]
        results[name] = tokenised_bleu(texts, references, args.lowercase)
        wins = [h["direction"] for h in found.values()].count("l2r")
        share = 100 * wins / max(1, len(found))
        results[name]["L2R wins"] = round(share, 1)
        print(
            f"interaction {name:<18} tokenised BLEU {results[name]['score']:6.2f}   "
            f"L2R wins {share:5.1f} %",
            flush=True,
        )
    print(f"signature {results['as trained']['signature']}")
    if args.json:
        with new_file(args.json) as file:
            json.dump(results, file, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    run(main)
