"""Version, packages and machine by which a result can be made again."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

from sbnmt_plugin import __version__
from sbnmt_plugin.tools.command_names import HOME

PACKAGES = ("torch", "ve-fairseq", "sacrebleu")


def commit() -> str:
    """Return the checkout's commit, abbreviated, with "+" where files differ from it.

    For an installed package, which may lie in another checkout, it is the version.
    """

    def git(*words: str) -> str:
        command = ["git", "-C", str(HOME), *words]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    try:
        checkout = git("rev-parse", "--show-toplevel")
        if checkout and Path(checkout).samefile(HOME):
            name = git("rev-parse", "--short", "HEAD")
            return name + "+" * bool(git("status", "--porcelain", "-uno"))
    except FileNotFoundError:
        pass  # no git here
    return f"v{__version__}"


def machine() -> str:
    """Return processor and cores of this machine; GPUs are named by the logs."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*: (.+)", info.read_text())
        name = found.group(1) if found else name
    return f"{os.cpu_count()} cores, {name}"


def versions() -> str:
    """Return the versions of Python and of the packages that decide numbers."""
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue  # the other of fairseq's two distributions
    return ", ".join(found)
