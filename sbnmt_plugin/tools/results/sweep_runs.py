"""Runs of a sweep: rows of a recipe's run decoded, scored and kept, each once."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from itertools import starmap
from pathlib import Path
from typing import Any

from sbnmt_plugin.in_use import hold
from sbnmt_plugin.tools import origin
from sbnmt_plugin.tools.command import step_command
from sbnmt_plugin.tools.evaluation import References, read_hypotheses
from sbnmt_plugin.tools.machine import commit, machine, versions
from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.recipes.costs import read_log, told
from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.process import Logged
from sbnmt_plugin.tools.recipes.row_steps import RowSteps
from sbnmt_plugin.tools.recipes.rows import Row, can_be_model, is_searched
from sbnmt_plugin.tools.recipes.settings import references
from sbnmt_plugin.tools.recipes.step import words_of
from sbnmt_plugin.tools.recipes.work_folder import read_recipe
from sbnmt_plugin.tools.results.sweep import Setting
from sbnmt_plugin.tools.scoring import mean, tokenised_bleu
from sbnmt_plugin.tools.text import as_written, read_parallel
from sbnmt_plugin.tools.unfinished import write_json

Searches = list[tuple[Row, Setting]]
# of a log of fairseq-generate
SPEED = re.compile(r"Translated [\d,]+ sentences .*\(([\d.]+) sentences/s, ")


def searching(steps: RowSteps, row: Row, subset: str) -> list[str]:
    """Return the options by which the recipe decodes a row's test set.

    Raises:
        FileNotFoundError: the row is not trained.
        ValueError: it is decoded in a way of its own, or has another such set.
    """
    if not is_searched(row):
        raise ValueError(
            f"--rows {row.name} must be a row with a model of its own that is searched "
            "in the usual way: leave it out"
        )
    if subset != "test" and not can_be_model(row):
        raise ValueError(
            f"--rows {row.name} has both languages on each side of its {subset} set: "
            "leave it out, or give --gen-subset test"
        )
    if not (model := steps.model(row).makes).is_file():
        raise FileNotFoundError(
            f"--rows {row.name} needs {model}, which is not there: sbnmt recipe with "
            f"--rows {model.parent.name} trains it"
        )
    _, *words = words_of(*steps.search(row))
    return [str(word) for word in words]


def decode(folder: Path, words: list[str]) -> float:
    """Run fairseq-generate.

    Returns:
        Its own measurement of sentences a second.

    Raises:
        ValueError: it failed; with the end of its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    typed = shlex.join(["fairseq-generate", *words])
    command = Logged(step_command("fairseq-generate", *words), typed, folder / "log")
    status = command.run(lambda line: None)
    text = read_log(command.log)
    speeds = told(SPEED, text)
    if not speeds:  # it measures when all is written
        raise ValueError(
            f"fairseq-generate failed with status {status}, its log {command.log} ends "
            "with\n" + "\n".join(text[-8:])
        )
    return float(speeds[-1])


def scored(
    folder: Path, job: dict[str, Any], right: References, given: list[list[str]]
) -> dict[str, Any]:
    """Decode and keep scores and speed.

    Args:
        job: the options of fairseq-generate, and all else that tells it from others.
            BLEU is the mean of that of its parts, as in the recipe's table.
        given: lines of each reference.
    """
    shutil.rmtree(folder, ignore_errors=True)  # what another job has left
    speed = decode(folder, [*job["options"], "--results-path", str(folder)])
    tokens = read_hypotheses(folder, right, job["subset"])
    how, scores = (right.lowercase, right.raw or "none"), []
    for here in starmap(slice, job["parts"]):
        own = [text[here] for text in given]
        scores.append({"BLEU": tokenised_bleu(tokens[here], own, *how)})
    bleu = mean(scores)["BLEU"]
    done = {"BLEU": bleu["score"], "signature": bleu["signature"], "sentences/s": speed}
    write_json(folder / "result.json", {"job": job, **done})
    return done


def kept(folder: Path, job: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of the same job that was done before, or None.

    Raises:
        ValueError: its file is damaged.
    """
    result = folder / "result.json"
    if not result.exists():
        return None
    with as_written(result, "remove it to decode anew"):
        done: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return done if done.pop("job") == job else None


def decoded(work: Path, searches: Searches, subset: str, output: Path) -> Any:
    """Do all searches, or take those that are there.

    Args:
        work: folder of the recipe's run.
        searches: rows, each with a setting of its search.
        subset: set that is decoded.

    Returns:
        The content of the output, which is written from the first run on.

    Raises:
        FileNotFoundError, ValueError: a row cannot be searched; or the runs of this
            output are in use.
    """
    settings = read_recipe(work / "recipe.json", "repeat sbnmt recipe")
    steps, right = RowSteps(Run(settings, work)), references(work / "text", settings)
    first, *further = right.files(subset)
    if subset != "test":  # which may have fewer
        further = [path for path in further if path.is_file()]
    given = read_parallel(first, *further)
    parts = [slice(0, len(given[0]))]
    if subset == "test":
        parts = [*right.sets(len(given[0])).values()]
    commands = {row: searching(steps, row, subset) for row, _ in searches}
    jobs, runs = [], Path(f"{output}.runs")
    for row, setting in searches:
        words = [*commands[row], "--gen-subset", subset, *setting.words]
        job: dict[str, Any] = {"options": words, origin.MODELS: origin.stamps_of(words)}
        job["reference sha256"] = origin.sha256_of(*given)
        job |= {"subset": subset, "parts": [[x.start, x.stop] for x in parts]}
        jobs.append((runs / subset / setting.folder(row.name), job))
    sweep: dict[str, Any] = {
        "command": f"sbnmt sweep-beam {shlex.join(sys.argv[1:])}",
        "commit": commit(),
        "machine": machine(),
        "versions": versions(),
        "subset": subset,
        "planned": len(jobs),
    }
    with hold(runs, "--output"):
        found = [kept(*each) for each in jobs]
        shown = progress(jobs, desc="decoding", unit="run")
        for place, (folder, job) in enumerate(shown):
            found[place] = found[place] or scored(folder, job, right, given)
            sweep["runs"] = [
                {"system": row.name, **setting.as_json, **done}
                for (row, setting), done in zip(searches, found)
                if done
            ]
            write_json(output, sweep)
    return sweep
