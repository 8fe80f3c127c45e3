#!/usr/bin/env python3
"""Measure the cost of --sb-future-shift and --sb-reader on a CPU.

The same model is run as in the paper, with the one, and with both, in turn.

    future_shift.py [--size small] [--rounds 12]

Processor seconds, medians: a training pass, forward and backward, of 100 sentences of
17 words; 20 steps of a decoder, two hypotheses a direction.  Ratios are medians of the
rounds' own, so what else runs on the machine changes them little.
"""

from __future__ import annotations

import statistics
import time
from argparse import Namespace
from typing import Any

import torch
import torch.nn.functional as F

from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.layout import Layout
from sbnmt_plugin.tools.benchmark.choices import SIZES
from sbnmt_plugin.tools.benchmark.models import make_dictionary, model_options
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.synthetic import parser_of

SENTENCES, WORDS, STEPS, VOCABULARY = 100, 17, 20, 6000
LAYOUT = Layout(2, 2)
SHIFT = {"sb_future_shift": True}
WAYS: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "shifted": SHIFT,
    "and a reader beside a frozen writer": {**SHIFT, "sb_reader": True},
}


def make(size: str, way: dict[str, Any]) -> Any:
    """A model of that way."""
    torch.manual_seed(1)
    words = make_dictionary(VOCABULARY)
    task = Namespace(source_dictionary=words, target_dictionary=words)
    options = model_options(size, dropout=0.1, sb_lambda=1.0, **way)
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
    models = [make(args.size, way) for way in WAYS.values()]
    source = torch.randint(4, VOCABULARY, (SENTENCES, WORDS))
    target = torch.randint(4, VOCABULARY, (2 * SENTENCES, WORDS))
    rows = []
    for name, work in ("training", train), ("decoder", decode):
        times: list[list[float]] = [[] for _ in models]
        for number in range(args.rounds + 1):  # the first is not counted
            for model, found in zip(models, times):
                start = time.process_time()
                work(model, source, target)
                if number:
                    found.append(time.process_time() - start)
        cells = [f"{statistics.median(times[0]):.3f} s"]
        for found in times[1:]:
            ratio = statistics.median(b / a for a, b in zip(times[0], found))
            cells.append(f"{ratio:.3f}×")
        rows.append([f"{name}, {args.size}", *cells])
    print("\n".join(aligned(["", *WAYS], rows)))


if __name__ == "__main__":
    main()
