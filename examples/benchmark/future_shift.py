#!/usr/bin/env python3
"""What --sb-future-shift costs on a CPU: the same model with it and without, in turn.

    future_shift.py [--size small] [--rounds 12]

Processor seconds, medians: a training pass, forward and backward, of 100 sentences of
17 words; 20 steps of a decoder, two hypotheses a direction.  The ratio is the median of
the rounds' own, so what else runs on the machine changes it little.
"""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from typing import Any

import torch
import torch.nn.functional as F

from sbnmt_plugin.layout import Layout
from sbnmt_plugin.network.model import SBTransformerModel
from sbnmt_plugin.tools.benchmark.models import SIZES, make_dictionary, model_options
from sbnmt_plugin.tools.recipes.table import aligned
from sbnmt_plugin.tools.synthetic import parser_of

SENTENCES, WORDS, STEPS, VOCABULARY = 100, 17, 20, 6000
LAYOUT = Layout(2, 2)


def make(size: str, shift: bool) -> Any:
    """A model whose weights are those of its twin."""
    torch.manual_seed(1)
    words = make_dictionary(VOCABULARY)
    task = Namespace(source_dictionary=words, target_dictionary=words)
    options = model_options(size, dropout=0.1, sb_lambda=1.0, sb_future_shift=shift)
    return SBTransformerModel.build_model(options, task)


def train(model: Any, source: torch.Tensor, target: torch.Tensor) -> None:
    """A pass forward and backward."""
    lengths = torch.full((len(source),), source.size(1))
    output, _ = model.train()(source, lengths, target)
    F.cross_entropy(output.flatten(0, 1), target.flatten()).backward()


@torch.no_grad()
def decode(model: Any, source: torch.Tensor, target: torch.Tensor) -> None:
    """The decoder's steps of a search that keeps every hypothesis where it is."""
    lengths = torch.full((len(source),), source.size(1))
    encoded = model.eval().encoder(source, src_lengths=lengths)
    cache = model.decoder.start(encoded, LAYOUT)
    rows = torch.arange(len(source) * LAYOUT.group)
    tokens = target[:, :1].repeat_interleave(LAYOUT.beam, 0)
    for _ in range(STEPS):
        model.decoder.step(tokens, cache)
        cache.select(rows)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--size", choices=SIZES, default="small", help="default: small")
    parser.add_argument("--rounds", type=int, default=12, help="default: 12")
    args = parser.parse_args()
    torch.set_num_threads(1)
    models = make(args.size, False), make(args.size, True)
    source = torch.randint(4, VOCABULARY, (SENTENCES, WORDS))
    target = torch.randint(4, VOCABULARY, (2 * SENTENCES, WORDS))
    rows = []
    for name, work in ("training", train), ("decoder", decode):
        times: list[list[float]] = [[], []]
        for number in range(args.rounds + 1):  # the first is not counted
            for model, found in zip(models, times):
                start = time.process_time()
                work(model, source, target)
                if number:
                    found.append(time.process_time() - start)
        ratio = statistics.median(b / a for a, b in zip(*times))
        medians = [f"{statistics.median(found):.3f}" for found in times]
        rows.append([f"{name}, {args.size}", *medians, f"{ratio:.3f}×"])
    print("\n".join(aligned(["", "as in the paper", "shifted", "ratio"], rows)))


if __name__ == "__main__":
    main()
