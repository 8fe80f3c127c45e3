"""Files that a report is made from, by its flags and in a recipe's work folder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.recipes.row_names import is_rescored, split_name, trained_as
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.work_folder import read_recipe
from sbnmt_plugin.tools.results.work_folder_rows import languages

# flags whose values are NAME=FILE, NAME a system's
NAMED = (
    *("system", "tokenised_system", "records", "train_log", "generate_log"),
    *("checkpoint", "aer"),
)


def flag_of(name: str) -> str:
    """Spell a flag as the user does."""
    return "--" + name.replace("_", "-")


@dataclass(frozen=True)
class Files:
    """Files of a report.

    Attributes:
        named: flag, of :data:`NAMED` -> system -> file.
        source, references: texts of the test set.
        tokenised_references: the references as tokens, which go with the files of
            ``tokenised_system``.
        tokenised: whether all texts are tokenised.
        source_tokenised: whether the source is, in any case.
        lowercase: whether case is ignored.
        sweep, trace: files of ``sbnmt sweep-beam`` and of ``--sb-trace``.
        bitext: source and target of a training text, for the aligner.
    """

    named: dict[str, dict[str, Path]]
    source: Path | None = None
    references: Sequence[Path] = ()
    tokenised_references: Sequence[Path] = ()
    tokenised: bool = False
    source_tokenised: bool = False
    lowercase: bool = False
    sweep: Path | None = None
    trace: Path | None = None
    bitext: Sequence[Path] = ()

    @property
    def systems(self) -> dict[str, Path]:
        return self.named["system"]

    def read(self) -> list[Path]:
        """Return all of them but the training text."""
        alone = self.source, self.sweep, self.trace
        found = [*alone, *self.references, *self.tokenised_references]
        for files in self.named.values():
            found += files.values()
        return [path for path in found if path is not None]


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


def refuse_strangers(flag: str, names: Sequence[str], systems: Sequence[str]) -> None:
    """Refuse files of a system that was not given.

    Raises:
        ValueError: with the name.
    """
    for name in names:
        if name not in systems:
            raise ValueError(
                f"{flag} {name}=… must name one of the systems "
                f"({', '.join(systems)}), but names none: give --system {name}=FILE too"
            )


def of_command(args: argparse.Namespace) -> Files:
    """Return the files of a report's command, with those of ``--work``.

    Raises:
        ValueError, FileNotFoundError: a flag is missing, or wrong.
    """
    given = Files(
        {flag: named_files(flag_of(flag), getattr(args, flag)) for flag in NAMED},
        Path(args.source) if args.source else None,
        [Path(path) for path in args.reference],
        [Path(path) for path in args.tokenised_reference],
        args.tokenised,
        False,
        args.lowercase,
        Path(args.beam_sweep) if args.beam_sweep else None,
        Path(args.trace) if args.trace else None,
    )
    if args.work is not None:
        given = completed(given, of_work(Path(args.work)))
    needed = {"source": given.source, "reference": given.references}
    for flag, value in {**needed, "system": given.systems}.items():
        if not value:
            raise ValueError(f"--{flag} must be given, or --work with a recipe's run")
    named = {**given.named, "baseline": [args.baseline] if args.baseline else []}
    for flag, names in named.items():
        refuse_strangers(flag_of(flag), [*names], [*given.systems])
    return given


def completed(given: Files, work: Files) -> Files:
    """Add to given files those of a work folder that belong to the same systems."""
    systems = given.systems or work.systems
    own = [name for name in systems if systems[name] == work.systems.get(name)]
    named = {"system": systems}
    for flag in NAMED[1:]:
        more = {name: path for name, path in work.named[flag].items() if name in own}
        named[flag] = given.named[flag] | more | given.named[flag]
    tokens = given.tokenised_references
    if tokens or given.named["tokenised_system"] or len(own) < len(systems):
        named["tokenised_system"] = given.named["tokenised_system"]
    else:
        tokens = work.tokenised_references
    return replace(
        work,
        named=named,
        source=given.source or work.source,
        references=given.references or work.references,
        tokenised_references=tokens,
        tokenised=given.tokenised or work.tokenised,
        lowercase=given.lowercase or work.lowercase,
        sweep=given.sweep or work.sweep,
        trace=given.trace or work.trace,
    )


def scored_rows(results: Path) -> list[str]:
    """Return the rows that have a text and scores, in the order of the table.

    Rows of the source language, and files that are no row's, are left out.
    """
    found = []
    for path in results.glob("*.txt"):
        system = SYSTEMS.get(trained_as(path.stem).partition("@")[0])
        if system and not system.back and path.with_suffix(".json").is_file():
            base, seed = split_name(path.stem)
            place = list(SYSTEMS).index(base), is_rescored(path.stem), seed
            found.append((place, path.stem))
    return [name for _, name in sorted(found)]


def of_work(work: Path) -> Files:
    """Return the files that ``sbnmt recipe`` left.

    Raises:
        FileNotFoundError: no recipe has finished there.
    """
    source, target = languages(work)
    text, results, log = work / "text", work / "results", work / "logs"
    scored: dict[str, Any] = {"references": 1, "lowercase": False}
    if (work / "recipe.json").is_file():
        remedy = "give a folder that the step recipe has filled"
        scored = read_recipe(work / "recipe.json", remedy)["score"]
    references = References(text, target, scored["references"])
    plain = (text / f"test.ref.{target}").is_file()
    names = scored_rows(results)
    places = {
        "system": (results, "{}.txt"),
        "tokenised_system": (results, "{}.tok"),
        "records": (results, "{}.jsonl"),
        "train_log": (log, "train-{}.log"),
        "generate_log": (log, "generate-{}.log"),
        "checkpoint": (work, "{}/model.pt"),
        "aer": (results / "aer", "{}.json"),
    }

    def there(*paths: Path) -> list[Path]:
        return [path for path in paths if path.is_file()]

    named = {
        flag: {x: path for x in names for path in there(folder / form.format(x))}
        for flag, (folder, form) in places.items()
    }
    bitext = there(text / f"train.{source}", text / f"train.{target}")
    return Files(
        named if plain else {**named, "tokenised_system": {}},
        text / f"test.{source}",
        references.files("test.ref" if plain else "test"),
        references.files() if plain else (),
        tokenised=not plain,
        source_tokenised=True,
        lowercase=scored["lowercase"],
        sweep=next(iter(there(work / "beam-sweep.json")), None),
        trace=next(iter(there(results / "trace.jsonl")), None),
        bitext=bitext if len(bitext) == 2 else (),
    )
