"""The recipe driver with every command run in this process: a second each."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

import yaml
from commands import NO_WORKERS, ROOT
from fairseq import checkpoint_utils

from sbnmt_plugin.__main__ import main
from sbnmt_plugin.tools.recipes import costs, runner
from sbnmt_plugin.tools.recipes.step import Step

FORMAT = "%(asctime)s | %(levelname)s | %(name)s | %(message)s"  # fairseq's


def run(self: runner.Runner, step: Step) -> None:
    """In place of Runner.run."""
    log = self.log(step.name)
    for folder in log.parent, step.makes.parent:
        folder.mkdir(parents=True, exist_ok=True)
    print(f"\n== {step.name}")
    words = runner.executable(step.words)
    if words[1:3] != ["-m", "sbnmt_plugin"]:
        subprocess.run(words, check=True)
        return
    # fairseq keeps the best score of the process's last training there
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    arguments = words[3:]
    if arguments[0] == "fairseq-generate":
        arguments += NO_WORKERS  # one would outlive the command, in this process
    with open(log, "a", encoding="utf-8") as file, contextlib.ExitStack() as stack:
        file.write(costs.launch_line(step.name))
        handler = logging.StreamHandler(file)
        handler.setFormatter(logging.Formatter(FORMAT, "%Y-%m-%d %H:%M:%S"))
        logging.getLogger().addHandler(handler)
        stack.callback(logging.getLogger().removeHandler, handler)
        for logger in logging.getLogger(), logging.getLogger("fairseq"):
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.INFO)  # other tests have their own
        stack.enter_context(mock.patch.object(sys, "argv", ["sbnmt", *arguments]))
        stack.enter_context(mock.patch("signal.signal"))  # not from a thread
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        try:
            main()
        except SystemExit as stop:
            assert not stop.code, f"{step.name} failed: {words}"
        file.write(costs.end_line(0.5, 7))


def load(path: Path) -> ModuleType:
    """A script that is in no importable folder."""
    spec = importlib.util.spec_from_file_location(
        f"{path.parent.name}_{path.stem}", path
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_recipe(folder: Path, **changes: object) -> Path:
    """The toy recipe with almost no data and one epoch."""
    settings = yaml.safe_load((ROOT / "examples" / "toy" / "recipe.yaml").read_text())
    settings["train"] |= {"--max-epoch": 1, "--keep-last-epochs": 1}
    settings["sb_train"] |= {"--max-epoch": 1}
    settings["rows"] = ["teacher-l2r", "teacher-r2l", "sb"]
    for options in settings["systems"].values():
        options.pop("--max-epoch", None)
    settings |= {"average": 0, "bpe": {"kind": "joint", "merges": 40}, "jobs": 1}
    settings |= changes
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(settings))
    toy = (ROOT / "examples" / "toy" / "prepare.py").read_text()
    toy = toy.replace('"train": 6000, "valid": 200, "test": 300', SMALL)
    (folder / "prepare.py").write_text(toy)
    return folder


SMALL = '"train": 60, "valid": 8, "test": 11'
