r"""Export a model folder for CTranslate2, with which it translates without torch.

    sbnmt export MODEL --output EXPORTED --quantization int8
    sbnmt translate EXPORTED < raw.en > raw.de

EXPORTED is again a model folder.  It appears when it is whole, and when given texts
have the same log-probabilities in float32 as before, up to 0.001.  CTranslate2's search
normalises otherwise: the scores that it prints differ by some hundredths, and now and
then a translation differs.  With one hypothesis of a direction (--beam 2, or 1 of a
teacher) it is greedy, and its texts may be too long.  SB-NMT models and Transformers of
one direction can be exported.

CTranslate2 does not know the interaction of the two directions.  A model that has it is
exported without, if --without-interaction is given.  A reader or λ = 1 loses more by it
than the paper's λ = 0.1.  So the loss has to be measured, on the raw text of
--validation.

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
from sbnmt_plugin.tools.models import conversion, ctranslate2_engine, fairseq_engine
from sbnmt_plugin.tools.models.description import read_description, write_description
from sbnmt_plugin.tools.models.folder import Model
from sbnmt_plugin.tools.text import read_parallel
from sbnmt_plugin.tools.unfinished import new_folder, refuse_existing
from sbnmt_plugin.training.checksums import sha256_of

TYPES = (
    *("float32", "int8", "int8_float32", "int8_float16", "int8_bfloat16"),
    *("float16", "bfloat16"),
)


def main() -> None:
    parser = command.parser(__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("model", type=Path, help="model folder")
    add("--output", type=Path, required=True, help="folder to write")
    add("--quantization", choices=TYPES, default=TYPES[0], help=f"weights ({TYPES[0]})")
    add("--without-interaction", action="store_true", help="leave interaction out")
    add("--validation", nargs=2, metavar=("SOURCE", "REFERENCE"), help="raw text")
    args = parser.parse_args()
    refuse_existing("--output", args.output)
    known = read_description(args.model)
    if known.engine != "fairseq":
        raise ValueError(f"{args.model} must be a model of torch, but is exported")
    texts = read_parallel(*args.validation) if args.validation else []
    engine = fairseq_engine.open_engine(args.model, known, "cpu", "float32", 1)
    (network,) = engine.models
    conversion.refuse_unknown(network)
    check_interaction(args, adopt(network.decoder).interacts)
    if texts:
        try:
            before = bleu(Model(args.model, known, engine), *texts)
        except ValueError as error:
            raise ValueError(
                f"--validation {args.validation[0]}: {error}: leave it out"
            ) from error
    with new_folder(args.output) as folder:
        how = args.quantization
        conversion.convert(network, known.directions, folder, how)
        for side in known.source, known.target:
            for name in side.files:
                shutil.copy(args.model / name, folder / name)
        most = min(known.search["max_positions"], *engine.max_positions)
        made = replace(
            known,
            engine="ctranslate2",
            search={**known.search, "max_positions": int(most)},
            files={path.name: sha256_of(path) for path in sorted(folder.iterdir())},
            provenance={
                **known.provenance,
                "export": {"quantization": how, "version": __version__},
            },
        )
        if texts:
            exported = ctranslate2_engine.open_engine(folder, made, "cpu", "float32", 1)
            after = bleu(Model(folder, made, exported), *texts)
            cost = {"torch": before, "exported": after}
            made = replace(made, scores={**made.scores, "export": cost})
        write_description(folder, made)
    if texts:
        print(f"BLEU {before['score']:.2f}, exported {after['score']:.2f}")
    print(f"Exported to {args.output}. Translate raw text with:")
    print(f"  sbnmt translate {args.output} < INPUT > OUTPUT")


def check_interaction(args: argparse.Namespace, interacts: bool) -> None:
    """Check that interaction is left out only where the user knows of it.

    Raises:
        ValueError: the model has it, and an option is missing.
    """
    missing = [] if args.without_interaction else ["--without-interaction"]
    if not args.validation:
        missing.append("--validation SOURCE REFERENCE, which measures what it costs")
    if interacts and missing:
        raise ValueError(
            f"{args.model} has streams that read each other, which CTranslate2 does "
            f"not know: add {' and '.join(missing)}"
        )
    if args.without_interaction and not interacts:
        print("the model has no interaction to leave out", file=sys.stderr)


def bleu(model: Model, sources: list[str], references: list[str]) -> dict[str, Any]:
    """Return BLEU of a model's translations, with its signature."""
    target = model.description.target
    tokeniser = scoring.tokeniser_of(target.language)
    metric = scoring.bleu(tokeniser, lowercase=target.lowercase)
    return scoring.score(metric, model.translate(sources), [references])
