"""Make a model folder of a trained checkpoint, for sbnmt translate.

    sbnmt bundle DATA --path model/checkpoint_best.pt --codes codes --output MODEL

DATA is the folder of the binarised texts, whose dictionaries are taken.  The codes are
those that sbnmt bpe has learned; two languages may have one file each.  --tokeniser
says how the training text was tokenised: moses by the rules of its language (which are
jieba's for Chinese), none for text that was tokenised already, characters for text
whose ideographs stand alone.  Pieces of raw text (sentencepiece) have the tokeniser
none.

The options of the search are kept in the folder, and sbnmt translate uses them.  The
folder appears when it is whole, and may be moved.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from sbnmt_plugin import __version__
from sbnmt_plugin.checkpoints import read_checkpoint, settings_of
from sbnmt_plugin.config import task_config
from sbnmt_plugin.given_options import architecture_of
from sbnmt_plugin.register import register
from sbnmt_plugin.symbols import BLANK, NAMES
from sbnmt_plugin.task_options import caller_files, flag_of
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.machine import commit, machine, versions
from sbnmt_plugin.tools.models.description import (
    MODEL,
    MOSES,
    TOKENISERS,
    Description,
    Side,
    dictionary_of,
    write_description,
)
from sbnmt_plugin.tools.models.engine import check_beam
from sbnmt_plugin.tools.models.fairseq_engine import FLAGS, open_engine
from sbnmt_plugin.tools.subwords import MARK, Pieces, Subwords, subwords
from sbnmt_plugin.tools.text import as_written, read_lines
from sbnmt_plugin.tools.tokens import NONE, language_code
from sbnmt_plugin.tools.unfinished import new_folder, refuse_existing
from sbnmt_plugin.training.checksums import sha256_of
from sbnmt_plugin.training.data_files import check_languages

FEW, SAMPLE = 50, 2000  # whole words of a dictionary: that show nothing; that are tried
WHOLE = 0.9  # of them that codes must leave whole; their own leave all


def parsed() -> argparse.Namespace:
    """Return the options of the command line.

    Raises:
        ValueError: the languages are unknown, or more than two have codes.
    """
    parser = command.parser(__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("data", type=Path, help="folder of the binarised texts")
    add("--path", type=Path, required=True, help="checkpoint")
    add("--output", type=Path, required=True, help="folder to make")
    add("-s", "--source-lang", help="(by the files of DATA)")
    add("-t", "--target-lang", help="(by the files of DATA)")
    each = "of both languages, or one of source and one of target"
    add("--codes", nargs="+", help=f"codes of the subwords {each}")
    rules = f"(moses) {each}"
    add("--tokeniser", choices=TOKENISERS, nargs="+", default=["moses"], help=rules)
    add("--lowercase", action="store_true", help="the model knows lower case alone")
    add("--scores", type=Path, help="JSON file of scores to note, by the name of a set")
    search = parser.add_argument_group("search")
    for key, (flag, usual) in FLAGS.items():
        add = search.add_argument
        add(flag, dest=key, type=type(usual), default=usual, help=f"({usual})")
    own = parser.add_argument_group("files of a family")
    texts = {
        option.name: option.metadata.get("help") for option in fields(task_config())
    }
    for name in caller_files():
        own.add_argument(flag_of(name), type=Path, help=texts[name])
    args = parser.parse_args()
    if os.pathsep in str(args.path):
        raise ValueError(
            f"--path must be one checkpoint, but is {args.path}: average them with "
            "sbnmt average, or choose one"
        )
    for name in "codes", "tokeniser":
        if len(given := getattr(args, name) or []) > 2:
            raise ValueError(f"--{name} must be one or two, but is {given}")
    pair = check_languages(str(args.data), args.source_lang, args.target_lang)
    args.languages = args.source_lang or pair[0], args.target_lang or pair[1]
    return args


def words_of(dictionary: Path) -> list[str]:
    """Return the words of a dictionary, without their counts."""
    return [line.rpartition(" ")[0] for line in read_lines(dictionary)]


def check_codes(codes: Path, made: Subwords, dictionary: Path) -> None:
    """Check that codes, which ``made`` applies, keep a dictionary's whole words.

    Raises:
        ValueError: they do not keep those of a sample; few words show nothing.
    """
    other = re.compile(rf".|.*{MARK}|madeupword\d+")
    whole = [word for word in words_of(dictionary) if not other.fullmatch(word)]
    tried = whole[:: -(-len(whole) // SAMPLE) or 1]
    kept = sum(map(made.keeps, tried))
    if len(tried) >= FEW and kept < WHOLE * len(tried):
        raise ValueError(
            f"--codes {codes} must be those with which the training text was split, "
            f"but keep only {kept * 100 // len(tried)} % of the words of {dictionary} "
            "whole: give these"
        )


def add_side(args: argparse.Namespace, place: int, folder: Path) -> Side:
    """Copy codes and dictionary of source (0) or target (1) into a model folder.

    Raises:
        ValueError: the codes do not go with the tokeniser or the dictionary, or are
            missing; the language has no rules.
    """
    language, codes, rules = args.languages[place], "", args.tokeniser[-place]
    dictionary = dictionary_of(language)
    shutil.copyfile(args.data / dictionary, folder / dictionary)
    if args.codes:
        codes = "codes" if len(args.codes) == 1 else f"codes.{language}"
        made = subwords(Path(args.codes[-place]))  # its error has the user's name of it
        if isinstance(made, Pieces) and rules != NONE:
            whose = f"{args.codes[-place]}, whose pieces are of raw text"
            raise ValueError(f"--tokeniser must be none for {whose}, but is {rules}")
        both = {(args.data / dictionary_of(x)).read_bytes() for x in args.languages}
        joined = len(args.codes) > len(both)  # it has words of the other codes too
        if not joined:
            check_codes(args.codes[-place], made, args.data / dictionary)
        shutil.copyfile(args.codes[-place], folder / codes)
    else:
        words = words_of(args.data / dictionary)
        cut = sum(x.endswith(MARK) or x.startswith(BLANK) for x in words)
        if cut > len(words) / 100:  # a text may have such a word
            known = f"{len(words)} words of {args.data / dictionary}"
            raise ValueError(f"--codes must be given: {cut} of {known} are subwords")
    if rules == MOSES:
        try:
            language_code(language)
        except ValueError as error:
            raise ValueError(
                f"--tokeniser must be none (or characters) for {language}, for which "
                "there are no rules"
            ) from error
    return Side(
        language=language, tokeniser=rules, lowercase=args.lowercase, codes=codes
    )


def origin_of(
    checkpoint: Path, state: dict[str, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    """Return what is known of a checkpoint's origin.

    Args:
        state: its contents.
        settings: its model's.
    """
    training = state.get("cfg") or {}
    history = state.get("optimizer_history") or [{}]
    known = {
        "version": __version__,
        "commit": commit(),
        "date": f"{datetime.datetime.now():%Y-%m-%d}",
        "machine": machine(),
        "versions": versions(),
        "checkpoint": checkpoint.name,
        "checkpoint sha256": sha256_of(checkpoint),
        "architecture": architecture_of(settings),
        "seed": (training.get("common") or {}).get("seed"),
        "updates": history[-1].get("num_updates"),
    }
    return {key: value for key, value in known.items() if value is not None}


def fill(folder: Path, args: argparse.Namespace) -> None:
    """Write the files of a model folder.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: the checkpoint is another task's, does not go with the dictionaries
            or the options, or lacks a file that its family reads.
    """
    state = read_checkpoint(str(args.path), "(--path)")
    settings = settings_of(state)
    if settings.get("sb_direction") is None:
        raise ValueError(
            f"--path {args.path} must have been trained by --task sb_translation, but "
            f"was by {settings.get('task')}: train one so, which may start from it "
            "(--finetune-from-model)"
        )
    scores: dict[str, Any] = {}
    if args.scores:
        with as_written(args.scores, "give a file of JSON"):
            scores = dict(json.loads(args.scores.read_text(encoding="utf-8")))
    torch.save({**state, "last_optimizer_state": None}, folder / MODEL)
    source, target = (add_side(args, place, folder) for place in (0, 1))
    for name in caller_files():
        if path := getattr(args, name):
            shutil.copyfile(path, folder / name)
    direction = str(settings["sb_direction"])
    made = Description(
        engine="fairseq",
        source=source,
        target=target,
        directions=NAMES if direction == "both" else (direction,),
        search={**{key: getattr(args, key) for key in FLAGS}, "max_positions": 0},
        files={path.name: sha256_of(path) for path in sorted(folder.iterdir())},
        provenance=origin_of(args.path, state, settings),
        scores=scores,
    )
    try:
        engine = open_engine(folder, made, "cpu", "float32", 1)
    except ValueError as error:  # names a copy that goes
        told = str(error)
        for name in caller_files():
            told = told.replace(str(folder.absolute() / name), str(getattr(args, name)))
        raise ValueError(told) from error
    check_beam(engine, args.beam)
    made = made.with_search({"max_positions": int(engine.max_positions[0])})
    write_description(folder, made)


def main() -> None:
    register()
    args = parsed()
    refuse_existing("--output", args.output)
    with new_folder(args.output) as folder:
        fill(folder, args)
    print(f"Made {args.output}. Translate raw text with:")
    print(f"  sbnmt translate {args.output} < INPUT > OUTPUT")
