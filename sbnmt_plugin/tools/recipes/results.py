"""Scores of a row, and the table of all rows that a work folder holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU
from sacrebleu.metrics.base import Metric

from sbnmt_plugin.tools.phonemes import WordErrorRate, error_rates
from sbnmt_plugin.tools.recipes.costs import machine, step_cost
from sbnmt_plugin.tools.recipes.settings import same_training, training_options
from sbnmt_plugin.tools.recipes.systems import OPPONENTS, SYSTEMS, describe, split_name
from sbnmt_plugin.tools.recipes.table import PROBES, SCORES, Row
from sbnmt_plugin.tools.scoring import Scores, mean, scores, slices, tokenised_bleu
from sbnmt_plugin.tools.significance import bootstrap
from sbnmt_plugin.tools.text import read_lines
from sbnmt_plugin.tools.tokens import detokenise

WORKER = re.compile(r"^pseudo-[lr]2[lr]-\d+$")


def reference_files(text: Path, settings: dict[str, Any]) -> list[Path]:
    """The tokenised references of the test set."""
    name, count = f"test.{settings['target']}", settings["score"]["references"]
    return [text / name, *(text / f"{name}.{n}" for n in range(2, count + 1))]


def references(text: Path, target: str, stem: str, count: int) -> list[list[str]]:
    """``stem``.TGT, and for further references ``stem``.TGT.2 and so on."""
    names = [f"{stem}.{target}", *(f"{stem}.{target}.{n}" for n in range(2, count + 1))]
    return [read_lines(text / name) for name in names]


def test_sets(text: Path, count: int) -> dict[str, int]:
    """Names and lengths of the test sets that the test text consists of."""
    path = text / "test.sets"
    if not path.exists():
        return {"test": count}
    pairs = [line.split("\t") for line in read_lines(path)]
    sets = {name: int(length) for name, length in pairs}
    if sum(sets.values()) != count:
        raise ValueError(f"{path} must add up to {count} lines, but does not")
    return sets


def score_row(
    tokens: list[str], text: Path, settings: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Tokenised BLEU and, where text can be detokenised, sacreBLEU and chrF.

    Word and phoneme error rate too, where the recipe says that lines are words.

    Args:
        tokens: the hypotheses, BPE undone.
        text: folder with test.TGT, and test.ref.TGT as published.
        settings: of the recipe.

    Returns:
        The scores, and the hypotheses as one would read them.
    """
    target, language = settings["target"], settings["detokenise"]
    lowercase, count = (settings["score"][key] for key in ("lowercase", "references"))
    tokenised = references(text, target, "test", count)
    if len(tokens) != len(tokenised[0]):
        raise ValueError(
            f"there must be {len(tokenised[0])} hypotheses, one a line of "
            f"{text / f'test.{target}'}, but there are {len(tokens)}"
        )
    plain = detokenise(tokens, language) if language else tokens
    raw = references(text, target, "test.ref", count) if language else []
    sets = test_sets(text, len(tokens))
    found: list[Scores] = []
    for piece in slices(sets, [tokens, plain, *tokenised, *raw]).values():
        own, read = piece[2 : 2 + count], piece[2 + count :]
        result = {"tokenised BLEU": tokenised_bleu(piece[0], own, lowercase)}
        if read:
            result |= scores(piece[1], read, lowercase)
        if settings["score"]["phonemes"]:
            result |= error_rates(piece[0], own)
        found.append(result)
    scored: dict[str, Any] = mean(found)
    if len(sets) > 1:
        by_set = zip(sets, found)
        scored["sets"] = {n: r["tokenised BLEU"]["score"] for n, r in by_set}
    return scored, plain


def needs(settings: dict[str, Any], base: str) -> list[str]:
    """Steps that a row needs beside its own training, as their logs are named."""
    system = SYSTEMS[base]
    one = settings["teachers"] == "one"
    teachers = {d: "both" if one else d for d in ("l2r", "r2l")}
    # y_g + y_pl, too: it is to have the sentences that both teachers translate
    pseudo = [] if system.data in ("", "gold") else ["l2r", "r2l"]
    used = {teachers[direction] for direction in pseudo}
    if base == "rerank":
        used = set(teachers.values())
    if system.starts_from:
        used.add(teachers[system.starts_from.removeprefix("teacher-")])
    return [f"train-teacher-{d}" for d in sorted(used)] + [
        f"pseudo-{d}" for d in pseudo
    ]


