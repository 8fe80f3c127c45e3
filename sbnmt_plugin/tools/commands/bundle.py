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

import json
from pathlib import Path

from fairseq.data.data_utils import infer_language_pair

from sbnmt_plugin import quiet
from sbnmt_plugin.register import register
from sbnmt_plugin.task_options import caller_files, flag_of
from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.models.bundle import DEFAULTS, bundle
from sbnmt_plugin.tools.models.description import TOKENISERS, Side
from sbnmt_plugin.tools.models.fairseq_engine import FLAGS
from sbnmt_plugin.tools.subwords import KINDS, kind_of
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import refuse_existing


def main() -> None:
    register()
    quiet.only_warnings("fairseq", "hydra")
    parser = command.parser(__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("data", type=Path, help="folder of the binarised texts")
    add("--path", type=Path, required=True, help="checkpoint")
    add("--output", type=Path, required=True, help="folder to make")
    add("-s", "--source-lang", help="(by the files of DATA)")
    add("-t", "--target-lang", help="(by the files of DATA)")
    add("--codes", help="joint codes of the subwords")
    add("--source-codes", help="codes of the source")
    add("--target-codes", help="codes of the target")
    add("--subwords", choices=KINDS, help="(by the codes)")
    rules = "(moses) of both languages, or one of source and one of target"
    add("--tokeniser", choices=TOKENISERS, nargs="+", default=["moses"], help=rules)
    add("--lowercase", action="store_true", help="the model knows lower case alone")
    add("--scores", type=Path, help="JSON file of scores to note, by the name of a set")
    search = parser.add_argument_group("search")
    for key, flag in FLAGS.items():
        usual = DEFAULTS[key]
        add = search.add_argument
        add(flag, dest=key, type=type(usual), default=usual, help=f"({usual})")
    own = parser.add_argument_group("files of a family")
    for name in caller_files():
        own.add_argument(flag_of(name), type=Path)
    args = parser.parse_args()
    refuse_existing("--output", args.output)
    pair = infer_language_pair(str(args.data)) if args.data.is_dir() else (None, None)
    given = args.source_lang or pair[0], args.target_lang or pair[1]
    languages = [language for language in given if language]
    if len(languages) < 2:
        raise ValueError(
            f"{args.data} must be a folder that sbnmt binarise has written, but no "
            "file of it names two languages: give such a folder, or -s and -t"
        )
    codes = args.source_codes or args.codes, args.target_codes or args.codes
    kinds = [args.subwords or (kind_of(each) if each else "none") for each in codes]
    if args.subwords == "none" and any(codes):
        raise ValueError("--subwords none has no codes: leave them out, or the former")
    tokenisers = (args.tokeniser * 2)[:2]
    if len(args.tokeniser) > 2:
        raise ValueError(f"--tokeniser must be one or two, but is {args.tokeniser}")
    source, target = (
        Side(
            language=language,
            tokeniser=rules,
            lowercase=args.lowercase,
            subwords=kind,
            codes=each or "",
            dictionary=str(args.data / f"dict.{language}.txt"),
        )
        for language, kind, each, rules in zip(languages, kinds, codes, tokenisers)
    )
    scores = {}
    if args.scores:
        with as_written(args.scores, "give a file of JSON"):
            scores = dict(json.loads(args.scores.read_text(encoding="utf-8")))
    options = {key: getattr(args, key) for key in DEFAULTS}
    files = {n: x for n in caller_files() if (x := getattr(args, n)) is not None}
    bundle(args.path, args.output, source, target, options, files, scores)
    print(f"Made {args.output}. Translate raw text with:")
    print(f"  sbnmt translate {args.output} < INPUT > OUTPUT")
