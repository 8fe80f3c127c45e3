"""Settings of a recipe for anybody's bitext: from arguments and the number of lines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sbnmt_plugin.tools.command import at_least
from sbnmt_plugin.tools.command_names import PLUGIN
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe, sizes_of
from sbnmt_plugin.tools.recipes.rows import Row, asked_rows
from sbnmt_plugin.tools.recipes.systems.system import Options

SMALLEST = "transformer"  # architecture of the size small, which says its own sizes
BPE, SENTENCEPIECE = "bpe", "sentencepiece"
MODEL = "sb-lambda0+rescored"  # unless another row is significantly better
FEWEST, POOR = 50, 10_000  # lines: of which something can be made; something good
# bounds of a small corpus: a merge for two lines, a batch of a tenth of an epoch
LINES_A_MERGE, LEAST_MERGES = 2, 200
TOKENS_A_LINE, BATCHES, LEAST_TOKENS = 15, 10, 2000
VALIDATIONS = 10  # of a training whose number of updates is the user's
# of languages whose text has no blanks between words, Moses's rules separate none
UNSEGMENTED = ("ja",)


class Size(NamedTuple):
    """A size of models.

    Attributes:
        lines: least number of lines for which it is chosen.
        reason: origin of its options, in words.
    """

    lines: int
    reason: str


SIZES = {
    "small": Size(0, "its options were measured on Multi30k (29,000 lines)"),
    "base": Size(
        100_000, "its options are those of techdocs_zh_en, which was not measured whole"
    ),
    "big": Size(1_000_000, "its options are the paper's, which were not measured here"),
}


@dataclass
class Asked:
    """Options of the command line, as argparse fills them in.

    Attributes:
        options: of fairseq-train, over the recipe's.
    """

    source: str | None = None
    target: str | None = None
    size: str | None = None
    updates: int | None = None
    lowercase: bool = False
    no_tokenise: bool = False
    characters: list[str] = field(default_factory=list)
    subwords: str | None = None
    model: str | None = None
    options: Options = field(default_factory=dict)

    @property
    def words(self) -> list[str]:
        """The command line."""
        found = []
        for name, value in vars(self).items():
            if name != "options" and value:
                values = value if isinstance(value, list) else [value]
                flag = f"--{name.replace('_', '-')}"
                found += [flag, *([] if value is True else map(str, values))]
        for flag, value in self.options.items():
            found += [flag, *([] if value is None else [str(value)])]
        return found


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a recipe for anybody's bitext, which fill an Asked in."""
    group = parser.add_argument_group(
        "recipe bitext, beside single options of fairseq-train, which win"
    )
    add = group.add_argument
    add("--source", metavar="LANGUAGE", help="language, and ending of its files")
    add("--target", metavar="LANGUAGE", help="language, and ending of its files")
    add("--size", choices=list(SIZES), help="default: by the number of lines")
    add("--updates", action=at_least(1), help="of each training")
    add("--lowercase", action="store_true", help="make models of lower-cased text")
    add("--no-tokenise", action="store_true", help="tokens stand between blanks")
    add(
        "--characters",
        nargs="+",
        default=[],
        metavar="LANGUAGE",
        help="languages of which every ideograph is a token, such as zh and ja",
    )
    add(
        "--subwords",
        choices=[BPE, SENTENCEPIECE],
        help="default: bpe, if there are rules to tokenise both languages",
    )
    add("--model", metavar="ROW", help="row that becomes WORK/model (default: chosen)")


def taken(args: argparse.Namespace, others: Sequence[str]) -> Asked:
    """Return the options that were given for a recipe for anybody's bitext.

    Args:
        others: words of the command line that are no options of ours.

    Raises:
        ValueError: a word that belongs to no flag.
    """
    names = [name for name in vars(Asked()) if name != "options"]
    asked = Asked(**{name: getattr(args, name) for name in names})
    flag = ""
    for word in others:
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            asked.options[flag] = value if equals else None
        elif flag and asked.options[flag] is None:
            asked.options[flag] = word
        else:
            raise ValueError(
                f"{word} must follow an option of one value, but does not: see sbnmt "
                "recipe --help"
            )
    return asked


def refuse_others(folder: Path, asked: Asked) -> None:
    """Refuse these options for a recipe that has a corpus of its own.

    Raises:
        ValueError: with the first of them.
    """
    if asked.words:
        raise ValueError(
            f"{asked.words[0]} is for a recipe that takes any text, such as bitext, "
            f"but {folder.name} has its own: leave it out, or change a copy of the "
            "recipe"
        )


def is_for_any(folder: Path) -> bool:
    """Check whether a recipe is for anybody's text: it has sizes."""
    return bool(sizes_of(folder))


def subwords_of(asked: Asked) -> tuple[str, str]:
    """Return the kind of subwords, and the reason why it was chosen."""
    from sbnmt_plugin.tools.tokens import LANGUAGES  # which takes a moment

    if asked.subwords:
        return asked.subwords, "as asked for"
    for language in (asked.source, asked.target):
        code = str(language).replace("_", "-").partition("-")[0].lower()
        known = code in LANGUAGES and code not in UNSEGMENTED
        if not (known or asked.no_tokenise or language in asked.characters):
            return SENTENCEPIECE, f"there are no rules that tokenise {language}"
    return BPE, "the text is tokenised first"


def size_of(asked: Asked, lines: int) -> str:
    """Return the size that is asked for, or the largest that so many lines suffice."""
    fitting = [name for name, size in SIZES.items() if lines >= size.lines]
    return asked.size or fitting[-1]