def total_seconds(logs: Path, settings: dict[str, Any], name: str) -> int | None:
    """Wall-clock time of a row's training and of all that it needs; None: not known."""
    base, _ = split_name(name)
    steps = needs(settings, base)
    if SYSTEMS[base].data:
        steps.append(f"train-{name}")
    found = 0
    for step in steps:
        whole = [log for log in [logs / f"{step}.log"] if log.exists()]
        # workers of one step ran side by side
        workers = [p for p in logs.glob(f"{step}-*.log") if WORKER.search(p.stem)]
        if not whole + workers:
            return None
        found += sum(step_cost(log)["seconds"] for log in whole)
        found += max((step_cost(log)["seconds"] for log in workers), default=0)
    return found


def build_row(work: Path, settings: dict[str, Any], name: str) -> Row:
    """Scores, cost and origin of a row."""
    base, seed = split_name(name)
    trained = same_training(settings, name)
    if base in ("teacher-l2r", "teacher-r2l") and settings["teachers"] == "one":
        trained = "teacher-both"
    scored = json.loads((work / "results" / f"{name}.json").read_text("utf-8"))
    title = describe(name, training_options(settings, name))
    if trained == "teacher-both":
        direction = base.removeprefix("teacher-").upper()
        title = f"{SYSTEMS[trained].title}, {direction} answers"
    row: Row = {"name": name, "title": title, "seed": seed}
    row |= {key: scored[key]["score"] for key in SCORES if key in scored}
    if "sets" in scored:
        row["sets"] = scored["sets"]
    if "L2R wins" in scored:
        row["L2R wins"] = scored["L2R wins"]["score"]
    log = work / "logs" / f"train-{trained}.log"
    if SYSTEMS[base].data and log.exists():
        row |= step_cost(log)
    total = total_seconds(work / "logs", settings, trained)
    if total is not None:
        row["total seconds"] = total
    score = "WER" if settings["score"]["phonemes"] else "score"
    for probe, key in ("interaction", score), ("reading", "second half"):
        path = work / "results" / probe / f"{name}.json"
        if path.exists():
            found = json.loads(path.read_text("utf-8"))
            row[probe] = {setting: found[setting][key] for setting in PROBES}
    return row


def compare(work: Path, settings: dict[str, Any], rows: list[Row]) -> str | None:
    """Give every row its p against the best Transformer with the same pseudo data.

    Returns:
        That opponent's name, or None if it is not there.
    """
    opponents = [row for row in rows if split_name(row["name"])[0] in OPPONENTS]
    if not opponents:
        return None
    lowercase = settings["score"]["lowercase"]
    metric: Metric = BLEU(tokenize="none", force=True, lowercase=lowercase)
    key, suffix, stem, better = "tokenised BLEU", "tok", "test", max
    if settings["score"]["phonemes"]:
        metric, key, better = WordErrorRate(), "WER", min
    elif settings["detokenise"]:
        metric, key, suffix, stem = BLEU(lowercase=lowercase), "BLEU", "txt", "test.ref"
    best = better(opponents, key=lambda row: row[key])
    target, count = settings["target"], settings["score"]["references"]
    given = references(work / "text", target, stem, count)
    outputs = {
        row["name"]: read_lines(work / "results" / f"{row['name']}.{suffix}")
        for row in rows
    }
    if len(rows) > 1:
        found, _ = bootstrap(outputs, given, best["name"], {key: metric})
        for row in rows:
            if row is not best:
                row["p"] = found[row["name"]][key].p
    return best["name"]


def build_table(work: Path, settings: dict[str, Any], command: str) -> dict[str, Any]:
    """Everything that the work folder holds results of."""
    folder = work / "results"
    order = list(SYSTEMS)
    names = sorted(
        (path.stem for path in folder.glob("*.json")),
        key=lambda name: (order.index(split_name(name)[0]), split_name(name)[1]),
    )
    rows = [build_row(work, settings, name) for name in names]
    signatures: dict[str, str] = {}
    for name in names:
        scored = json.loads((folder / f"{name}.json").read_text("utf-8"))
        for key in SCORES:
            if key in scored:
                signatures[key] = scored[key]["signature"]
    return {
        "command": command,
        "machine": machine(),
        "signatures": signatures,
        "opponent": compare(work, settings, rows),
        "rows": rows,
    }
