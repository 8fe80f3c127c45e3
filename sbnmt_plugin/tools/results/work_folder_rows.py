"""Scores of a row, and the table of all rows that a work folder holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.recipes.ancestry import check_row
from sbnmt_plugin.tools.recipes.costs import (
    LEFT_OUT,
    PEAK_MEMORY,
    PROCESSOR,
    WALL,
    machine,
    step_cost,
)
from sbnmt_plugin.tools.recipes.row_names import (
    describe,
    split_name,
    with_seed,
)
from sbnmt_plugin.tools.recipes.settings import (
    DIRECTIONS,
    Stage,
    needs_pseudo,
    same_training,
    teacher_row,
    training_options,
    training_stages,
)
from sbnmt_plugin.tools.recipes.systems import SYSTEMS
from sbnmt_plugin.tools.recipes.systems.system import TEACHER
from sbnmt_plugin.tools.recipes.work_folder import decoded_rows, log_name
from sbnmt_plugin.tools.results.comparison import compare, of_several_seeds
from sbnmt_plugin.tools.results.table import PROBES, SCORES, Row
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import new_file

WORKER = re.compile(r"^pseudo-[lr]2[lr]-\d+$")


def needs(settings: dict[str, Any], name: str) -> list[str]:
    """Steps that a row needs beside its own training, as their logs are named."""
    base, seed = split_name(name)
    system = SYSTEMS[base]
    if system.joins:
        return [f"train-{with_seed(row, seed)}" for row in system.joins]
    pseudo = needs_pseudo(settings, [base])
    used = {teacher_row(settings, direction) for direction in pseudo}
    partner = []
    direction = system.starts_from.removeprefix(TEACHER)
    if direction in DIRECTIONS:
        used.add(teacher_row(settings, direction))
    elif system.starts_from:
        start = with_seed(system.starts_from, seed)
        partner = [*needs(settings, start), f"train-{start}"]
    if system.decodes:
        partner = [*needs(settings, system.decodes), f"train-{system.decodes}"]
    trained = [f"train-{row}" for row in sorted(used)]
    found = [*partner, *trained, *(f"pseudo-{d}" for d in pseudo)]
    return list(dict.fromkeys(found))


def training_cost(logs: Path, stages: list[Stage]) -> Row:
    """What a row's training cost, all stages together and, if there are several, each;
    empty where a log is missing."""
    costs: list[Row] = []
    updates = 0  # as the last log has counted them
    for stage in stages:
        log = logs / f"{log_name(stage)}.log"
        if not log.exists():
            return {}
        start = updates if stage.continues else 0
        costs.append({"data": stage.data, **step_cost(log, start)})
        updates = start + costs[-1].get("updates", 0)
    last = costs[-1]
    if len(costs) == 1:
        del last["data"]
        return last
    total: Row = {"stages": costs, **last}
    del total["data"]
    total["commits"] = sorted({c for cost in costs for c in cost.get("commits", [])})
    for key in (WALL, "updates", "tokens"):
        total[key] = sum(cost.get(key, 0) for cost in costs)
    total.pop(PROCESSOR, None)
    if all(PROCESSOR in cost for cost in costs):
        total[PROCESSOR] = sum(cost[PROCESSOR] for cost in costs)
    peaks = [cost[PEAK_MEMORY] for cost in costs if PEAK_MEMORY in cost]
    if any(LEFT_OUT in cost for cost in costs):
        total[LEFT_OUT] = sum(cost.get(LEFT_OUT, 0) for cost in costs)
    return total | ({PEAK_MEMORY: max(peaks)} if peaks else {})


def total_costs(logs: Path, settings: dict[str, Any], name: str) -> Row:
    """Time of a row's training and of all that it needs, by the clock and of
    processors, and labels seen; what is not known is left out."""
    base, _ = split_name(name)
    needed = needs(settings, name)
    if SYSTEMS[base].data:
        needed = [*needed, f"train-{name}"]
    steps: list[str] = []
    tokens = 0
    for step in needed:
        if not step.startswith("train-"):
            steps.append(step)
            continue
        stages = training_stages(settings, step.removeprefix("train-"))
        steps += [log_name(stage) for stage in stages]
        tokens += training_cost(logs, stages).get("tokens", 0)
    clock = 0
    spent: list[float | None] = []
    for step in steps:
        log = logs / f"{step}.log"
        whole = [step_cost(log)] if log.exists() else []
        logged = [p for p in logs.glob(f"{step}-*.log") if WORKER.search(p.stem)]
        workers = [step_cost(path) for path in logged]  # which ran side by side
        if not whole + workers:
            return {}
        clock += sum(cost[WALL] for cost in whole)
        clock += max((cost[WALL] for cost in workers), default=0)
        spent += [cost.get(PROCESSOR) for cost in whole + workers]
    told = [seconds for seconds in spent if seconds is not None]
    found: Row = {f"total {WALL}": clock}
    if tokens:
        found["total tokens"] = tokens
    if told and len(told) == len(spent):
        found[f"total {PROCESSOR}"] = sum(told)
    return found


def build_row(work: Path, settings: dict[str, Any], name: str) -> Row:
    """Scores, cost and origin of a row."""
    base, seed = split_name(name)
    trained = same_training(settings, name)
    if base in ("teacher-l2r", "teacher-r2l") and settings["teachers"] == "one":
        trained = "teacher-both"
    scored = json.loads((work / "results" / f"{name}.json").read_text("utf-8"))
    title = describe(name, training_options(settings, name))
    if trained == "teacher-both" and base != trained:
        direction = base.removeprefix("teacher-").upper()
        title = f"{SYSTEMS[trained].title}, {direction} answers"
    row: Row = {"name": name, "title": title, "seed": seed}
    row |= {key: scored[key]["score"] for key in SCORES if key in scored}
    if "sets" in scored:
        row["sets"] = scored["sets"]
    if "L2R wins" in scored:
        row["L2R wins"] = scored["L2R wins"]["score"]
    if SYSTEMS[base].data:
        row |= training_cost(work / "logs", training_stages(settings, trained))
    row |= total_costs(work / "logs", settings, trained)
    score = "WER" if settings["score"]["phonemes"] else "score"
    for probe, key in ("interaction", score), ("reading", "second half"):
        path = work / "results" / probe / f"{name}.json"
        if path.exists():
            found = json.loads(path.read_text("utf-8"))
            row[probe] = {setting: found[setting][key] for setting in PROBES}
    links = work / "results" / "aer" / f"{name}.json"
    if links.exists():
        row["AER"] = json.loads(links.read_text("utf-8"))["AER"]["score"]
    return row


def build_table(work: Path, settings: dict[str, Any], command: str) -> dict[str, Any]:
    """Everything that the work folder holds results of.

    Args:
        command: by which the table is made.

    Raises:
        FileNotFoundError: it holds none.
        ValueError: one is damaged, or of other options than the recipe's.
    """
    folder, names = work / "results", decoded_rows(work)
    if not names:
        raise FileNotFoundError(
            f"{folder} must hold a row's results, as evaluate writes them, but has no "
            ".json: decode and evaluate first"
        )
    rows = []
    signatures: dict[str, str] = {}
    for name in names:
        path = folder / f"{name}.json"
        check_row(work, settings, name)
        with as_written(
            path, f"remove it and {folder}/*/{name}.json, and evaluate anew"
        ):
            rows.append(build_row(work, settings, name))
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
    with new_file(work / "table.json") as file:
        json.dump(table, file, indent=1, ensure_ascii=False)
    return table
