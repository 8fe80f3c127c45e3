"""BLEU of a validation set by the end of the search, and by the number rescored.

    python tests/horizon.py horizon.json NAME CHECKPOINT DATA TEXT SOURCE TARGET

TEXT has valid.SOURCE and valid.TARGET, of subwords, of which the first 500 lines count.
One more model is one more command with the same file.
"""

import json
import logging
import shlex
import sys
from pathlib import Path

import torch

from sbnmt_plugin.model import SBTransformerModel
from sbnmt_plugin.search import pool
from sbnmt_plugin.tools.machine import commit, machine, versions
from sbnmt_plugin.tools.scoring import tokenised_bleu
from sbnmt_plugin.tools.text import read_lines, remove_bpe
from sbnmt_plugin.tools.unfinished import write_json

LINES, LONGEST = 500, 100
CONSTANTS = (1, 0), (1.1, 1), (1.25, 2), (1.25, 5), (1.5, 5)
RECIPES = {"lenpen": 0.6, "max_len_a": 1.2, "max_len_b": 10}
OPTIONS = {
    "fairseq's defaults": {"sb_length_penalty": "power", "lenpen": 1.0},
    "our defaults": {"lenpen": 1.0},
    "power 0.6": {"sb_length_penalty": "power", "lenpen": 0.6},
    "a recipe's": RECIPES,
}


def scorer_of(arguments):
    """A function of the search's options that gives BLEU."""
    checkpoint, data, text, source, target = arguments
    folder, name = str(Path(checkpoint).parent), Path(checkpoint).name
    model = SBTransformerModel.from_pretrained(folder, name, str(Path(data).resolve()))
    files = (read_lines(Path(text) / f"valid.{x}")[:LINES] for x in (source, target))
    pairs = [pair for pair in zip(*files) if len(pair[0].split()) < LONGEST]
    sources, references = map(list, zip(*pairs))
    references = [remove_bpe(line) for line in references]

    def score(**options):
        texts = model.translate(sources, beam=4, **options)
        texts = [remove_bpe(line) for line in texts]
        return round(tokenised_bleu(texts, [references])["score"], 2)

    return score


def measured(name, score):
    """A row for each group of options, and one of rescoring."""
    for group, options in OPTIONS.items():
        row = {"model": name, "options": group}
        row["first"] = score(sb_stop="first", **options)
        for factor, more in CONSTANTS:
            pool.horizon = lambda n, a=factor, b=more: int(a * n + 1e-9) + b
            row[f"{factor} n + {more}"] = score(sb_stop="horizon", **options)
        yield {**row, "bound": score(sb_stop="bound", **options)}
    pool.horizon = HORIZON
    row = {"model": name, "options": "a recipe's, rescored"}
    for count in 2, 3, 4:
        key = f"best {count} rescored"
        row[key] = score(sb_rescore=1.0, sb_rescore_best=count, **RECIPES)
    yield row


HORIZON = pool.horizon

if __name__ == "__main__":
    output, name, *arguments = sys.argv[1:]
    logging.disable(logging.INFO)
    torch.set_num_threads(1)
    known = json.loads(Path(output).read_text()) if Path(output).exists() else {}
    rows = [*known.get("rows", []), *measured(name, scorer_of(arguments))]
    head = {
        "title": "BLEU on 500 validation lines by the end of the search, beam 4",
        "command": f"python {shlex.join(sys.argv)}",
        **{"commit": commit(), "machine": machine(), "versions": versions()},
    }
    write_json(output, {**head, **known, "rows": rows})