def settings(
    folder: Path, asked: Asked, lines: int | None = None, on_cpu: bool | None = None
) -> dict[str, Any]:
    """Return the settings of a run.

    Args:
        folder: of the recipe.
        lines: of the training text; None: unknown, so nothing is bounded by it.
        on_cpu: whether there is no GPU; None: the trainings find out.

    Raises:
        ValueError: a language is missing or has no rules, the text is too small, or an
            option has a wrong value.
    """
    languages_of(asked)
    if lines is not None and lines < FEWEST:
        raise ValueError(f"--data must have {FEWEST} lines or more, but has {lines}")
    size = size_of(asked, POOR if lines is None else lines)
    recipe = load_recipe(folder, False, size, texts(asked))
    train = recipe["train"]
    if lines is not None:
        merges = max(LEAST_MERGES, lines // LINES_A_MERGE)
        recipe["bpe"]["merges"] = min(recipe["bpe"]["merges"], merges)
        batch = max(LEAST_TOKENS, lines * TOKENS_A_LINE // BATCHES)
        train["--max-tokens"] = min(train["--max-tokens"], batch)
    if on_cpu is not None:
        train["--cpu" if on_cpu else "--fp16"] = None
    if asked.updates:
        set_updates(train, asked.updates)
    for flag, value in asked.options.items():
        for key in ("train", "model", "teacher_train", "sb_train"):
            if key == "train" or flag in recipe[key]:
                recipe[key][flag] = value
    try:
        sentences = int(train["--max-tokens"])
    except (TypeError, ValueError) as error:
        raise ValueError("--max-tokens must be a whole number") from error
    recipe["sb_train"]["--max-tokens"] = 2 * sentences  # of two streams
    return recipe


def texts(asked: Asked) -> dict[str, Any]:
    """Return the keys of recipe.yaml that say what the text is."""
    kind, _ = subwords_of(asked)
    pieces = kind == SENTENCEPIECE
    raw = asked.no_tokenise or pieces
    detokenise = "none" if raw else asked.target
    if asked.target in asked.characters:
        detokenise = "characters"
    words = ["--source", asked.source, "--target", asked.target]
    words += ["--lowercase"] * asked.lowercase + ["--no-tokenise"] * raw
    words += ["--characters", *asked.characters] if asked.characters else []
    changes = {
        "source": asked.source,
        "target": asked.target,
        "detokenise": detokenise,
        "prepare": words,
        "score": {"lowercase": asked.lowercase},
    }
    return changes | ({"bpe": {"kind": SENTENCEPIECE}} if pieces else {})


def set_updates(train: Options, updates: int) -> None:
    """Set the number of updates, and what depends on it."""
    train["--max-update"] = updates
    if train.get("--total-num-update"):
        train["--total-num-update"] = updates
    train["--warmup-updates"] = min(train["--warmup-updates"], max(1, updates // 5))
    for flag in ("--validate-interval-updates", "--save-interval-updates"):
        train[flag] = min(train[flag], max(1, updates // VALIDATIONS))


def count_of(data: str, asked: Asked) -> int:
    """Return the number of lines of the training text.

    Raises:
        FileNotFoundError, ValueError: a language is not given, or a file is missing.
    """
    from sbnmt_plugin.tools.corpora.bitext import count_lines  # which takes a moment

    return count_lines(Path(data), languages_of(asked))


def languages_of(asked: Asked) -> tuple[str, str]:
    """Return source and target.

    Raises:
        ValueError: one is not given, or they are the same.
    """
    if not (asked.source and asked.target):
        raise ValueError("--source and --target must name the two languages")
    if asked.source == asked.target:
        raise ValueError(
            f"--target must be another language than --source, but is {asked.target}"
        )
    return asked.source, asked.target


def model_row(name: str) -> Row:
    """Return the row of ``--model``.

    Raises:
        ValueError: there is none of that name, or it cannot be a model folder.
    """
    row = asked_rows([name], where="--model")[0]
    if not can_be_model(row):
        raise ValueError(
            f"--model {name} must be a row with a model of its own that is searched in "
            "the usual way: choose another"
        )
    return row


def can_be_model(row: Row) -> bool:
    """Check whether a row's model is one that a folder can hold."""
    system = row.system
    own = system.back or system.decode or system.table
    return bool(system.data) and not own and system.user_dir == PLUGIN


def offer(recipe: dict[str, Any]) -> Callable[[str], None]:
    """Return what tells a forecast, with advice where there is a smaller size."""
    smaller = recipe["teacher_arch"] != SMALLEST

    def tell(line: str) -> None:
        advice = " With --size small, in a new --work, it is much less." * smaller
        sys.stderr.write(f"\n{line}{advice}\n\n")

    return tell


def explanation(asked: Asked, recipe: dict[str, Any], lines: int) -> list[str]:
    """Say which settings were chosen, and why, a line each."""
    size, train = size_of(asked, lines), recipe["train"]
    by = "as asked for" if asked.size else f"as {lines:,} lines are"
    kind, reason = subwords_of(asked)
    found = [
        f"{lines:,} lines of training text.",
        f"Size: {size}, {by} {'' if asked.size else size_range(size)}; "
        f"{SIZES[size].reason}.",
        f"Each training: {int(train['--max-update']):,} updates of up to "
        f"{int(train['--max-tokens']):,} tokens.",
        f"Subwords: {kind} ({reason}), at most {recipe['bpe']['merges']:,}.",
    ]
    if lines < POOR:
        found.append(
            f"Nothing good can come of fewer than {POOR:,} lines: this run tries the "
            "commands, its translations will be bad."
        )
    return found


def size_range(size: str) -> str:
    """Say for which numbers of lines a size is chosen."""
    names = list(SIZES)
    place = names.index(size)
    least = SIZES[size].lines
    if place + 1 == len(names):
        return f"{least:,} or more"
    most = SIZES[names[place + 1]].lines
    return f"{least:,} to {most:,}" if least else f"fewer than {most:,}"
