r"""Turn line-aligned text files into a data folder for --task sb_translation.

    sbnmt binarise --source-lang en --target-lang de --trainpref text/train \
        --validpref text/valid --testpref text/test --destdir data

Each prefix names PREFIX.en, PREFIX.de and, where the R2L stream has texts of its own,
PREFIX.r2l.  The files have the same number of lines, all in natural word order (the
task reverses).  A training set of triples needs the third; validation and test sets
usually have none.  Any other option goes to fairseq-preprocess: --srcdict, --tgtdict,
--joined-dictionary, --workers, --thresholdsrc …
"""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

from fairseq import options
from fairseq.binarizer import FileBinarizer, VocabularyDatasetBinarizer
from fairseq.data import Dictionary
from fairseq_cli import preprocess

from sbnmt_plugin.fairseq_options import BINARISE
from sbnmt_plugin.given_options import refuse_typed
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.text import check_parallel
from sbnmt_plugin.tools.unfinished import new_folder, refuse_existing
from sbnmt_plugin.training.checksums import write_sums
from sbnmt_plugin.training.data_files import check_dictionary

logger = logging.getLogger("binarise")
SPLITS = ("train", "valid", "test")


def binarise(args: argparse.Namespace, others: list[str]) -> None:
    """Write ``args.destdir``; it appears when all is written."""
    languages = args.source_lang, args.target_lang
    if args.source_lang == args.target_lang:
        raise ValueError(
            "--source-lang and --target-lang must be two languages, but are both "
            f"{args.source_lang}: give the endings of the files"
        )
    destination = Path(args.destdir)
    refuse_existing("--destdir", destination)
    if os.pathsep in str(destination):
        raise ValueError(
            f"--destdir {destination} must have no {os.pathsep} in it, where fairseq "
            "takes it for several folders: choose another"
        )
    opposites, given = {}, []
    for split in SPLITS:
        if (prefix := getattr(args, f"{split}pref")) is not None:
            given += [f"--{split}pref", prefix]
            ending = Path(prefix).suffix.removeprefix(".")
            if ending in languages and Path(prefix).is_file():
                raise ValueError(
                    f"--{split}pref {prefix} must be what the names of the files have "
                    f"in common: leave out .{ending}"
                )
            texts = [f"{prefix}.{language}" for language in languages]
            if (opposite := Path(f"{prefix}.r2l")).exists():
                opposites[split] = opposite
                texts.append(str(opposite))
            check_parallel(*texts)
    if not given:
        raise ValueError("--trainpref, --validpref or --testpref must be given")
    parser = options.get_preprocessing_parser()
    refuse_typed(parser, BINARISE)
    words = ["--source-lang", languages[0], "--target-lang", languages[1]]
    settings = parser.parse_args([*words, *others, *given])
    if settings.workers < 1:
        raise ValueError(f"--workers must be ≥ 1, but is {settings.workers} instead")
    if settings.joined_dictionary and settings.srcdict and settings.tgtdict:
        raise ValueError(
            "--joined-dictionary makes one dictionary of two languages: give it with "
            "--srcdict or --tgtdict alone, or leave it out"
        )
    for dictionary in filter(None, (settings.srcdict, settings.tgtdict)):
        check_dictionary(dictionary)
    with new_folder(destination) as temporary:
        settings.destdir = str(temporary)
        try:
            preprocess.main(settings)
        except AssertionError as error:  # how fairseq asks for dictionaries
            raise ValueError(str(error)) from error
        for split, opposite in opposites.items():
            write_opposite(temporary, split, opposite, settings)
        write_sums(temporary)
    logger.info("wrote %s", destination)


def write_opposite(
    folder: Path, split: str, texts: Path, settings: argparse.Namespace
) -> None:
    """Write R2L texts beside the pairs, in fairseq's form."""
    pair = f"{settings.source_lang}-{settings.target_lang}"
    dictionary = Dictionary.load(str(folder / f"dict.{settings.target_lang}.txt"))
    summary = FileBinarizer.multiprocess_dataset(
        str(texts),
        settings.dataset_impl,
        VocabularyDatasetBinarizer(dictionary, append_eos=True),
        str(folder / f"{split}.{pair}.r2l"),
        vocab_size=len(dictionary),
        num_workers=settings.workers,
    )
    logger.info("[r2l] %s: %s", texts, summary)


def main() -> None:
    parser = command.parser(__doc__, allow_abbrev=False)
    parser.add_argument("-s", "--source-lang", required=True)
    parser.add_argument("-t", "--target-lang", required=True)
    for split in SPLITS:
        parser.add_argument(f"--{split}pref", help=f"prefix of the {split} texts")
    parser.add_argument("--destdir", required=True, help="new folder to write")
    args, others = parser.parse_known_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    binarise(args, others)
