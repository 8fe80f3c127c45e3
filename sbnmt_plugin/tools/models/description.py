"""The file model.yaml of a model folder, which says how the model is used.

It is read by ``yaml.safe_load``, and every key is checked.  All files that it names lie
in the folder itself, and are those of which it has the checksums.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from sbnmt_plugin.search.lengths import FORMULAS, LARGEST_ALPHA, LARGEST_WEIGHT
from sbnmt_plugin.symbols import NAMES as DIRECTIONS
from sbnmt_plugin.tools import tokens
from sbnmt_plugin.tools.command_names import ENGINES
from sbnmt_plugin.tools.subwords import subwords
from sbnmt_plugin.tools.text import DAMAGE
from sbnmt_plugin.tools.unfinished import new_file
from sbnmt_plugin.training.checksums import sha256_of

NAME, MODEL = "model.yaml", "model.pt"
LARGEST, DEEPEST = 2**20, 20  # bytes and levels of a model.yaml that is read
MOSES, CHARACTERS = "moses", tokens.CHARACTERS
TOKENISERS = MOSES, tokens.NONE, CHARACTERS
Coder = Callable[[str], str]  # of a line; subwords are joined by blanks
# of a file name, and a word of a command line that is no flag, path or interpolation
LANGUAGE = re.compile(r"\w[\w.-]*")
REMEDY = "restore the folder, or make it anew by sbnmt bundle or sbnmt export"


class Range(NamedTuple):
    """Rule of a number: its type, the least and the largest."""

    kind: type
    least: int
    most: int


NEEDED = {"fairseq": (MODEL,), "ctranslate2": ("model.bin", "config.json")}
SIDE = {
    **{"language": LANGUAGE, "codes": str},
    **{"tokeniser": TOKENISERS, "lowercase": bool},
}
SEARCH = {
    "beam": Range(int, 1, 1000),
    "lenpen": Range(float, -LARGEST_ALPHA, LARGEST_ALPHA),
    "length_penalty": tuple(FORMULAS),
    "rescore": Range(float, 0, LARGEST_WEIGHT),  # 0: the search's score alone
    "max_len_a": Range(float, 0, LARGEST),
    "max_len_b": Range(int, 0, LARGEST),
    "max_positions": Range(int, 1, LARGEST),  # tokens of a source, </s> included
}
RULES = {  # of every key: see :func:`check`
    **{"engine": ENGINES, "source": SIDE, "target": SIDE, "search": SEARCH},
    "directions": (*([each] for each in DIRECTIONS), [*DIRECTIONS]),
    **dict.fromkeys(("files", "provenance", "scores"), dict),
}


def dictionary_of(language: str) -> str:
    """Return the name of a dictionary, which is fairseq's."""
    return f"dict.{language}.txt"


@dataclass(frozen=True)
class Side:
    """Source or target text of a model.

    Attributes:
        language: its code.
        tokeniser: ``moses`` for the rules of the language (jieba's for Chinese),
            ``none`` for tokens between blanks or, with sentencepiece, raw text,
            ``characters`` for tokens of one ideograph.
        lowercase: whether the model knows lower case alone.
        codes: file of the subwords' codes, a name in the folder; empty where tokens
            are left whole.
    """

    language: str
    tokeniser: str
    lowercase: bool
    codes: str

    @property
    def files(self) -> list[str]:
        """Names of the dictionary and, where there are any, of the codes."""
        return [dictionary_of(self.language), *filter(None, [self.codes])]

    def coders(self, folder: Path) -> tuple[Coder, Coder]:
        """Return functions that make subwords of a raw line, and a raw line of them.

        Args:
            folder: that holds the codes.
        """
        made = subwords(folder / self.codes if self.codes else None)
        rules = self.language if self.tokeniser == MOSES else self.tokeniser
        split = tokens.tokeniser(rules, self.lowercase)
        return (
            lambda line: made.apply(split(line)),
            lambda line: tokens.detokenise([made.undo(line)], rules)[0],
        )


@dataclass(frozen=True)
class Description:
    """Contents of a model.yaml.

    Attributes:
        engine: one of :data:`ENGINES`.
        directions: that the model writes: ``l2r`` and ``r2l``, or a teacher's only one.
        search: options of the search, by the keys of :data:`SEARCH`.
        files: name -> SHA-256 of every other file of the folder.
        provenance: origin of the model: version, commit, seed, date, machine.
        scores: name of a set -> its scores, with their signatures; empty if unknown.
    """

    engine: str
    source: Side
    target: Side
    directions: tuple[str, ...]
    search: dict[str, Any]
    files: dict[str, str]
    provenance: dict[str, Any]
    scores: dict[str, Any]

    def with_search(self, given: Mapping[str, Any]) -> Description:
        """Return it with other options of the search; None leaves one as it is.

        Raises:
            ValueError: one has a wrong value.
        """
        chosen = {name: value for name, value in given.items() if value is not None}
        for name, value in chosen.items():
            check(value, SEARCH[name], f"--{name}")
        return replace(self, search={**self.search, **chosen})


