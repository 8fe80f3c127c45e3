"""The command ``sbnmt``: finds its steps and runs them."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import signal
import site
import sys
from collections.abc import Callable
from typing import Any

from sbnmt_plugin.steps import HOME, STEPS

COMMANDS = "sbnmt_plugin.tools.commands"
OWN = "sbnmt"


def main() -> None:
    """Run the step that the command line names, by its own name or its script's."""
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return
    scripts = {script: step for step, (script, _) in STEPS.items() if script}
    step = scripts.get(words[0], words[0])
    if step not in STEPS:
        print(
            f"{OWN}: error: the step must be one of {', '.join(STEPS)}, but is "
            f"{words[0]!r}; see {OWN} --help",
            file=sys.stderr,
        )
        sys.exit(2)
    # by this name messages call the command
    name = words[0] if words[0] in scripts else f"{OWN} {step}"
    sys.argv = [name, *words[1:]]
    module = importlib.import_module(f"{COMMANDS}.{step.replace('-', '_')}")
    run(module.main)


def overview() -> str:
    """All steps, in order of use."""
    width = max(map(len, STEPS))
    lines = [f"  {step:<{width}}  {text}" for step, (_, text) in STEPS.items()]
    return "\n".join(
        [
            f"usage: {OWN} STEP [options]",
            "",
            "Synchronous Bidirectional NMT with fairseq; the steps in order of use:",
            "",
            *lines,
            "",
            f"{OWN} STEP --help says more.  Training, decoding and interactive use are "
            "fairseq's own",
            f"commands, with --user-dir {HOME / 'sbnmt_plugin'}",
            "--task sb_translation.",
        ]
    )


def parser(text: str | None, **options: Any) -> argparse.ArgumentParser:
    """A step's parser.

    Args:
        text: the docstring of its module, which calls steps ``sbnmt STEP``; where the
            user has called a script, so does the help.
        options: of argparse.
    """
    described = text or ""
    if sys.argv[0].endswith(".py"):
        for step, (script, _) in STEPS.items():
            if script:
                described = re.sub(rf"\b{OWN} {step}\b", script, described)
    return argparse.ArgumentParser(
        description=described,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )


def step_command(step: str, *words: Any) -> list[str]:
    """The words by which another process runs a step."""
    return [sys.executable, "-m", "sbnmt_plugin", step, *map(str, words)]


def child_environment() -> dict[str, str]:
    """Variables with which another process imports this very package."""
    found = {"PYTHONSAFEPATH": "1"}  # not what lies in its working directory
    if str(HOME) not in [*site.getsitepackages(), site.getusersitepackages()]:
        path = [str(HOME), os.environ.get("PYTHONPATH")]
        found["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    return found


def run(action: Callable[[], None]) -> None:
    """Run a command; a user's mistake is one line on standard error and exit 2.

    Ended by SIGTERM, it removes its temporary files as after an interrupt.
    """
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        action()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads the output, as head does, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, OSError) as error:
        message = str(error)
        if isinstance(error, OSError) and error.errno:  # the system's own
            message = (
                f"{error.filename or 'a file'}: {error.strerror}: choose another file "
                "or folder, or see to its permissions and space"
            )
        print(f"{os.path.basename(sys.argv[0])}: error: {message}", file=sys.stderr)
        sys.exit(2)
