"""Runs of a sweep: decoded, scored and kept, each once."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from sbnmt_plugin.tools import command, origin
from sbnmt_plugin.tools.command_names import PLUGIN
from sbnmt_plugin.tools.phonemes import error_rates
from sbnmt_plugin.tools.progress import progress
from sbnmt_plugin.tools.results.sweep_plan import Plan, Searches, without
from sbnmt_plugin.tools.scoring import length_ratio, tokenised_bleu
from sbnmt_plugin.tools.subwords import undoing
from sbnmt_plugin.tools.text import as_written, read_lines
from sbnmt_plugin.tools.translations import read_generate_log, read_generated
from sbnmt_plugin.tools.unfinished import write_json


def decode(folder: Path, words: list[str]) -> dict[str, float]:
    """Run fairseq-generate.

    Returns:
        Its own measurement of speed.

    Raises:
        ValueError: it failed; with the end of its log.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log"
    with open(log, "w", encoding="utf-8") as file:
        status = subprocess.run(
            command.tied(command.step_command("fairseq-generate", *words)),
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, **command.child_environment()},
        ).returncode
    text = log.read_text(encoding="utf-8", errors="replace").splitlines()
    speed = read_generate_log(text)
    if speed is None:  # it measures when all is written
        raise ValueError(
            f"fairseq-generate failed with status {status}, its log {log} ends with\n"
            + "\n".join(text[-8:])
        )
    return speed


def scored(
    folder: Path, words: list[str], plan: Plan, given: list[list[str]]
) -> dict[str, Any]:
    """Decode, and return scores, lengths and speed.

    Args:
        words: options of fairseq-generate.
        given: lines of each reference.

    Raises:
        ValueError: hypotheses and references differ in number.
    """
    speed = decode(folder, [*words, "--results-path", str(folder)])
    found = read_generated(folder / f"generate-{plan.subset}.txt")
    undo = undoing(plan.raw)
    tokens = [undo(text) for _, text in sorted(found.items())]
    for text in given:
        if len(text) != len(tokens):
            raise ValueError(
                f"--reference must have as many lines as {plan.subset} has "
                f"sentences ({len(tokens)}), but has {len(text)}"
            )
    options = plan.lowercase, plan.raw or "none"
    bleu = tokenised_bleu(tokens, given, *options)
    rates = error_rates(tokens, given) if plan.phonemes else {}
    return {
        "BLEU": bleu["score"],
        "signature": bleu["signature"],
        **{name: rate["score"] for name, rate in rates.items()},
        "length ratio": length_ratio(tokens, given, *options),
        "mean length": sum(len(line.split()) for line in tokens) / len(tokens),
        "sentences/s": speed["sentences/s"],
    }


def decoded(plan: Plan, searches: Searches) -> dict[str, Any]:
    """Do all searches, or take those that are there.

    Returns:
        The content of the plan's output, which is written from the first run on.

    Raises:
        ValueError: one that is there was done with something else.
    """
    given = [read_lines(path) for path in plan.references]
    common = [plan.data, "--user-dir", str(PLUGIN), "--task", "sb_translation"]
    common += ["--gen-subset", plan.subset, *plan.options]
    same: dict[str, Any] = {"references": plan.references}
    same["reference sha256"] = origin.sha256_of(*given)
    flags = ("phonemes", "lowercase", "raw")
    same |= {flag: value for flag in flags if (value := getattr(plan, flag))}
    jobs = []
    for name, setting in searches:
        words = [*common, *plan.systems[name], *setting.words]
        job = {"name": name, "options": words, **same}
        job[origin.MODELS] = origin.stamps_of(words)
        place = list(plan.systems).index(name)
        jobs.append((Path(f"{plan.output}.runs") / setting.folder(place), job))
    found = [kept(folder, job) for folder, job in jobs]
    sweep: dict[str, Any] = {"planned": len(jobs), "options": plan.options, "runs": []}
    for place, (folder, job) in enumerate(progress(jobs, desc="decoding", unit="run")):
        if found[place] is None:
            done = scored(folder, job["options"], plan, given)
            write_json(folder / "result.json", {"job": job, **done})
            found[place] = done
        sweep["runs"] = [
            {"system": name, **setting.as_json, **each}
            for (name, setting), each in zip(searches, found)
            if each is not None
        ]
        write_json(plan.output, sweep)
    return sweep


def kept(folder: Path, job: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a run that was done before, or None.

    Raises:
        ValueError: another run did, or its file is damaged.
    """
    result = folder / "result.json"
    if not result.exists():
        return None
    with as_written(result, "remove it to decode anew"):
        done: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        # a sweep goes on from another clone, too
        before, now = (
            {**each, "options": without(each["options"], "--user-dir")}
            for each in (done.pop("job"), job)
        )
        other = origin.differences(before, now)
        if not {"BLEU", "signature"} <= set(done):
            raise ValueError("no score")
    if other:
        raise ValueError(
            f"{folder} was decoded with {', '.join(other)}: remove {folder.parent} to "
            "decode anew, or repeat the first command"
        )
    return done
