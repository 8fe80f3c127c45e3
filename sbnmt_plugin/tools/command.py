"""Parts of every step of ``sbnmt``: its parser, its errors, its processes."""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import signal
import site
import sys
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

from sbnmt_plugin.lines import STANDARD_INPUT
from sbnmt_plugin.tools.command_names import HOME, PLUGIN


class Parser(argparse.ArgumentParser):
    """A parser that says which of its options an unknown one looks like."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words of the command line, or those given."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            message = f"unrecognized arguments: {' '.join(unknown)}"
            known = list(self._option_string_actions)
            for flag in [word.partition("=")[0] for word in unknown]:
                for near in get_close_matches(flag, known, 1, 0.75):
                    message += f" ({flag}: do you mean {near}?)"
            self.error(message)
        return found


def parser(text: str | None, **options: Any) -> argparse.ArgumentParser:
    """Return a step's parser.

    Args:
        text: the docstring of its module.
        options: argparse's.
    """
    kind = argparse.RawDescriptionHelpFormatter
    return Parser(description=text, formatter_class=kind, **options)


class AtLeastOne(argparse.Action):
    """An integer of at least 1; for another it raises ValueError, with the flag."""

    def __init__(self, **options: Any) -> None:
        super().__init__(type=int, **options)

    def __call__(self, *given: Any) -> None:
        _, namespace, value, *_ = given
        if value < 1:
            flag = self.option_strings[0]
            raise ValueError(f"{flag} must be ≥ 1, but is {value} instead")
        setattr(namespace, self.dest, value)


def step_command(step: str, *words: Any) -> list[str]:
    """Return the words by which another process runs a step."""
    return [sys.executable, "-m", "sbnmt_plugin", step, *map(str, words)]


def tied(words: list[str]) -> list[str]:
    """Return the words by which this process starts a command that ends with it."""
    script = PLUGIN / "tools" / "tied.py"
    return [sys.executable, "-I", str(script), str(os.getpid()), *words]


def child_environment() -> dict[str, str]:
    """Return variables with which another process imports this very package."""
    found = {"PYTHONSAFEPATH": "1"}  # and no module in its working directory
    found["PYTHONIOENCODING"] = "utf-8"  # as which its output is read
    if str(HOME) not in [*site.getsitepackages(), site.getusersitepackages()]:
        path = [str(HOME), os.environ.get("PYTHONPATH")]
        found["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    return found


@contextlib.contextmanager
def extra(name: str) -> Iterator[None]:
    """Import modules of an extra of setup.py, which a plain installation lacks.

    Raises:
        ValueError: one is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ValueError(
            f"the module {error.name} must be installed for this step, but is not: "
            f"run pip install -c constraints.txt '.[{name}]' in the clone"
        ) from error


def tell(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print an unforeseen error in full, the user's own interrupt in a line."""
    if issubclass(kind, KeyboardInterrupt):
        print(f"{os.path.basename(sys.argv[0])}: interrupted", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def run(action: Callable[[], None]) -> None:
    """Run a command; a user's mistake is one line on standard error and exit 2.

    Ended by SIGTERM, it removes its temporary files as after an interrupt.  Either
    signal ends it, whatever error a library that is in the middle of a change makes
    of the exception.
    """
    sys.excepthook = tell
    for name, mode in ("stdin", "r"), ("stdout", "w"), ("stderr", "w"):
        if getattr(sys, name) is None:  # it was closed, as by >&-
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (till the end)
    stopped: list[BaseException] = []  # by a signal

    def stop(number: int, _: Any) -> None:
        interrupt = number == signal.SIGINT
        stopped.append(KeyboardInterrupt() if interrupt else SystemExit(128 + number))
        raise stopped[0]

    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and out.errors == "strict":
        out.reconfigure(errors="backslashreplace")  # nothing is lost for its letters
    logging.raiseExceptions = False  # a full disk is told of once, not for every line
    names = [word.rpartition("=")[2] for word in sys.argv[1:]]
    try:
        if names.count(STANDARD_INPUT) + names.count("/dev/stdin") > 1:
            raise ValueError(
                "standard input must be one input, but is given for two: write a file"
            )
        action()
        sys.stdout.flush()
    except Exception as error:
        if stopped:
            raise stopped[0] from None
        if isinstance(error, BrokenPipeError):  # whoever reads the output has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        if not isinstance(error, (ValueError, OSError)):
            raise
        message = str(error)
        if isinstance(error, OSError) and error.errno:  # the system's own
            message = (
                f"{error.filename or 'a file'}: {error.strerror}: choose another file "
                "or folder, or see to its permissions and space"
            )
        if message in map(os.path.abspath, names):  # all that fairseq says
            message = f"--user-dir {message} must be a folder, but is not: leave it out"
        print(f"{os.path.basename(sys.argv[0])}: error: {message}", file=sys.stderr)
        sys.exit(2)
