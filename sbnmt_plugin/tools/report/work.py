"""Fill in the command line from the folder that ``sbnmt recipe`` left."""

from __future__ import annotations

import argparse
from pathlib import Path

from sbnmt_plugin.tools.evaluation import References
from sbnmt_plugin.tools.recipes.row_names import is_rescored, split_name, trained_as
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.work_folder import read_recipe
from sbnmt_plugin.tools.text import read_lines


def languages(work: Path) -> tuple[str, str]:
    """Source and target language, from the binarised data.

    Raises:
        FileNotFoundError: this is not the folder of a finished recipe.
    """
    found = sorted((work / "data").glob("test.*-*.*.idx"))
    if not found or not (work / "results").is_dir():
        raise FileNotFoundError(
            f"--work {work} must be a folder that sbnmt recipe has finished, "
            "but has no data/test.*.idx or no results: run the recipe first"
        )
    source, _, target = found[0].name.split(".")[1].partition("-")
    return source, target


def is_row(text: Path) -> bool:
    """Whether a text in ``results`` is a row's, scored, and of the target language."""
    system = SYSTEMS.get(trained_as(text.stem).partition("@")[0])
    scored = text.with_suffix(".json").is_file()
    return system is not None and not system.back and scored


def rank(name: str) -> tuple[int, bool, int]:
    """The order of the comparison's table."""
    base, seed = split_name(name)
    return list(SYSTEMS).index(base), is_rescored(name), seed


def from_work(args: argparse.Namespace) -> tuple[Path, ...]:
    """Set what the user did not give.

    Returns:
        Training text, source and target, for the aligner; nothing where there is none.

    Raises:
        FileNotFoundError: not a recipe's folder.
    """
    work = Path(args.work)
    source, target = languages(work)
    text, results, log = work / "text", work / "results", work / "logs"
    scored = {"references": 1, "lowercase": False}
    if (work / "recipe.json").is_file():
        remedy = "give a folder that the step recipe has filled"
        scored = read_recipe(work / "recipe.json", remedy)["score"]
    args.lowercase = args.lowercase or scored["lowercase"]
    given = References(text, target, scored["references"])
    detokenised = (text / f"test.ref.{target}").is_file()
    args.source = args.source or str(text / f"test.{source}")
    args.tokenised_source = True
    if not args.reference:
        stem = "test.ref" if detokenised else "test"
        args.reference = [str(path) for path in given.files(stem)]
    # a row is done when it has its scores; what lies beside is not ours
    done = (path.stem for path in results.glob("*.txt") if is_row(path))
    names = sorted(done, key=rank)
    if not args.system:
        args.system = [f"{name}={results / name}.txt" for name in names]
    chosen = [name for name in names if f"{name}={results / name}.txt" in args.system]
    args.tokenised = args.tokenised or not detokenised
    if detokenised and not args.tokenised_reference:
        args.tokenised_reference = [str(path) for path in given.files()]
        args.tokenised_texts = {n: read_lines(results / f"{n}.tok") for n in chosen}
    for name in chosen:
        files = {
            "records": results / f"{name}.jsonl",
            "train_log": log / f"train-{name}.log",
            "generate_log": log / f"generate-{name}.log",
            "checkpoint": work / name / "model.pt",
            "aer": results / "aer" / f"{name}.json",
        }
        for flag, path in files.items():
            values = getattr(args, flag)
            if path.is_file() and not any(v.startswith(f"{name}=") for v in values):
                setattr(args, flag, [*values, f"{name}={path}"])
    sweep = work / "beam-sweep.json"
    if args.beam_sweep is None and sweep.is_file():
        args.beam_sweep = str(sweep)
    trace = results / "trace.jsonl"
    if args.trace is None and trace.is_file():
        args.trace = str(trace)
    pair = (text / f"train.{source}", text / f"train.{target}")
    return pair if all(path.is_file() for path in pair) else ()
