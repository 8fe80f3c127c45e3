"""Files that a report is made from, by its flags and in a recipe's work folder."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.recipes.settings import raw_tokeniser
from sbnmt_plugin.tools.recipes.work_folder import decoded_rows, read_recipe
from sbnmt_plugin.tools.report.logs import read_train_log
from sbnmt_plugin.tools.results.work_folder_rows import languages
from sbnmt_plugin.tools.text import read_lines
from sbnmt_plugin.tools.translations import read_generate_log

# flags whose values are NAME=FILE, NAME a system's; and those whose values are files
NAMED = (
    *("system", "tokenised_system", "records"),
    *("train_log", "generate_log", "checkpoint"),
)
NEEDED = ("source", "reference", "system")
PLAIN = ("source", "reference", "tokenised_reference", "beam_sweep", "trace")


@dataclass(frozen=True)
class Files:
    """Files of a report.

    Attributes:
        named: flag, of :data:`NAMED` -> system -> file.
        plain: flag, of :data:`PLAIN` -> files, none where it is not given.
        tokenised: whether all texts are tokenised.
        source_tokenised: whether the source is, in any case.
        lowercase: whether case is ignored.
    """

    named: dict[str, dict[str, Path]]
    plain: dict[str, list[Path]]
    tokenised: bool
    source_tokenised: bool
    lowercase: bool

    @property
    def systems(self) -> dict[str, Path]:
        return self.named["system"]

    def read(self) -> list[Path]:
        """Return all of them."""
        named = chain(*(files.values() for files in self.named.values()))
        return [*chain(*self.plain.values()), *named]


def flag_of(name: str) -> str:
    """Spell a flag as the user does."""
    return "--" + name.replace("_", "-")


def named_files(flag: str, values: list[str]) -> dict[str, Path]:
    """Read ``NAME=FILE`` pairs.

    Raises:
        ValueError: another form, or a name twice.
        FileNotFoundError: no such file.
    """
    found: dict[str, Path] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not (name and equals and path):
            raise ValueError(f"{flag} must be NAME=FILE, but is {value!r} instead")
        if name in found:
            raise ValueError(
                f"{flag} {name} must be given once, but comes twice: rename one"
            )
        if not Path(path).is_file():
            raise FileNotFoundError(f"{flag} {value}: {path} does not exist")
        found[name] = Path(path)
    return found


def check_logs(named: dict[str, dict[str, Path]]) -> None:
    """Refuse a log, with ValueError, that has nothing of what it is given for."""
    readers: dict[str, Callable[[list[str]], Any]] = {
        "train_log": lambda lines: any(read_train_log(lines).points.values()),
        "generate_log": read_generate_log,
    }
    for flag, reader in readers.items():
        for name, path in named[flag].items():
            if not reader(read_lines(path)):
                raise ValueError(
                    f"{flag_of(flag)} {name}={path} must be a log with fairseq's "
                    "numbers (--log-format simple or json; the last lines of decoding),"
                    " but has none: give another"
                )


def of_command(args: argparse.Namespace) -> Files:
    """Return the files of a report's command, with those of ``--work``.

    Raises:
        ValueError, FileNotFoundError: a flag is missing, or wrong.
    """
    given = Files(
        {flag: named_files(flag_of(flag), getattr(args, flag)) for flag in NAMED},
        {flag: [Path(path) for path in getattr(args, flag)] for flag in PLAIN},
        tokenised=args.tokenised,
        source_tokenised=False,
        lowercase=args.lowercase,
    )
    check_logs(given.named)
    if args.work is not None:
        given = completed(given, of_work(Path(args.work)))
    for flag, files in {**given.plain, **given.named}.items():
        if flag in NEEDED and not files:
            raise ValueError(f"--{flag} must be given, or --work with a recipe's run")
    named: dict[str, Collection[str]] = {**given.named}
    named["baseline"] = [] if args.baseline is None else [args.baseline]
    for flag, names in named.items():
        for name in [name for name in names if name not in given.systems]:
            raise ValueError(
                f"{flag_of(flag)} {name}=… must name one of the systems "
                f"({', '.join(given.systems)}), but names none: give --system "
                f"{name}=FILE too"
            )
    return given


def completed(given: Files, work: Files) -> Files:
    """Add to given files those of a work folder that belong to the same systems."""
    systems = given.systems or work.systems
    own = [name for name in systems if systems[name] == work.systems.get(name)]
    named = {"system": systems}
    for flag in NAMED[1:]:
        more = {name: path for name, path in work.named[flag].items() if name in own}
        named[flag] = given.named[flag] | more | given.named[flag]
    plain = {flag: given.plain[flag] or work.plain[flag] for flag in PLAIN}
    if len(own) < len(systems):  # the folder has no tokens of the others
        named["tokenised_system"] = given.named["tokenised_system"]
        plain["tokenised_reference"] = given.plain["tokenised_reference"]
    return replace(
        work,
        named=named,
        plain=plain,
        tokenised=given.tokenised or work.tokenised,
        lowercase=given.lowercase or work.lowercase,
    )


def there(*paths: Path) -> list[Path]:
    """Return those of the files that exist."""
    return [path for path in paths if path.is_file()]


def of_work(work: Path) -> Files:
    """Return the files that ``sbnmt recipe`` left.

    Raises:
        FileNotFoundError: no recipe has finished there.
        ValueError: results are no row's.
    """
    source, target = languages(work)
    text, results, log = work / "text", work / "results", work / "logs"
    scored: dict[str, Any] = {"references": 1, "lowercase": False}
    raw = ""
    if (work / "recipe.json").is_file():
        remedy = "give a folder that the step recipe has filled"
        recipe = read_recipe(work / "recipe.json", remedy)
        scored, raw = recipe["score"], raw_tokeniser(recipe)
    references = References(text, target, scored["references"])
    plain = not raw and (text / f"test.ref.{target}").is_file()
    places = {
        "system": (results, "{}.txt"),
        "tokenised_system": (results, "{}.tok"),
        "records": (results, "{}.jsonl"),
        "train_log": (log, "train-{}.log"),
        "generate_log": (log, "generate-{}.log"),
        "checkpoint": (work, "{}/model.pt"),
    }
    names = [row.name for row in decoded_rows(work) if not row.system.back]
    named = {
        flag: {x: path for x in names for path in there(folder / form.format(x))}
        for flag, (folder, form) in places.items()
    }
    return Files(
        named if plain else {**named, "tokenised_system": {}},
        {
            "source": [text / f"test.{source}"],
            "reference": references.files("test.ref" if plain else "test"),
            "tokenised_reference": references.files() if plain else [],
            "beam_sweep": there(work / "beam-sweep.json"),
            "trace": there(results / "trace.jsonl"),
        },
        tokenised=not (plain or raw),
        source_tokenised=not raw,
        lowercase=scored["lowercase"],
    )
