#!/usr/bin/env python3
"""How much do the streams read of each other?  Score gold text that gives itself away.

    probe_reading.py data --path sb/model.pt [--subset valid] [--json FILE]

The same text stands in both streams, so from its middle on each stream can read in the
other every word that it has to predict.  Printed is the negative log-likelihood of a
token, in bits, in the first and in the second half of the sentences,

    as trained          with the text in the other stream
    λ = 0               with nothing
    partners shuffled   with the text of another sentence of the batch

A model that has learned to look across is far better in the second half, as trained;
where the three are equal, no search can make the interaction matter.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from typing import Any

import torch
from fairseq import utils
from probe_interaction import SETTINGS
from texts import new_file, run
from torch import Tensor
from translate import Translator

HALVES = ("first half", "second half")


def halves(label: Tensor, pad: int) -> tuple[Tensor, Tensor]:
    """Masks of the first and the second half of every row, padding left out."""
    real = label.ne(pad)
    middle = real.sum(-1, keepdim=True) // 2
    place = torch.arange(label.size(1), device=label.device)
    return real & (place < middle), real & (place >= middle)


@torch.no_grad()
def bits_by_half(model: Any, batches: list[dict[str, Any]], pad: int) -> list[float]:
    """Mean bits a token in each half."""
    bits: dict[int, float] = defaultdict(float)
    count: dict[int, int] = defaultdict(int)
    for batch in batches:
        label = batch["stream_target"]  # (2B, T)
        output = model(**batch["net_input"])
        lprobs = model.get_normalized_probs(output, log_probs=True)
        chosen = -lprobs.gather(-1, label.unsqueeze(-1)).squeeze(-1) / math.log(2)
        for half, mask in enumerate(halves(label, pad)):
            bits[half] += float(chosen[mask].sum())
            count[half] += int(mask.sum())
    return [round(bits[half] / max(1, count[half]), 3) for half in (0, 1)]


def gold_batches(translator: Translator, subset: str) -> list[dict[str, Any]]:
    """Batches of at least two sentences with the gold text in both streams."""
    task = translator.task
    task.load_dataset(subset)
    batches = task.get_batch_iterator(
        task.dataset(subset),
        max_tokens=translator.max_tokens,
        max_sentences=translator.cfg.dataset.batch_size,
        max_positions=translator.max_positions,
        ignore_invalid_inputs=True,
    ).next_epoch_itr(shuffle=False)
    found = [batch for batch in batches if len(batch.get("id", [])) > 1]
    if not found:
        raise ValueError(
            f"--subset {subset} must give batches of two sentences at least, but gives "
            "none: raise --max-tokens or --batch-size"
        )
    return [utils.move_to_cuda(b) if translator.cuda else b for b in found]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--subset", default="valid", help="of the data folder")
    parser.add_argument("--json", help="file to write the numbers to")
    args, others = parser.parse_known_args()
    translator = Translator(others)
    if len(translator.models) != 1 or not hasattr(
        translator.models[0], "bidirectional"
    ):
        raise ValueError("--path must be one sb_transformer: a teacher has no partner")
    model, pad = translator.models[0], translator.task.target_dictionary.pad()
    batches = gold_batches(translator, args.subset)
    results = {}
    for name, setting in SETTINGS.items():
        with setting(translator.models):
            results[name] = dict(zip(HALVES, bits_by_half(model, batches, pad)))
        numbers = "   ".join(f"{h} {n:.3f}" for h, n in results[name].items())
        print(f"bits a token, {name:<18} {numbers}", flush=True)
    if args.json:
        with new_file(args.json) as file:
            json.dump(results, file, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    run(main)
