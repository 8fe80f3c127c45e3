"""Scores and costs of rows, and the table of all rows in a work folder."""

from __future__ import annotations

import json
import re
from operator import add
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools.machine import machine
from sbnmt_plugin.tools.recipes.costs import LEFT_OUT, PEAKS, WALL, step_cost
from sbnmt_plugin.tools.recipes.row_steps import check_row
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.stages import (
    Stage,
    same_training,
    training_options,
    training_stages,
)
from sbnmt_plugin.tools.recipes.work_folder import changed_keys, decoded_rows
from sbnmt_plugin.tools.results.comparison import compare
from sbnmt_plugin.tools.results.table import PROBES, SCORES, TableRow
from sbnmt_plugin.tools.text import as_written
from sbnmt_plugin.tools.unfinished import write_json

# how a cost of a training follows from those of two of its stages
JOINED: dict[str, Any] = dict.fromkeys((WALL, "updates", "tokens", LEFT_OUT), add)
JOINED |= dict.fromkeys(PEAKS, max)
JOINED |= dict.fromkeys(("commits", "machines"), lambda a, b: [*dict.fromkeys(a + b)])

VERSION = re.compile(r"\|version:[^|,]*")  # of sacreBLEU, in a signature


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
    """Return the cost of a row's training, all of its stages together.

    It is empty where a log is missing.
    """
    total: TableRow = {}
    updates = 0  # as the last log has counted them
    for stage in stages:
        log = logs / f"{stage.log}.log"
        if not log.exists():
            return {}
        start = updates if stage.continues else 0
        cost = step_cost(log, start)
        updates = start + cost.get("updates", 0)
        for key in JOINED.keys() & total.keys() & cost.keys():
            cost[key] = JOINED[key](total[key], cost[key])
        total |= cost
    return total


def build_row(work: Path, settings: dict[str, Any], row: Row) -> TableRow:
    """Return scores, cost and origin of a row."""
    trained = same_training(settings, row)
    name, title = row.name, row.title(training_options(settings, row))
    scored = json.loads((work / "results" / f"{name}.json").read_text("utf-8"))
    made: TableRow = {"name": name, "title": title, "seed": row.seed}
    made |= {key: scored[key]["score"] for key in SCORES if key in scored}
    if "sets" in scored:
        made["sets"] = scored["sets"]
    if "L2R wins" in scored:
        made["L2R wins"] = scored["L2R wins"]["score"]
    if row.system.data:
        made |= training_cost(work / "logs", training_stages(settings, trained))
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
        ValueError: one is damaged, of other options than the recipe's, or scored
            otherwise than the first.
    """
    folder, decoded = work / "results", decoded_rows(work)
    if not decoded:
        raise FileNotFoundError(
            f"{folder} must hold a row's results, as evaluate writes them, but has no "
            ".json: decode and evaluate first"
        )
    rows = []
    signatures: dict[str, list[str]] = {}
    first: tuple[Path, dict[str, Any]] | None = None
    for row in decoded:
        name = row.name
        path = folder / f"{name}.json"
        check_row(work, settings, row)
        with as_written(
            path, f"remove it and {folder}/*/{name}.json, and evaluate anew"
        ):
            rows.append(build_row(work, settings, row))
            scored = json.loads(path.read_text("utf-8"))
            signed = {k: scored[k]["signature"] for k in SCORES if k in scored}
            rules: dict[str, Any] = {k: VERSION.sub("", x) for k, x in signed.items()}
            rules["sets"] = [*scored.get("sets", [])]
        for key, signature in signed.items():
            signatures.setdefault(key, []).append(signature)
        if row.system.back:  # it has another reference
            continue
        other, known = first = first or (path, rules)
        if changed := changed_keys(known, rules, ()):
            raise ValueError(
                f"{path} must be scored as {other} is, but is not "
                f"({', '.join(changed)} differ): remove the one that sbnmt recipe has "
                "not written, and repeat sbnmt recipe with its row"
            )
    # that trained them; logs of 0.2.0 do not say it
    machines = dict.fromkeys(m for row in rows for m in row.get("machines", []))
    return {
        "command": command,
        "machine": "; ".join(machines) or machine(),
        "signatures": {k: "; ".join(dict.fromkeys(x)) for k, x in signatures.items()},
        "opponent": compare(work, settings, rows),
        "rows": rows,
    }


def write_table(work: Path, settings: dict[str, Any], command: str) -> dict[str, Any]:
    """Build the table, and keep it in the work folder's table.json."""
    table = build_table(work, settings, command)
    write_json(work / "table.json", table)
    return table
