"""Inputs of a report, by its flags or from a recipe's work folder: read and checked."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sbnmt_plugin.task_options import flag_of
from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.recipes.costs import read_train_log
from sbnmt_plugin.tools.recipes.settings import raw_tokeniser
from sbnmt_plugin.tools.recipes.work_folder import decoded_rows, read_recipe
from sbnmt_plugin.tools.report.records import read_winners
from sbnmt_plugin.tools.results.sweep import Sweep
from sbnmt_plugin.tools.results.work_folder_rows import languages
from sbnmt_plugin.tools.scoring import bleu, tokeniser_for, tokeniser_of
from sbnmt_plugin.tools.text import read_lines, read_parallel

# flags whose values are NAME=FILE, NAME a system's; and those whose values are files
NAMED = ("system", "records", "train_log")
PLAIN = ("source", "reference", "beam_sweep")
NEEDED = ("source", "reference", "system")
HOW = ("tokenize", "lowercase")


@dataclass
class Inputs:
    """Contents of the files of a report.

    Attributes:
        source, references, systems: the texts.
        tokenize: sacreBLEU's tokeniser for BLEU; ``none`` where texts are tokens.
        train_logs: system -> file.
        winners: of each sentence, for systems with records of both directions.
        sweep: the runs of ``sbnmt sweep-beam``.
    """

    source: list[str]
    references: list[list[str]]
    systems: dict[str, list[str]]
    lowercase: bool = False
    tokenize: str = "13a"
    train_logs: dict[str, Path] = field(default_factory=dict)
    winners: dict[str, list[str]] = field(default_factory=dict)
    sweep: list[dict[str, Any]] = field(default_factory=list)

    def tokens(self, lines: list[str]) -> list[list[str]]:
        """Return the tokens of references or outputs: those that BLEU compares."""
        tokenise = bleu(self.tokenize).tokenizer
        lines = [line.lower() for line in lines] if self.lowercase else lines
        return [tokenise(line).split() for line in lines]

    def source_lengths(self) -> list[int]:
        """Return the number of tokens of each source, whose language is another."""
        raw = self.tokenize != "none"
        source = replace(self, tokenize=tokeniser_for([self.source]) if raw else "none")
        return list(map(len, source.tokens(self.source)))


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


def of_command(args: Namespace) -> Namespace:
    """Return the values of all flags, those of ``--work`` by its folder.

    Returns:
        Of :data:`NAMED` system -> file, of :data:`PLAIN` files, and of :data:`HOW`.

    Raises:
        ValueError, FileNotFoundError: a flag is missing, or wrong.
    """
    if args.work is not None:
        for name in (*NAMED, *PLAIN, *HOW):
            if getattr(args, name):
                raise ValueError(
                    f"{flag_of(name)} must not stand beside --work, whose folder has "
                    "all files of a recipe's run: leave one out"
                )
        return of_work(Path(args.work))
    for name in NEEDED:
        if not getattr(args, name):
            raise ValueError(f"--{name} must be given, or --work with a recipe's run")
    named = {name: named_files(flag_of(name), getattr(args, name)) for name in NAMED}
    for flag, files in named.items():
        for name in files.keys() - named["system"].keys():
            raise ValueError(
                f"{flag_of(flag)} {name}=… must name one of the systems "
                f"({', '.join(named['system'])}), but names none: give --system "
                f"{name}=FILE too"
            )
    plain = {name: [Path(path) for path in getattr(args, name)] for name in PLAIN}
    how = {"tokenize": args.tokenize or "13a", "lowercase": args.lowercase}
    for name, path in named["train_log"].items():
        if not read_train_log(read_lines(path)):
            raise ValueError(
                f"--train-log {name}={path} must be a log with fairseq's numbers "
                "(--log-format simple or json), but has none: give another"
            )
    return Namespace(**named, **plain, **how)


def there(*paths: Path) -> list[Path]:
    """Return those of the files that exist."""
    return [path for path in paths if path.is_file()]


def of_work(work: Path) -> Namespace:
    """Return what :func:`of_command` does, of the files that ``sbnmt recipe`` left.

    Texts are those that are scored: as one reads them, or tokens where that is all.

    Raises:
        FileNotFoundError: no recipe has finished there.
        ValueError: results are no row's, or there are none yet.
    """
    source, target = languages(work)
    text, results = work / "text", work / "results"
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
        "records": (results, "{}.jsonl"),
        "train_log": (work / "logs", "train-{}.log"),
    }
    names = [row.name for row in decoded_rows(work) if not row.system.back]
    named = {
        flag: {x: path for x in names for path in there(folder / form.format(x))}
        for flag, (folder, form) in places.items()
    }
    if not named["system"]:
        raise ValueError(
            f"--work {work} must have a row with results, but has none yet: wait for "
            "sbnmt recipe to evaluate the first"
        )
    return Namespace(
        **named,
        source=[text / f"test.{source}"],
        reference=references.files("test.ref" if plain else "test"),
        beam_sweep=there(work / "beam-sweep.json"),
        tokenize=raw or (tokeniser_of(target) if plain else "none"),
        lowercase=scored["lowercase"],
    )


def read(asked: Namespace) -> Inputs:
    """Read everything that a report is made from: see :func:`of_command`.

    Raises:
        ValueError, FileNotFoundError: a file is wrong.
    """
    outputs, count = asked.system, len(asked.reference)
    paths = asked.source[0], *asked.reference, *outputs.values()
    source, *texts = read_parallel(*paths)
    systems = dict(zip(outputs, texts[count:]))
    given = Inputs(source, texts[:count], systems, asked.lowercase, asked.tokenize)
    given.train_logs = asked.train_log
    for name, path in asked.records.items():
        winners = read_winners(f"--records {name}", path, source, systems[name])
        # teachers have one direction, and under --sb-answer one always wins
        if len(set(winners)) > 1:
            given.winners[name] = winners
    for path in asked.beam_sweep:
        sweep = Sweep.of_file(path)
        if sweep.of_lenpens:
            raise ValueError(
                f"--beam-sweep {path} must be a sweep over beams, but is one over "
                "length penalties: give one of sbnmt sweep-beam without --lenpens"
            )
        if sweep.subset != "test":
            raise ValueError(
                f"--beam-sweep {path} must be a sweep of the test set, but is one of "
                f"{sweep.subset}: give one of sbnmt sweep-beam without --gen-subset"
            )
        if sweep.missing:
            raise ValueError(
                f"--beam-sweep {path} must be a whole sweep, but lacks "
                f"{sweep.missing} of its runs: repeat that sweep"
            )
        given.sweep = sweep.all
    return given
