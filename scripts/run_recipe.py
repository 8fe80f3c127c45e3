#!/usr/bin/env python3
"""Run a recipe from raw text to scores, skipping what is done.

    run_recipe.py examples/toy --work work/toy
    run_recipe.py examples/multi30k --work work/multi30k --data FOLDER [--small]

A recipe is a folder with recipe.yaml and prepare.py.  The steps, each in a sub-folder
of --work: text, bpe, data, teachers, pseudo targets, triples, data-triples, sb
(training), decoding, scores.  Interrupt and repeat the command at will.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml
from score import scores, tokenised_bleu
from texts import new_file, read_lines, remove_bpe, run, write_lines
from tokenise import detokenise

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts"
PLUGIN = ROOT / "sbnmt_plugin"
SHOWN = re.compile(
    r"\| valid \||\d sentences, |triples written|\d translated, |shards: +\d+%|"
    r"^  source |^     [lr]2[lr] |^interaction |^signature "
)


def load_recipe(folder: Path, small: bool) -> dict[str, Any]:
    """recipe.yaml, with its ``small`` section laid over it if asked for."""
    path = folder / "recipe.yaml"
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: give a folder of examples/")
    recipe: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    overlay = recipe.pop("small", None)
    if small:
        if overlay is None:
            raise ValueError(f"--small: {path} has no small setting")
        for key, value in overlay.items():
            merge = isinstance(value, dict) and isinstance(recipe.get(key), dict)
            recipe[key] = {**recipe[key], **value} if merge else value
    return recipe


def flags(options: dict[str, Any]) -> list[str]:
    """``{--a: 1, --b: null, --c: false}`` as ``--a 1 --b``."""
    words: list[str] = []
    for name, value in options.items():
        if value is False:
            continue
        words += [name] if value is None else [name, str(value)]
    return words


class Recipe:
    """The steps of a recipe, and where each leaves its result.

    Args:
        folder: of the recipe.
        work: where to write.
        settings: recipe.yaml's.
        data: the user's raw files, where the recipe wants any.
    """

    def __init__(
        self, folder: Path, work: Path, settings: dict[str, Any], data: str | None
    ) -> None:
        self.folder = folder
        self.work = work
        self.settings = settings
        self.data = data
        self.source, self.target = settings["source"], settings["target"]
        # a variable of the same name in the user's own environment wins
        self.environment = {
            str(k): str(v) for k, v in settings.get("environment", {}).items()
        }

    def python(self, step: str, script: Path | str, *words: Any) -> None:
        """Run a Python script or module as a step of its own, with a log."""
        command = [sys.executable]
        command += ["-m", script] if isinstance(script, str) else [str(script)]
        command += [str(word) for word in words]
        log = self.work / "logs" / f"{step.replace('/', '-')}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        shown = shlex.join(command).replace(f"{ROOT}/", "")
        print(f"\n== {step}\n   {shown}", flush=True)
        started = time.time()
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        with open(log, "a", encoding="utf-8") as file:
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                encoding="utf-8",
                errors="replace",
                env={**self.environment, **os.environ, "PYTHONPATH": path},
            )
            assert process.stdout is not None
            for line in process.stdout:
                file.write(line)
                file.flush()
                if SHOWN.search(line):
                    print(f"   {step}: {shorten(line.rstrip())}", flush=True)
        status = process.wait()
        tail = log.read_text(encoding="utf-8").splitlines()[-15:]
        # a thread of fairseq's loader now and then aborts the interpreter on its way
        # out, when everything is written
        if status < 0 and any("done training in" in line for line in tail):
            print(f"   {step}: signal {-status} after the end, all is written")
        elif status:
            raise ValueError(
                f"step {step} failed, its log {log} ends with\n" + "\n".join(tail)
            )
        print(f"   {step}: done in {time.time() - started:.0f} s", flush=True)

    def text(self) -> None:
        if not (self.work / "text" / f"test.{self.target}").exists():
            words = ["--output", self.work / "text", *self.settings["prepare"]]
            if self.data is not None:
                words += ["--data", self.data]
            self.python("text", self.folder / "prepare.py", *words)

    def bpe(self) -> None:
        """Learn codes on the training text and split all texts."""
        text, out, bpe = self.work / "text", self.work / "bpe", self.settings["bpe"]
        languages = self.source, self.target
        if bpe["kind"] not in ("joint", "separate"):
            raise ValueError(f"bpe.kind must be joint or separate: {bpe['kind']!r}")
        for language in languages:
            codes = out / "codes"
            trained_on = [text / f"train.{name}" for name in languages]
            if bpe["kind"] == "separate":
                codes = out / f"codes.{language}"
                trained_on = [text / f"train.{language}"]
            script = SCRIPTS / "bpe.py"
            if not codes.exists():
                words = ["learn", "--merges", bpe["merges"], "--codes", codes]
                self.python(f"bpe/{codes.name}", script, *words, *trained_on)
            for split in ("train", "valid", "test"):
                name = f"{split}.{language}"
                if not (out / name).exists():
                    words = ["apply", "--codes", codes, text / name, out / name]
                    self.python(f"bpe/{name}", script, *words)

    def binarise(self, name: str, train: Path, *words: Any) -> None:
        if (self.work / name).exists():
            return
        prefixes = ["--trainpref", train]
        for split in ("valid", "test"):
            prefixes += [f"--{split}pref", self.work / "bpe" / split]
        pair = ["-s", self.source, "-t", self.target, "--destdir", self.work / name]
        script = SCRIPTS / "binarise.py"
        self.python(name, script, *pair, *prefixes, "--workers", 2, *words)

    def train(self, name: str, data: str, options: dict[str, Any]) -> None:
        """Train a system, or continue where it was interrupted."""
        save, done = self.work / name, self.work / name / "done"
        if done.exists():
            return
        options = {
            "--user-dir": PLUGIN,
            "--task": "sb_translation",
            "--criterion": "sb_label_smoothed_cross_entropy",
            "--save-dir": save,
            "--log-format": "simple",
            "--seed": 1,
            **self.settings["train"],
            **options,
        }
        words = [self.work / data, *flags(options)]
        self.python(f"train/{name}", "fairseq_cli.train", *words)
        self.average(name)
        done.touch()

    def average(self, name: str) -> None:
        """Average the last checkpoints, or point at the best one."""
        save, count = self.work / name, self.settings["average"]
        if count:
            words = ["--output", save / "model.pt", "--last", count, save]
            self.python(f"average/{name}", SCRIPTS / "average_checkpoints.py", *words)
        else:
            (save / "model.pt").unlink(missing_ok=True)
            (save / "model.pt").symlink_to("checkpoint_best.pt")

    def teachers(self) -> None:
        """Two models of one direction, or one of both at λ = 0; then pseudo targets.

        With ``jobs: 2`` the directions run side by side.
        """
        if self.settings["teachers"] not in ("two", "one"):
            raise ValueError("teachers must be two or one in recipe.yaml")
        if self.settings["teachers"] == "one":
            options = {
                "--arch": self.settings["sb_arch"],
                **self.settings.get("sb_train", {}),
            }
            # gold on both sides leaks through any interaction, so there is none
            options.pop("--sb-learn-lambda", None)
            options |= {"--sb-lambda": 0, "--sb-fusion": "tanh"}
            self.train("teacher-both", "data", options)
        with ThreadPoolExecutor(self.settings.get("jobs", 1)) as pool:
            list(pool.map(self.pseudo, ("l2r", "r2l")))

    def teacher(self, direction: str) -> list[Any]:
        """Options by which a teacher translates in one direction."""
        if self.settings["teachers"] == "two":
            path = self.work / f"teacher-{direction}" / "model.pt"
            return ["--path", path, "--sb-direction", direction]
        path = self.work / "teacher-both" / "model.pt"
        return ["--path", path, "--sb-answer", direction]

    @property
    def device(self) -> list[str]:
        return ["--cpu"] if self.settings["train"].get("--cpu", False) is None else []

    def pseudo(self, direction: str) -> None:
        """Train a teacher of one direction, where there are two; translate with it."""
        if self.settings["teachers"] == "two":
            options = {
                "--arch": self.settings["teacher_arch"],
                "--sb-direction": direction,
                **self.settings.get("teacher_train", {}),
            }
            self.train(f"teacher-{direction}", "data", options)
        output = self.work / "pseudo" / f"{direction}.tsv"
        if not output.exists():
            words = [self.work / "data", *self.teacher(direction), *self.device]
            words += [*self.settings["decode"], *self.settings["pseudo"]]
            words += ["--input", self.work / "bpe" / f"train.{self.source}"]
            script = SCRIPTS / "translate.py"
            step = f"pseudo/{direction}"
            self.python(step, script, *words, "--output", output)

    def triples(self) -> None:
        output = self.work / "triples" / "train"
        if not output.with_suffix(".r2l").exists():
            gold = self.work / "bpe"
            words = ["--source", gold / f"train.{self.source}"]
            words += ["--target", gold / f"train.{self.target}"]
            for direction in ("l2r", "r2l"):
                path = self.work / "pseudo" / f"{direction}.tsv"
                words += [f"--pseudo-{direction}", path]
            words += ["--output", output, "--triples", self.settings["triples"]]
            words += self.settings.get("make_triples", [])
            self.python("triples", SCRIPTS / "make_triples.py", *words)

    def sb(self) -> None:
        options = {
            "--arch": self.settings["sb_arch"],
            **self.settings.get("sb_train", {}),
        }
        self.train("sb", "data-triples", options)

    def generate(self, name: str, data: str, words: list[Any]) -> None:
        """Decode the test set with fairseq-generate and score it."""
        folder = self.work / "results"
        folder.mkdir(exist_ok=True)
        result = folder / f"{name}.json"
        if result.exists():
            return
        records = folder / f"{name}.jsonl"
        records.unlink(missing_ok=True)
        out = folder / f"{name}.generate"
        words = [self.work / data, "--user-dir", PLUGIN, "--gen-subset", "test", *words]
        words += [*self.settings["decode"], "--max-tokens", 4000, *self.device]
        words += ["--task", "sb_translation", "--sb-records", records]
        words += ["--results-path", out]
        self.python(f"generate/{name}", "fairseq_cli.generate", *words)
        self.score(name, out / "generate-test.txt", records, result)

    def score(self, name: str, output: Path, records: Path, result: Path) -> None:
        text = self.work / "text"
        hypotheses = read_hypotheses(output)
        tokens = [remove_bpe(line) for line in hypotheses]
        reference = read_lines(text / f"test.{self.target}")
        if len(tokens) != len(reference):
            raise ValueError(
                f"{output} must have {len(reference)} hypotheses, but has {len(tokens)}"
            )
        scored = {"tokenised BLEU": tokenised_bleu(tokens, [reference])}
        plain, raw = tokens, reference
        if self.settings.get("detokenise"):
            plain = detokenise(tokens, self.settings["detokenise"])
            raw = read_lines(text / f"test.ref.{self.target}")
            scored.update(scores(plain, [raw]))
        write_lines(result.with_suffix(".txt"), plain)
        winners = [json.loads(line)["winner"] for line in read_lines(records)]
        scored["L2R wins"] = {
            "score": round(100 * winners.count("l2r") / len(winners), 1)
        }
        with new_file(result) as file:
            json.dump(scored, file, indent=1)

    def decode(self) -> None:
        for direction in ("l2r", "r2l"):
            self.generate(f"teacher-{direction}", "data", self.teacher(direction))
        path = ["--path", self.work / "sb" / "model.pt"]
        self.generate("sb", "data", path)
        for direction in ("l2r", "r2l"):
            name = f"sb-{direction}-alone"
            self.generate(name, "data", [*path, "--sb-answer", direction])

    def probe(self) -> None:
        """Decode with the future removed, and with partners shuffled."""
        output = self.work / "results" / "interaction"
        if not output.exists():
            words = [self.work / "data", "--path", self.work / "sb" / "model.pt"]
            words += ["--input", self.work / "bpe" / f"test.{self.source}"]
            words += ["--reference", self.work / "text" / f"test.{self.target}"]
            words += [*self.settings["decode"], "--max-tokens", 4000, *self.device]
            script = SCRIPTS / "probe_interaction.py"
            self.python("interaction", script, *words, "--json", output)

    def table(self) -> None:
        """Print what has been scored."""
        folder = self.work / "results"
        print(
            f"\n{'system':<24} {'tok. BLEU':>9} {'BLEU':>6} {'chrF':>6} {'L2R wins':>9}"
        )
        signatures = set()
        for path in sorted(folder.glob("*.json")):
            scored = json.loads(path.read_text())
            row = [f"{path.stem:<24}"]
            for key, width in ("tokenised BLEU", 9), ("BLEU", 6), ("chrF", 6):
                value = scored.get(key)
                row.append(f"{value['score']:>{width}.2f}" if value else " " * width)
                if value:
                    signatures.add(f"{key}: {value['signature']}")
            row.append(f"{scored['L2R wins']['score']:>7.1f} %")
            print(" ".join(row))
        for name, scored in json.loads((folder / "interaction").read_text()).items():
            signatures.add(f"tokenised BLEU: {scored['signature']}")
            row = [f"{'sb, ' + name:<24}", f"{scored['score']:>9.2f}", " " * 13]
            print(" ".join([*row, f"{scored['L2R wins']:>7.1f} %"]))
        print("\n".join(sorted(signatures)), flush=True)

    def run(self) -> None:
        """All steps, in order."""
        self.text()
        self.bpe()
        gold = self.work / "bpe" / "train"
        self.binarise("data", gold, *self.settings["preprocess"])
        self.teachers()
        self.triples()
        words = ["--srcdict", self.work / "data" / f"dict.{self.source}.txt"]
        if "--joined-dictionary" in self.settings["preprocess"]:
            words += ["--joined-dictionary"]
        else:
            words += ["--tgtdict", self.work / "data" / f"dict.{self.target}.txt"]
        self.binarise("data-triples", self.work / "triples" / "train", *words)
        self.sb()
        self.decode()
        self.probe()
        self.table()


def read_hypotheses(path: Path) -> list[str]:
    """The H- lines of fairseq-generate's output, in order of their ids."""
    found: dict[int, str] = {}
    for line in read_lines(path):
        if line.startswith("H-"):
            name, _, text = line.split("\t", 2)
            found.setdefault(int(name[2:]), text)
    return [found[i] for i in sorted(found)]


def shorten(line: str) -> str:
    """Keep of fairseq's validation line what a reader looks for."""
    if "| valid |" not in line:
        return line
    wanted = ("epoch", "loss", "ppl", "bleu", "num_updates")
    parts = [part.strip() for part in line.split("|")]
    kept = [part for part in parts if part.split(" ")[0] in wanted]
    return " | ".join(kept)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recipe", help="folder under examples/")
    parser.add_argument("--work", required=True, help="folder to write to")
    parser.add_argument("--data", help="folder of raw files, where the recipe asks")
    parser.add_argument("--small", action="store_true", help="the small setting")
    args = parser.parse_args()
    folder, work = Path(args.recipe).resolve(), Path(args.work).resolve()
    settings = load_recipe(folder, args.small)
    work.mkdir(parents=True, exist_ok=True)
    Recipe(folder, work, settings, args.data).run()


if __name__ == "__main__":
    run(main)
