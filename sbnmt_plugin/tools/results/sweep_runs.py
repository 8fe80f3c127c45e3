"""Runs of a sweep: decoded, scored and kept, each once."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from sbnmt_plugin.tools import command, origin
from sbnmt_plugin.tools.command_names import PLUGIN
from sbnmt_plugin.tools.phonemes import error_rates
from sbnmt_plugin.tools.results.sweep import Setting
from sbnmt_plugin.tools.scoring import length_ratio, tokenised_bleu
from sbnmt_plugin.tools.text import as_written, read_lines, remove_bpe
from sbnmt_plugin.tools.translations import read_generate_log, read_generated
from sbnmt_plugin.tools.unfinished import new_file


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
            command.tied([sys.executable, "-m", "fairseq_cli.generate", *words]),
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


def one_run(
    folder: Path, words: list[str], args: argparse.Namespace, given: list[list[str]]
) -> dict[str, Any]:
    """Decode and score.

    Args:
        words: of fairseq-generate.
        args: how it is scored.
        given: lines of each reference.

    Raises:
        ValueError: outputs and references differ in number.
    """
    speed = decode(folder, [*words, "--results-path", str(folder)])
    found = read_generated(folder / f"generate-{args.gen_subset}.txt")
    tokens = [remove_bpe(text) for _, text in sorted(found.items())]
    for text in given:
        if len(text) != len(tokens):
            raise ValueError(
                f"--reference must have as many lines as {args.gen_subset} has "
                f"sentences ({len(tokens)}), but has {len(text)}"
            )
    scored = tokenised_bleu(tokens, given, args.lowercase)
    rates = error_rates(tokens, given) if args.phonemes else {}
    return {
        "BLEU": scored["score"],
        "signature": scored["signature"],
        **{name: rate["score"] for name, rate in rates.items()},
        "length ratio": length_ratio(tokens, given, args.lowercase),
        "mean length": sum(len(line.split()) for line in tokens) / len(tokens),
        "sentences/s": speed["sentences/s"],
    }


def decoded(
    args: argparse.Namespace,
    systems: dict[str, list[str]],
    runs: list[tuple[str, Setting]],
    others: list[str],
) -> dict[str, Any]:
    """Do all runs, or take those that are there.

    Args:
        runs: of the systems.
        others: options of fairseq-generate for all of them.

    Returns:
        What is in ``--output``, too, from the first run on.

    Raises:
        ValueError: one that is there was done with something else.
    """
    references = [read_lines(path) for path in args.reference]
    common = [args.data, "--user-dir", str(PLUGIN), "--task", "sb_translation"]
    common += ["--gen-subset", args.gen_subset, *others]
    flags = [flag for flag in ("phonemes", "lowercase") if getattr(args, flag)]
    jobs = []
    for name, setting in runs:
        words = [*common, *systems[name], *setting.words]
        job = {
            "name": name,
            "options": words,
            "references": args.reference,
            "reference sha256": origin.sha256_of(*references),
            **dict.fromkeys(flags, True),
            origin.MODELS: origin.stamps_of(words),
        }
        place = list(systems).index(name)
        jobs.append((Path(f"{args.output}.runs") / setting.folder(place), job))
    found = [kept(folder, job) for folder, job in jobs]
    sweep: dict[str, Any] = {"planned": len(runs), "options": others, "runs": []}
    for place, (folder, job) in enumerate(tqdm(jobs, desc="decoding", unit="run")):
        done = found[place]
        if done is None:
            done = one_run(folder, job["options"], args, references)
            with new_file(folder / "result.json") as file:
                json.dump({"job": job, **done}, file, indent=1)
            found[place] = done
        sweep["runs"] = [
            {"system": name, **setting.as_json, **each}
            for (name, setting), each in zip(runs, found)
            if each is not None
        ]
        with new_file(args.output) as file:
            json.dump(sweep, file, ensure_ascii=False, indent=1)
    return sweep


def without_plugin(words: list[str]) -> list[str]:
    """Options of fairseq-generate that say what is decoded, not where the plugin is: a
    sweep goes on from another clone, too."""
    place = words.index("--user-dir")
    return words[:place] + words[place + 2 :]


def kept(folder: Path, job: dict[str, Any]) -> dict[str, Any] | None:
    """What a run has found before, or None.

    Raises:
        ValueError: another run did, or its file is damaged.
    """
    result = folder / "result.json"
    if not result.exists():
        return None
    with as_written(result, "remove it to decode anew"):
        done: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        before = done.pop("job")
        before["options"] = without_plugin(before["options"])
        now = {**job, "options": without_plugin(job["options"])}
        other = origin.differences(before, now)
        if not {"BLEU", "signature"} <= set(done):
            raise ValueError("no score")
    if other:
        raise ValueError(
            f"{folder} was decoded with {', '.join(other)}: remove {folder.parent} to "
            "decode anew, or repeat the first command"
        )
    return done
