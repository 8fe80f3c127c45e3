"""Scores and costs of rows, and the table of all rows in a work folder."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.machine import machine
from sbnmt_plugin.tools.recipes.costs import (
    LEFT_OUT,
    PEAK_MEMORY,
    PROCESSOR,
    WALL,
    step_cost,
)
from sbnmt_plugin.tools.recipes.row_steps import check_row, costed_steps
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.stages import (
    Stage,
    same_training,
    training_options,
    training_stages,
)
from sbnmt_plugin.tools.recipes.work_folder import decoded_rows
from sbnmt_plugin.tools.results.comparison import compare, of_several_seeds
from sbnmt_plugin.tools.results.table import PROBES, SCORES, TableRow
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import write_json

WORKER = re.compile(r"^pseudo-[lr]2[lr]-\d+$")
# how a cost of a training follows from those of its stages
SUMS = WALL, "updates", "tokens", LEFT_OUT, PROCESSOR
JOINED: dict[str, Any] = {**dict.fromkeys(SUMS, sum), PEAK_MEMORY: max}


def languages(work: Path) -> tuple[str, str]:
    """Return source and target language, from the binarised data.

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


def training_cost(logs: Path, stages: list[Stage]) -> TableRow:
    """Return the cost of a row's training and, if there are several, of each stage.

    It is empty where a log is missing.
    """
    costs: list[TableRow] = []
    updates = 0  # as the last log has counted them
    for stage in stages:
        log = logs / f"{stage.log}.log"
        if not log.exists():
            return {}
        start = updates if stage.continues else 0
        costs.append({"data": stage.data, **step_cost(log, start)})
        updates = start + costs[-1].get("updates", 0)

    total: TableRow = {**costs[-1]}
    del total["data"]
    if len(costs) == 1:
        return total
    for key, joined in JOINED.items():
        told = [cost[key] for cost in costs if key in cost]
        if told and (key != PROCESSOR or len(told) == len(costs)):
            total[key] = joined(told)
        else:
            total.pop(key, None)
    commits = sorted({each for cost in costs for each in cost.get("commits", [])})
    return {"stages": costs, **total, "commits": commits}


def total_costs(logs: Path, settings: dict[str, Any], row: Row) -> TableRow:
    """Return the cost of a row's training and of all that it needs.

    These are seconds by the clock and of processors, and labels seen; what is not
    known is left out.
    """
    steps = costed_steps(settings, row)
    trained = [step.name.split("/") for step in steps]
    tokens = 0
    for name in dict.fromkeys(name for kind, name, *_ in trained if kind == "train"):
        stages = training_stages(settings, Row.parse(name))
        tokens += training_cost(logs, stages).get("tokens", 0)
    clock = 0
    spent: list[float | None] = []
    for step in steps:
        log = logs / f"{step.log}.log"
        whole = [step_cost(log)] if log.exists() else []
        logged = [p for p in logs.glob(f"{step.log}-*.log") if WORKER.search(p.stem)]
        workers = [step_cost(path) for path in logged]  # which ran side by side
        if not whole + workers:
            return {}
        clock += sum(cost[WALL] for cost in whole)
        clock += max((cost[WALL] for cost in workers), default=0)
        spent += [cost.get(PROCESSOR) for cost in whole + workers]
    told = [seconds for seconds in spent if seconds is not None]
    found: TableRow = {f"total {WALL}": clock}
    if tokens:
        found["total tokens"] = tokens
    if told and len(told) == len(spent):
        found[f"total {PROCESSOR}"] = sum(told)
    return found


def build_row(work: Path, settings: dict[str, Any], row: Row) -> TableRow:
    """Return scores, cost and origin of a row."""
    trained = same_training(settings, row)
    name, title = row.name, row.title(training_options(settings, row))
    if settings["teachers"] == "one" and row.base in ("teacher-l2r", "teacher-r2l"):
        trained = Row("teacher-both")
        direction = row.base.removeprefix("teacher-").upper()
        title = f"{trained.system.title}, {direction} answers"
    scored = json.loads((work / "results" / f"{name}.json").read_text("utf-8"))
    made: TableRow = {"name": name, "title": title, "seed": row.seed}
    made |= {key: scored[key]["score"] for key in SCORES if key in scored}
    if "sets" in scored:
        made["sets"] = scored["sets"]
    if "L2R wins" in scored:
        made["L2R wins"] = scored["L2R wins"]["score"]
    if row.system.data:
        made |= training_cost(work / "logs", training_stages(settings, trained))
    made |= total_costs(work / "logs", settings, trained)
    score = "WER" if settings["score"]["phonemes"] else "score"
    for probe, key in ("interaction", score), ("reading", "second half"):
        path = work / "results" / probe / f"{name}.json"
        if path.exists():
            found = json.loads(path.read_text("utf-8"))
            made[probe] = {setting: found[setting][key] for setting in PROBES}
    links = work / "results" / "aer" / f"{name}.json"
    if links.exists():
        made["AER"] = json.loads(links.read_text("utf-8"))["AER"]["score"]
    return made


def build_table(work: Path, settings: dict[str, Any], command: str) -> dict[str, Any]:
    """Return a table of every row that the work folder has results of.

    Args:
        command: the command that makes the table.

    Raises:
        FileNotFoundError: it holds none.
        ValueError: one is damaged, or of other options than the recipe's.
    """
    folder, decoded = work / "results", decoded_rows(work)
    if not decoded:
        raise FileNotFoundError(
            f"{folder} must hold a row's results, as evaluate writes them, but has no "
            ".json: decode and evaluate first"
        )
    rows = []
    signatures: dict[str, str] = {}
    for row in decoded:
        name = row.name
        path = folder / f"{name}.json"
        check_row(work, settings, row)
        with as_written(
            path, f"remove it and {folder}/*/{name}.json, and evaluate anew"
        ):
            rows.append(build_row(work, settings, row))
            scored = json.loads(path.read_text("utf-8"))
            signatures |= {k: scored[k]["signature"] for k in SCORES if k in scored}
    return {
        "command": command,
        "machine": machine(),
        "signatures": signatures,
        "opponent": compare(work, settings, rows),
        "rows": rows,
        "seeds": of_several_seeds(work, settings, rows),
    }


def write_table(work: Path, settings: dict[str, Any], command: str) -> dict[str, Any]:
    """Build the table, and keep it in the work folder's table.json."""
    table = build_table(work, settings, command)
    write_json(work / "table.json", table)
    return table
