"""Measure how much the streams read of each other, by scoring the same text in both.

    sbnmt probe-reading data --path sb/model.pt [--subset valid] [--json FILE]

The reference stands in both streams.  So from its middle on each stream can read in the
other every word that it has to predict.  The step prints the negative log-likelihood of
a token, in bits, in the first and in the second half of the sentences,

    as trained          with the text in the other stream
    λ = 0               with nothing
    partners shuffled   with the text of another sentence of the batch

A model that has learned to read the other stream is far better in the second half, as
trained.  Where the three are equal, no search can profit from the interaction.
"""

from __future__ import annotations

from sbnmt_plugin.network.protocol import said
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.probes import HALVES, SETTINGS, bits_by_half, gold_batches
from sbnmt_plugin.tools.translator import Translator
from sbnmt_plugin.tools.unfinished import write_json


def main() -> None:
    parser = command.parser(__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("--subset", default="valid", help="of the data folder")
    add("--json", help="file to write the numbers to")
    args, others = parser.parse_known_args()
    translator = Translator(others)
    model, *more = translator.models
    if more or not said(model, "reads_across"):
        raise ValueError(
            "--path must be one sb_transformer: no other model has two streams that "
            "read each other"
        )
    pad = translator.task.target_dictionary.pad()
    batches = gold_batches(translator, args.subset)
    results: dict[str, dict[str, float]] = {}
    for name, (crippled, shift) in SETTINGS.items():
        with crippled(translator.models):
            results[name] = dict(zip(HALVES, bits_by_half(model, batches, pad, shift)))
    if args.json:
        write_json(args.json, results)
    for name in SETTINGS:
        numbers = "   ".join(f"{h} {n:.3f}" for h, n in results[name].items())
        print(f"bits a token, {name:<18} {numbers}")
