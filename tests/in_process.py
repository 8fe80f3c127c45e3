"""The recipe driver with every command run in this process: a second each."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest
import yaml
from commands import NO_WORKERS, ROOT
from fairseq import checkpoint_utils
from steps import call, put

from sbnmt_plugin.__main__ import main
from sbnmt_plugin.tools import machine
from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.recipes import costs, runner
from sbnmt_plugin.tools.recipes.step import Step
from sbnmt_plugin.tools.results import sweep_runs

costs.commit = sweep_runs.commit = functools.cache(machine.commit)  # git's three
FORMAT = "%(asctime)s | %(levelname)s | %(name)s | %(message)s"  # fairseq's


def run(self: runner.Runner, step: Step) -> None:
    """In place of Runner.run."""
    log = self.log(step)
    for folder in log.parent, step.makes.parent:
        folder.mkdir(parents=True, exist_ok=True)
    print(f"\n== {step.name}")
    words = runner.executable(step.words)
    if words[1:3] != ["-m", "sbnmt_plugin"]:
        subprocess.run(words, check=True)
        return
    # fairseq keeps the best score of the process's last training there
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    run_here(words[3:], log, step.name)


def run_here(arguments: list[str], log: Path, name: str) -> None:
    """Run a command of the package's, with its log."""
    if arguments[0] == "fairseq-train":
        arguments = [*arguments, *NO_WORKERS]  # one would outlive it, in this process
    if arguments[0] == "binarise":
        arguments = [*arguments, "--workers", "1"]  # forks of this process are slow
    with open(log, "a", encoding="utf-8") as file, contextlib.ExitStack() as stack:
        file.write(costs.launch_line(name))
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
            assert not stop.code, f"{name} failed: {arguments}"
        file.write(costs.end_line(0.5))


def decode(folder: Path, words: list[str]) -> float:
    """In place of sweep_runs.decode."""
    folder.mkdir(parents=True, exist_ok=True)
    run_here(["fairseq-generate", *words], folder / "log", folder.name)
    return float(costs.told(sweep_runs.SPEED, costs.read_log(folder / "log"))[-1])


def load(path: Path) -> ModuleType:
    """A script that is in no importable folder."""
    spec = importlib.util.spec_from_file_location(
        f"{path.parent.name}_{path.stem}", path
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_script(path: Path, *words: object) -> None:
    """Run the main() of a script with a command line; errors pass through."""
    with mock.patch.object(sys, "argv", [path.name, *map(str, words)]):
        load(path).main()


def verdict(path: Path, capsys: pytest.CaptureFixture, *words: object):
    """Return exit status and output of a script that checks a run."""
    with pytest.raises(SystemExit) as stopped:
        run_script(path, *words)
    return int(stopped.value.code), capsys.readouterr().out


def make(recipe: Path, *words: object) -> None:
    """Run ``sbnmt recipe`` with all its commands in this process."""
    with (
        mock.patch.object(runner.Runner, "run", run),
        mock.patch.object(sweep_runs, "decode", decode),
    ):
        call(run_recipe, recipe, *words)


def unpacked(old: Path, folder: Path) -> Path:
    """Lay out a work folder of an earlier version, its large files empty.

    Args:
        old: what is kept of it: the names of all files (files.txt), the small ones.
    """
    for name in (old / "files.txt").read_text().splitlines():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if (old / name).exists():
            shutil.copy(old / name, path)
        else:
            path.touch()
    return folder


SMALL = '"train": 60, "valid": 8, "test": 11'


def shrink(
    name: str,
    folder: Path,
    lines: str = '"train": 6000, "valid": 200, "test": 300',
    small: str = SMALL,
    **changes: object,
) -> Path:
    """Write an example's recipe with almost no data and one epoch.

    Args:
        lines: of the example's texts, as its prepare.py says them.
        small: what it says instead.
        changes: of the recipe's settings; options of training are added.
    """
    example = ROOT / "examples" / name
    settings = yaml.safe_load((example / "recipe.yaml").read_text())
    settings["train"] |= {"--max-epoch": 1, "--keep-last-epochs": 1}
    put(folder / "recipe.yaml", yaml.safe_dump({**settings, **changes}))
    script = (example / "prepare.py").read_text()
    assert lines in script
    put(folder / "prepare.py", script.replace(lines, small))
    return folder


def write_recipe(folder: Path, **changes: object) -> Path:
    """Write the toy recipe with almost no data, one epoch, short texts, three rows."""
    toy = yaml.safe_load((ROOT / "examples" / "toy" / "recipe.yaml").read_text())
    for options in toy["systems"].values():
        options.pop("--max-epoch", None)
    few = {"average": 0, "bpe": {"kind": "joint", "merges": 40}, "jobs": 1}
    few |= {"rows": ["teacher-l2r", "teacher-r2l", "sb"], "systems": toy["systems"]}
    # such a model writes on until it is stopped
    few["decode"] = ["--beam", 4, "--lenpen", 0.6, "--max-len-b", 5]
    few |= {"sb_train": toy["sb_train"] | {"--max-epoch": 1}}
    return shrink("toy", folder, **few | changes)
