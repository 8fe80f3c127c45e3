"""Settings of a recipe for anybody's bitext: from arguments and the number of lines."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sbnmt_plugin.tools.command import AtLeastOne
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe, sizes_of
from sbnmt_plugin.tools.recipes.rows import Row, asked_rows, can_be_model

BPE, SENTENCEPIECE = "bpe", "sentencepiece"
MODEL = "sb-lambda0+rescored"  # unless another row is significantly better
FEWEST, POOR = 50, 10_000  # lines: of which something can be made; something good
# bounds of a small corpus: a merge for two lines, a batch of a tenth of an epoch
LINES_A_MERGE, LEAST_MERGES = 2, 200
TOKENS_A_LINE, BATCHES, LEAST_TOKENS = 15, 10, 2000
# what a recipe's sizes bound, report or sweep
COUNTED = [("train", "--max-tokens"), ("train", "--max-update")]
COUNTED += [("bpe", "merges"), ("decode", "--beam")]
VALIDATIONS = 10  # of a training whose number of updates is the user's
# of languages whose text has no blanks between words, Moses's rules separate none
UNSEGMENTED = ("ja",)
LANGUAGE = re.compile("[A-Za-z0-9][A-Za-z0-9_]*")
WIDER = ("--cpu", "--bf16", "--amp")  # of which none goes with --fp16
# options of fairseq-train that tie a run's steps together
OWN = "--save-dir --no-save --restore-file --finetune-from-model --continue-once "
OWN += "--user-dir --task --criterion --arch -a --sb-direction --seed --log-format"
SPELT_HERE = {"-s": "--source", "-t": "--target"}
SPELT_HERE |= {f"{flag}-lang": flag for flag in SPELT_HERE.values()}


class Size(NamedTuple):
    """A size of models: the lines from which on it is taken, and its origin."""

    lines: int
    origin: str


SIZES = {
    "small": Size(0, "options measured on Multi30k, 29,000 lines"),
    "base": Size(100_000, "options for techdocs_zh_en, 173,000 lines; not measured"),
    "big": Size(1_000_000, "options of the paper; not measured here"),
}


def options() -> argparse.ArgumentParser:
    """Return the parser of the options that only a recipe for any bitext has."""
    parser = argparse.ArgumentParser(add_help=False)
    group = parser.add_argument_group(
        "recipe bitext, beside single options of fairseq-train, which win"
    )
    add = group.add_argument
    add("--source", metavar="LANGUAGE", help="language, and ending of its files")
    add("--target", metavar="LANGUAGE", help="language, and ending of its files")
    add("--size", choices=list(SIZES), help="default: by the number of lines")
    add("--updates", action=AtLeastOne, help="of each training")
    add("--lowercase", action="store_true", help="make models of lower-cased text")
    add("--no-tokenise", action="store_true", help="tokens stand between blanks")
    characters = "languages of which every ideograph is a token, such as zh and ja"
    add("--characters", nargs="+", default=[], metavar="LANGUAGE", help=characters)
    rule = "default: bpe, if there are rules to tokenise both languages"
    add("--subwords", choices=[BPE, SENTENCEPIECE], help=rule)
    add("--model", metavar="ROW", help="row that becomes WORK/model (default: chosen)")
    return parser


def take(args: argparse.Namespace, others: Sequence[str]) -> None:
    """Take words that are no options of ours as ``args.options`` of fairseq-train.

    Raises:
        ValueError: a word that belongs to no flag, a flag that is the recipe's, or two
            numbers of updates.
    """
    flag, args.options = "", {}
    for word in others:
        name, equals, value = word.partition("=")
        if name in SPELT_HERE:
            raise ValueError(f"{name} must be {SPELT_HERE[name]} for a recipe")
        if name in OWN.split():
            raise ValueError(f"{name} is chosen by the recipe: leave it out")
        if word.startswith("--"):
            flag, args.options[name] = name, value if equals else None
        elif flag and args.options[flag] is None:
            args.options[flag] = word
        else:
            raise ValueError(f"{word} must follow an option of one value: leave it out")
    if args.updates and "--max-update" in args.options:
        raise ValueError("--updates sets --max-update: give one of both")


def given(args: argparse.Namespace) -> list[str]:
    """Return the options for such a recipe as words of a command line."""
    names = vars(options().parse_args([]))
    own = {f"--{name.replace('_', '-')}": getattr(args, name) for name in names}
    found = []
    for flag, value in ({k: v for k, v in own.items() if v} | args.options).items():
        values = value if isinstance(value, list) else [value]
        found += [flag, *(str(x) for x in values if x is not None and x is not True)]
    return found


def is_for_any(folder: Path, args: argparse.Namespace) -> bool:
    """Check whether a recipe is for anybody's text: it has sizes.

    Raises:
        ValueError: it is not, but an option for such recipes is given.
    """
    any_text, words = bool(sizes_of(folder)), given(args)
    if any_text and args.small:
        raise ValueError(f"--small is not for {folder.name}: give --size small")
    if words and not any_text:
        raise ValueError(
            f"{words[0]} is for a recipe of any text, such as bitext, but "
            f"{folder.name} has a text of its own: leave it out"
        )
    return any_text


def languages(args: argparse.Namespace) -> tuple[str, str]:
    """Return source and target.

    Raises:
        ValueError: one is not given, or they are the same.
    """
    if not (args.source and args.target) or args.source == args.target:
        raise ValueError(
            "--source and --target must name two languages, but are "
            f"{args.source} and {args.target}: give the endings of the files"
        )
    for flag, name in ("--source", args.source), ("--target", args.target):
        if not LANGUAGE.fullmatch(name):  # fairseq has files such as train.en-de.en
            raise ValueError(
                f"{flag} must be of letters, digits and _, but is {name}: call it, and "
                "the ending of its files, otherwise"
            )
    return args.source, args.target


def model_row(name: str) -> Row:
    """Return the row of ``--model``.

    Raises:
        ValueError: there is none of that name, or it cannot be a model folder.
    """
    row, *others = asked_rows([name], where="--model")
    if others or not can_be_model(row):
        raise ValueError(
            f"--model {name} must be a row with a model of its own, of one language "
            "into the other, that is searched in the usual way: choose another"
        )
    return row


def subwords_of(args: argparse.Namespace) -> tuple[str, str]:
    """Return the kind of subwords, and the reason why it was chosen.

    Raises:
        ValueError: one is asked for that a language does not allow.
    """
    from sbnmt_plugin.tools.tokens import LANGUAGES  # which takes a moment

    if args.subwords == SENTENCEPIECE:
        return SENTENCEPIECE, "as asked for"
    for language in languages(args):
        code = language.partition("_")[0].lower()
        if args.no_tokenise or language in args.characters:
            continue
        if args.subwords and code not in LANGUAGES:
            raise ValueError(
                f"--subwords bpe is of tokens, but there are no rules that tokenise "
                f"{language}: give --subwords sentencepiece, or --no-tokenise"
            )
        if not args.subwords and (code not in LANGUAGES or code in UNSEGMENTED):
            return SENTENCEPIECE, f"there are no rules that tokenise {language}"
    return BPE, "as asked for" if args.subwords else "of tokens"


def size_of(args: argparse.Namespace, lines: int) -> str:
    """Return the size that is asked for, or the largest that so many lines suffice."""
    enough = [name for name, size in SIZES.items() if lines >= size.lines]
    return args.size or enough[-1]


def settings(
    folder: Path,
    args: argparse.Namespace,
    lines: int | None = None,
    on_cpu: bool | None = None,
) -> dict[str, Any]:
    """Return the settings of a run.

    Args:
        folder: of the recipe.
        lines: of the training text; None: unknown, so nothing is bounded by it.
        on_cpu: whether there is no GPU; None: the trainings find out.

    Raises:
        ValueError: a language is missing or has no rules, the text is too small, or an
            option has a wrong value; the recipe lacks one of :data:`COUNTED`.
    """
    if lines is not None and lines < FEWEST:
        raise ValueError(f"--data must have {FEWEST} lines or more, but has {lines}")
    recipe = load_recipe(folder, False, size_of(args, lines or 0), texts(args))
    for section, key in COUNTED:
        if key not in recipe[section]:
            raise ValueError(
                f"{folder / 'recipe.yaml'}: {section} must have {key}, which a recipe "
                "with sizes computes with, but has not: add it"
            )
    train = recipe["train"]
    if lines is not None:
        if recipe["bpe"]["kind"] != SENTENCEPIECE:  # which bounds itself
            merges = max(LEAST_MERGES, lines // LINES_A_MERGE)
            recipe["bpe"]["merges"] = min(recipe["bpe"]["merges"], merges)
        batch = max(LEAST_TOKENS, lines * TOKENS_A_LINE // BATCHES)
        train["--max-tokens"] = min(train["--max-tokens"], batch)
    if on_cpu is not None:
        train["--cpu" if on_cpu else "--fp16"] = None
        if on_cpu:  # a loader's process would take as much memory as the training
            train["--num-workers"] = 0
    asked = str(args.options.get("--max-update", ""))
    if updates := args.updates or (asked.isdecimal() and int(asked)):
        changes = {"--max-update": updates, "--total-num-update": updates}
        bounds = {"--warmup-updates": updates // 5}
        for kind in "validate", "save":
            bounds[f"--{kind}-interval-updates"] = updates // VALIDATIONS
        changes |= {k: min(train.get(k, n), max(1, n)) for k, n in bounds.items()}
        train |= {flag: n for flag, n in changes.items() if train.get(flag)}
    if not args.options.keys().isdisjoint(WIDER):
        train.pop("--fp16", None)
    for flag, value in args.options.items():
        for key in ("train", "model"):
            if key == "train" or flag in recipe[key]:
                recipe[key][flag] = value
    for flag in ("--max-tokens", "--max-update"):
        if not re.fullmatch("[1-9][0-9]*", str(train[flag])):
            raise ValueError(f"{flag} must be a whole number ≥ 1, but is {train[flag]}")
    two_streams = {"--max-tokens": 2 * int(train["--max-tokens"])}
    return {**recipe, "sb_train": recipe["sb_train"] | two_streams}


def texts(args: argparse.Namespace) -> dict[str, Any]:
    """Return the keys of recipe.yaml that say what the text is."""
    source, target = languages(args)
    if others := [x for x in args.characters if x not in (source, target)]:
        raise ValueError(
            f"--characters must name {source} or {target}, but has {others[0]}"
        )
    pieces = subwords_of(args)[0] == SENTENCEPIECE
    plain = args.no_tokenise or pieces
    words = ["--source", source, "--target", target]
    words += ["--lowercase"] * args.lowercase + ["--no-tokenise"] * args.no_tokenise
    words += ["--raw"] * pieces
    words += ["--characters", *args.characters] if args.characters else []
    if pieces and (args.characters or args.no_tokenise):
        flag = "--characters" if args.characters else "--no-tokenise"
        raise ValueError(f"{flag} is for --subwords bpe: give one of both")
    by_characters = target in args.characters
    rules = "characters" if by_characters else "none" if plain else target
    rules *= not pieces  # which give text without detokenising
    return {
        **{"source": source, "target": target, "detokenise": rules, "prepare": words},
        "score": {"lowercase": args.lowercase},
        **({"bpe": {"kind": SENTENCEPIECE}} if pieces else {}),
    }


def explanation(
    args: argparse.Namespace, recipe: dict[str, Any], lines: int
) -> list[str]:
    """Say which settings were chosen, and why, a line each."""
    size, train, (kind, why) = size_of(args, lines), recipe["train"], subwords_of(args)
    by = "as asked for" if args.size else "by the number of lines"
    updates, tokens = int(train["--max-update"]), int(train["--max-tokens"])
    poor = (
        f"Nothing good can come of fewer than {POOR:,} lines: this run tries the "
        "commands, its translations will be bad."
    )
    return [
        f"{lines:,} lines of training text, of which some may be held out.",
        f"Size: {size}, {by} ({SIZES[size].origin}).",
        f"Each training: {updates:,} updates of up to {tokens:,} tokens.",
        f"Subwords: {kind}, {why}; at most {recipe['bpe']['merges']:,}.",
        *[poor] * (lines < POOR),
    ]
