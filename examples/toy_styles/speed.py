#!/usr/bin/env python3
"""Time the decoding of trained rows: one call of a decoder, and one a word.

    speed.py --work work/toy_styles [--rounds 5] [--sentences 300] [--json FILE]
    speed.py --work work/multi30k-small --recipe examples/multi30k --small

Milliseconds a sentence alone, and sentences a second, 50 in a batch, of similar length;
the test set, medians of rounds in which the cases take turns, with the least and
the most.  Timed is all from token numbers to hypotheses: looking up, batching, search.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import torch

from sbnmt_plugin import quiet
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.settings import search_options
from sbnmt_plugin.tools.results.table import aligned
from sbnmt_plugin.tools.text import read_lines
from sbnmt_plugin.tools.translator import Translator

HERE = Path(__file__).resolve().parent
SIZES = {1: "ms a sentence, alone", 50: "sentences/s, 50 in a batch"}
CASES = {  # title: row, options over the recipe's
    "Transformer, beam 4": ("teacher-l2r", ["--beam", "4"]),
    "Transformer, beam 1": ("teacher-l2r", ["--beam", "1"]),
    "ENAT, phrase table": ("enat-phrase", ["--beam", "1"]),
    "ENAT, phrase table, 9 lengths": ("enat-phrase", ["--beam", "9"]),
}


def translators(work: Path, recipe: dict[str, Any]) -> dict[str, Translator]:
    """Models and searches of all cases."""
    found = {}
    for title, (row, options) in CASES.items():
        words = [str(work / "data"), "--path", str(work / row / "model.pt")]
        words += ["--sb-direction", "l2r", *search_options(recipe), *options]
        if row == "enat-phrase":
            words += ["--enat-table", str(work / "phrases" / "phrases")]
        if options == ["--beam", "9"]:
            words += ["--nat-teacher", str(work / "teacher-l2r" / "model.pt")]
        found[title] = Translator(words)
    return found


def seconds(translator: Translator, lines: list[str], size: int) -> float:
    """What the translation of all lines takes, so many in a batch."""
    tokens, lengths = translator.task.get_interactive_tokens_and_lengths(
        lines, lambda line: line
    )
    dataset = translator.task.build_dataset_for_inference(tokens, lengths)
    order = sorted(range(len(lines)), key=lambda place: int(lengths[place]))
    start = time.perf_counter()
    for first in range(0, len(order), size):
        batch = [dataset[place] for place in order[first : first + size]]
        translator.search(dataset.collater(batch))
    return time.perf_counter() - start


def described(size: int, count: int, times: list[float]) -> dict[str, float]:
    """Median, least and most of what :data:`SIZES` says."""
    values = [1000 * t / count if size == 1 else count / t for t in times]
    return {"median": median(values), "least": min(values), "most": max(values)}


def main() -> None:
    parser = command.parser(__doc__)
    parser.add_argument("--work", required=True, help="folder of the run", type=Path)
    parser.add_argument("--json", help="file to write the numbers to", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--recipe", help="of the run; default: this folder's", default=HERE, type=Path
    )
    parser.add_argument(
        "--sentences", type=int, help="the first of the test set; default: all"
    )
    parser.add_argument("--small", action="store_true", help="its small setting")
    args = parser.parse_args()
    quiet.only_warnings("fairseq", "hydra", "sbnmt_plugin")
    torch.set_num_threads(1)
    recipe = load_recipe(args.recipe, args.small)
    split = args.work / "bpe"
    texts = split if split.exists() else args.work / "text"
    lines = read_lines(texts / f"test.{recipe['source']}")[: args.sentences]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Hydra's, of fairseq's calls
        cases = translators(args.work, recipe)
    keys = [(title, size) for size in SIZES for title in cases]
    for title, size in keys:
        seconds(cases[title], lines[:50], size)  # warm
    times: dict[tuple[str, int], list[float]] = {key: [] for key in keys}
    for _ in range(args.rounds):
        for title, size in keys:
            times[title, size].append(seconds(cases[title], lines, size))
    found = {
        title: {
            name: described(size, len(lines), times[title, size])
            for size, name in SIZES.items()
        }
        for title in cases
    }
    cells = [
        [
            title,
            *(
                "{median:.1f} ({least:.1f}–{most:.1f})".format(**v)
                for v in row.values()
            ),
        ]
        for title, row in found.items()
    ]
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print("", *aligned(["decoding", *SIZES.values()], cells), "", sep="\n")


if __name__ == "__main__":
    main()
