#!/usr/bin/env python3
"""How wrong a noised partner is, and how wrong what a teacher writes.

    noise.py --text W/bpe/train.de [--pseudo W/pseudo/l2r.tsv …] [--rate 0.5 …]

Unigram precision in percent: of all words of a text those that gold text has, a word as
often as it is there.  First of gold text after --sb-partner-noise of each rate, then of
each file of pseudo targets, which sbnmt translate wrote of the same sentences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch

from sbnmt_plugin.tools.corpora.synthetic import parser_of
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.training.input_noise import PartnerNoise


def noised(text: list[list[str]], rate: float) -> Iterator[list[str]]:
    """Each sentence with noise."""
    names = sorted({word for words in text for word in words})
    index = {word: i for i, word in enumerate(names)}
    end = len(names)
    ids = [torch.tensor([*(index[w] for w in words), end]) for words in text]
    noise = PartnerNoise(rate, seed=1)
    for i, words in enumerate(ids):
        found = noise(words[:-1], ids, epoch=1, index=i, direction=0)
        yield [names[word] for word in found.tolist()]


def precision(pairs: Iterator[tuple[list[str], list[str]]]) -> float:
    """In percent, of pairs of a text and gold text."""
    right, words = 0, 0
    for found, gold in pairs:
        right += (Counter(found) & Counter(gold)).total()
        words += len(found)
    return 100 * right / words


def pseudo(path: Path, text: list[list[str]]) -> Iterator[tuple[list[str], list[str]]]:
    """What a teacher wrote, beside gold text, of the sentences that are there."""
    for line in path.read_text(encoding="utf-8").splitlines():
        number, _, found = line.split("\t")[:3]
        yield found.split(), text[int(number)]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--text", type=Path, required=True, help="gold text, after BPE")
    parser.add_argument(
        "--pseudo", type=Path, nargs="*", default=[], help="of sbnmt translate"
    )
    rates = [0.25, 0.5, 0.75, 1.0]
    parser.add_argument(
        "--rate", type=float, nargs="*", default=rates, help=f"default: {rates}"
    )
    args = parser.parse_args()
    text = [line.split() for line in args.text.read_text(encoding="utf-8").splitlines()]
    rows = []
    for rate in args.rate:
        value = precision(zip(noised(text, rate), text))
        rows.append([f"gold text, noise {rate:g}", f"{value:.1f}"])
    for path in args.pseudo:
        rows.append([str(path), f"{precision(pseudo(path, text)):.1f}"])
    print("\n".join(aligned(["partner", "unigram precision, %"], rows)))


if __name__ == "__main__":
    main()
