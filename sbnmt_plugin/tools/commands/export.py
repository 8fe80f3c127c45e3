r"""Export a model folder for CTranslate2, with which it translates without torch.

    sbnmt export MODEL --output EXPORTED --quantization int8
    sbnmt translate EXPORTED < raw.en > raw.de

EXPORTED is again a model folder; it appears when it is whole, and when texts have the
same log-probabilities as before, up to 0.001.  SB-NMT models and Transformers of one
direction can be exported.

CTranslate2 does not know the interaction of the two directions.  A model that has it is
exported without, if --without-interaction is given.  The paper's setting then loses
0.05 BLEU on Multi30k; a reader or λ = 1 loses more.  So the loss has to be measured, on
the raw text of --validation.

With --validation SOURCE REFERENCE the BLEU of MODEL and of EXPORTED on these files is
printed, and written into EXPORTED/model.yaml.

On a CPU, float16 and bfloat16 make the folder smaller, but not the model faster.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from sbnmt_plugin import __version__
from sbnmt_plugin.network.fairseq_decoder import adopt
from sbnmt_plugin.tools import command, scoring
from sbnmt_plugin.tools.models import conversion, fairseq_engine
from sbnmt_plugin.tools.models.description import (
    Description,
    read_description,
    write_description,
)
from sbnmt_plugin.tools.models.folder import Model, load
from sbnmt_plugin.tools.text import read_parallel
from sbnmt_plugin.tools.unfinished import new_folder, refuse_existing
from sbnmt_plugin.training.checksums import sha256_of

TYPES = (
    *("float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16"),
    *("float16", "bfloat16"),
)
TOKENISERS = {"zh": "zh", "ja": "char"}  # of BLEU, for languages without blanks


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = command.parser(__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("model", type=Path, help="model folder")
    add("--output", type=Path, required=True, help="folder to write")
    add("--quantization", choices=TYPES, default=TYPES[0], help=f"weights ({TYPES[0]})")
    add("--without-interaction", action="store_true", help="leave interaction out")
    add("--validation", nargs=2, metavar=("SOURCE", "REFERENCE"), help="raw text")
    return parser.parse_args()


def main() -> None:
    args = parsed()
    refuse_existing("--output", args.output)
    description = read_description(args.model)
    if description.engine != "fairseq":
        raise ValueError(f"{args.model} must be a model of torch, but is exported")
    texts = read_parallel(*args.validation) if args.validation else []
    engine = fairseq_engine.open_engine(args.model, description, "cpu", "float32", 1)
    (network,) = engine.models
    conversion.refuse_unknown(network)
    check_interaction(args, adopt(network.decoder).interacts)
    with new_folder(args.output) as folder:
        words = engine.task.source_dictionary, engine.task.target_dictionary
        directions = description.directions
        conversion.convert(network, *words, directions, folder, args.quantization)
        most = network.encoder.max_positions()
        made = exported(args, description, folder, most)
        write_description(folder, made)
        if texts:
            models = Model(args.model, description, engine), load(folder, "cpu")
            before, after = (bleu(model, *texts) for model in models)
            cost = {"torch": before, "exported": after}
            made = replace(made, scores={**made.scores, "export": cost})
            write_description(folder, made)
    if texts:
        print(f"BLEU {before['score']:.2f}, exported {after['score']:.2f}")
    print(f"{args.output}: sbnmt translate {args.output} < RAW")


def check_interaction(args: argparse.Namespace, interacts: bool) -> None:
    """Check that interaction is left out only where the user knows of it.

    Raises:
        ValueError: the model has it, and an option is missing.
    """
    if not interacts:
        if args.without_interaction:
            print("the model has no interaction to leave out", file=sys.stderr)
    elif not args.without_interaction or not args.validation:
        raise ValueError(
            f"{args.model} has streams that read each other, which CTranslate2 does "
            "not know: add --without-interaction and --validation SOURCE REFERENCE, "
            "which measures what it costs"
        )


def exported(
    args: argparse.Namespace, description: Description, folder: Path, most: int
) -> Description:
    """Complete the exported folder, and return its description.

    Args:
        most: positions of the encoder.
    """
    sides = description.source, description.target
    names = {name for side in sides for name in (side.codes, side.dictionary) if name}
    for name in names:
        shutil.copy(args.model / name, folder / name)
    search = description.search
    search = {**search, "max_positions": min(search["max_positions"], most)}
    how = {"quantization": args.quantization, "version": __version__}
    return replace(
        description,
        engine="ctranslate2",
        search=search,
        files={path.name: sha256_of(path) for path in sorted(folder.iterdir())},
        provenance={**description.provenance, "export": how},
    )


def bleu(model: Model, sources: list[str], references: list[str]) -> dict[str, Any]:
    """Return BLEU of a model's translations, with its signature."""
    target = model.description.target
    tokeniser = TOKENISERS.get(target.language[:2], "13a")
    metric = scoring.bleu(tokeniser, lowercase=target.lowercase)
    return scoring.score(metric, model.translate(sources), [references])