def read_description(folder: Path) -> Description:
    """Read and check the model.yaml of a folder, and the checksums of its files.

    Raises:
        FileNotFoundError: the folder or a file is missing.
        ValueError: a key or value is wrong, a file lies outside of the folder or has
            another checksum; with the file and the key.
    """
    path = folder / NAME
    if not path.is_file():
        own = folder / "model"  # of the work folder of a recipe
        made = "one that sbnmt bundle, sbnmt export or a recipe has made"
        raise FileNotFoundError(
            f"{folder} must be a model folder, but has no {NAME}: give "
            f"{own if (own / NAME).is_file() else made}"
        )
    try:
        found = checked(parsed(path))
        found |= {name: Side(**found[name]) for name in ("source", "target")}
        found["directions"] = tuple(found["directions"])
        description = Description(**found)
        check_files(folder, description)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; {REMEDY}") from error
    return description


def parsed(path: Path) -> Any:
    """Return the value of a YAML file of plain values.

    Raises:
        ValueError: it is too large, no YAML, has levels that take hours to read, or
            aliases, by which a small file could stand for more than fits into memory.
    """
    if path.is_symlink() or path.stat().st_size > LARGEST:
        raise ValueError(f"must be a file of its own of at most {LARGEST} bytes")
    text = path.read_text(encoding="utf-8")
    try:
        level = 0
        for event in yaml.parse(text):
            level += isinstance(event, yaml.CollectionStartEvent)
            level -= isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or level > DEEPEST:
                raise ValueError(
                    f"must have no aliases (*name), and at most {DEEPEST} levels"
                )
        return yaml.safe_load(text)
    except (*DAMAGE, yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"must be YAML of plain values ({reason})") from error


def checked(values: Any) -> dict[str, Any]:
    """Return the values of a model.yaml that keep all rules.

    Raises:
        ValueError: with the key.
    """
    check(values, RULES, "")
    needed = [*NEEDED[values["engine"]]]
    for side in values["source"], values["target"]:
        needed += Side(**side).files
    for name in needed:
        if name not in values["files"]:
            raise ValueError(f"files must have {name}, which the model needs")
    return dict(values)


def check(value: Any, rule: Any, key: str) -> None:
    """Check a value of a model.yaml, or of an option.

    Args:
        rule: a type; or a range; or the form of a text; or the values that may be, in a
            tuple; or a rule for each key.
        key: where it stands, for messages.

    Raises:
        ValueError: it breaks the rule, lacks a key, or has one that nobody knows.
    """
    if isinstance(rule, Range):
        fine = type(value) in (rule.kind, int) and rule.least <= value <= rule.most
        kind = "a whole number" if rule.kind is int else "a number"
        must = f"{kind} in {rule.least} … {rule.most}"
    elif isinstance(rule, re.Pattern):
        fine = isinstance(value, str) and rule.fullmatch(value)
        must = f"a text of the form {rule.pattern}"
    elif isinstance(rule, tuple):
        fine, must = value in rule, f"one of {', '.join(map(str, rule))}"
    else:
        kinds = dict if isinstance(rule, dict) else rule
        fine, must = type(value) is kinds, f"of type {kinds.__name__}"
    if not fine:
        raise ValueError(
            f"{key.lstrip('.') or 'the whole'} must be {must}, but is {value!r:.80}"
        )
    if isinstance(rule, dict):
        for name in sorted(rule.keys() ^ value.keys(), key=str):
            problem = "is missing" if name in rule else "is unknown"
            raise ValueError(f"the key {f'{key}.{name}'.lstrip('.')} {problem}")
        for name, each in rule.items():
            check(value[name], each, f"{key}.{name}")


def check_files(folder: Path, made: Description) -> None:
    """Check that the files of a model are in its folder, and as they were.

    Raises:
        FileNotFoundError, ValueError: with the file.
    """
    for name, checksum in made.files.items():
        path = folder / str(name)
        if path.name != name or path.is_symlink():
            raise ValueError(
                f"files must name files in the folder itself, but has {name!r}"
            )
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing: {REMEDY}")
        if sha256_of(path) != checksum:
            raise ValueError(f"the checksum of {name} is another: it was changed")


def write_description(folder: Path, made: Description) -> None:
    """Write the model.yaml of a folder.

    Raises:
        ValueError: a value is wrong: see :func:`checked`.
    """
    values = json.loads(json.dumps(dataclasses.asdict(made)))  # lists, without aliases
    with new_file(folder / NAME) as file:
        yaml.safe_dump(checked(values), file, sort_keys=False, allow_unicode=True)
