"""The file model.yaml of a model folder, which says how the model is used.

It is read by ``yaml.safe_load``, and every key is checked.  All files that it names lie
in the folder itself, and are those of which it has the checksums.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from sbnmt_plugin.search.lengths import FORMULAS, LARGEST_ALPHA, LARGEST_WEIGHT
from sbnmt_plugin.symbols import NAMES as DIRECTIONS
from sbnmt_plugin.tools import tokens
from sbnmt_plugin.tools.command_names import ENGINES
from sbnmt_plugin.tools.subwords import KINDS, subwords
from sbnmt_plugin.tools.unfinished import new_file
from sbnmt_plugin.training.checksums import sha256_of

NAME, MODEL = "model.yaml", "model.pt"
LARGEST, DEEPEST = 2**20, 20  # bytes and levels of a model.yaml that is read
SENTENCEPIECE = "sentencepiece"  # of :data:`subwords.KINDS`
MOSES, CHARACTERS = "moses", tokens.CHARACTERS
TOKENISERS = MOSES, tokens.NONE, CHARACTERS
REMEDY = "restore the folder, or make it anew by sbnmt bundle or sbnmt export"
# numbers of the search -> their types, the least and the largest
NUMBERS: dict[str, tuple[Any, int, int]] = {
    "beam": (int, 1, 1000),
    "lenpen": (float | int, -LARGEST_ALPHA, LARGEST_ALPHA),
    "rescore": (float | int, 0, LARGEST_WEIGHT),  # 0: the search's score alone
    "max_len_a": (float | int, 0, LARGEST),
    "max_len_b": (int, 0, LARGEST),
    "max_positions": (int, 1, LARGEST),  # tokens of a source, </s> included
}
SEARCH = *NUMBERS, "length_penalty"  # options of the search


@dataclass(frozen=True)
class Side:
    """Source or target text of a model.

    Attributes:
        language: its code.
        tokeniser: ``moses`` for the rules of the language (jieba's for Chinese),
            ``none`` for tokens between blanks or, with sentencepiece, raw text,
            ``characters`` for tokens of one ideograph.
        lowercase: whether the model knows lower case alone.
        subwords: one of :data:`subwords.KINDS`.
        codes: file of the subwords' codes, a name in the folder; empty for none.
        dictionary: file of the dictionary, a name in the folder.
    """

    language: str
    tokeniser: str
    lowercase: bool
    subwords: str
    codes: str
    dictionary: str

    def encoder(self, folder: Path) -> Callable[[str], str]:
        """Return a function that makes subwords, joined by blanks, of a raw line."""
        cut = subwords(self.subwords, self._codes(folder)).apply
        if self._raw:
            return lambda line: cut(line.lower() if self.lowercase else line)
        split = tokens.tokeniser(self._rules, self.lowercase)
        return lambda line: cut(split(line))

    def decoder(self, folder: Path) -> Callable[[str], str]:
        """Return a function that makes a raw line of subwords joined by blanks."""
        join = subwords(self.subwords, self._codes(folder)).undo
        if self._raw:
            return join
        rules = self._rules
        return lambda line: tokens.detokenise([join(line)], rules)[0]

    @property
    def _raw(self) -> bool:
        """True where the subwords are made of raw text."""
        return self.subwords == SENTENCEPIECE and self.tokeniser == tokens.NONE

    @property
    def _rules(self) -> str:
        """Name by which :mod:`tokens` knows the tokeniser."""
        return self.language if self.tokeniser == MOSES else self.tokeniser

    def _codes(self, folder: Path) -> Path | None:
        return folder / self.codes if self.codes else None


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
        """Return it with other options of the search; None leaves one as it is."""
        chosen = {name: value for name, value in given.items() if value is not None}
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
        raise FileNotFoundError(
            f"{folder} must be a model folder, but has no {NAME}: give one that sbnmt "
            "bundle, sbnmt export or a recipe has made"
        )
    try:
        found = parsed(path)
        made = from_values(Description, found, "")
        check_values(made)
        check_files(folder, made)
    except ValueError as error:
        raise ValueError(f"{path}: {error}; {REMEDY}") from error
    return made


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
    except (yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"must be YAML of plain values ({reason})") from error


def from_values(kind: Any, values: Any, key: str) -> Any:
    """Build a dataclass, or a value of its fields, of what YAML has given.

    Args:
        kind: the type that is wanted.
        key: where it stands, for messages.

    Raises:
        ValueError: another type, a missing key, or one that nobody knows.
    """
    if dataclasses.is_dataclass(kind):
        types = typing.get_type_hints(kind)
        given = from_values(dict[str, Any], values, key)
        wrong = sorted(types.keys() ^ given.keys(), key=str)
        if wrong:
            problem = "is missing" if wrong[0] in types else "is unknown"
            raise ValueError(f"the key {f'{key}.{wrong[0]}'.lstrip('.')} {problem}")
        parts = {n: from_values(t, given[n], f"{key}.{n}") for n, t in types.items()}
        made: Any = kind
        return made(**parts)
    plain = {tuple: list}.get(typing.get_origin(kind), typing.get_origin(kind) or kind)
    fine = isinstance(values, plain)
    if fine and plain in (list, dict):
        fine = all(isinstance(name, str) for name in values)
        if kind == dict[str, str]:
            fine = fine and all(isinstance(x, str) for x in values.values())
    if not fine:
        raise ValueError(
            f"{key.lstrip('.') or 'the whole'} must be of type {kind}, but is "
            f"{values!r:.80}"
        )
    return tuple(values) if plain is list else values


def check_values(made: Description) -> None:
    """Check values that must be one of several, and the options of the search.

    Raises:
        ValueError: with the key.
    """
    for name, side in ("source", made.source), ("target", made.target):
        one_of(f"{name}.tokeniser", side.tokeniser, TOKENISERS)
        one_of(f"{name}.subwords", side.subwords, KINDS)
        for key, file in ("codes", side.codes), ("dictionary", side.dictionary):
            if (file or key == "dictionary") and file not in made.files:
                raise ValueError(f"{name}.{key} must be one of files, but is {file!r}")
    one_of("engine", made.engine, ENGINES)
    if made.engine == "fairseq":
        one_of("the checkpoint", MODEL, list(made.files))
    known = [(each,) for each in DIRECTIONS] + [DIRECTIONS]
    one_of("directions", made.directions, known)
    if wrong := sorted(set(SEARCH) ^ made.search.keys()):
        raise ValueError(f"search must have the keys {', '.join(SEARCH)}: see {wrong}")
    one_of("search.length_penalty", made.search["length_penalty"], list(FORMULAS))
    for key, (types, least, most) in NUMBERS.items():
        value = made.search[key]
        fine = isinstance(value, types) and not isinstance(value, bool)
        if not fine or not least <= value <= most:
            kind = "a whole number" if types is int else "a number"
            raise ValueError(
                f"search.{key} must be {kind} in {least} … {most}, but is {value!r:.80}"
            )


def one_of(key: str, value: Any, values: typing.Sequence[Any]) -> None:
    """Raise ValueError, with the key, unless a value is among others."""
    if value not in values:
        listed = ", ".join(map(str, values))
        raise ValueError(f"{key} must be one of {listed}, but is {value!r:.80}")


def check_files(folder: Path, made: Description) -> None:
    """Check that the files of a model are in its folder, and as they were.

    Raises:
        FileNotFoundError, ValueError: with the file.
    """
    for name, checksum in made.files.items():
        path = folder / name
        if Path(name).name != name or path.is_symlink():
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
        ValueError: a value is wrong: see :func:`check_values`.
    """
    check_values(made)
    values = json.loads(json.dumps(dataclasses.asdict(made)))  # lists, without aliases
    with new_file(folder / NAME) as file:
        yaml.safe_dump(values, file, sort_keys=False, allow_unicode=True)
