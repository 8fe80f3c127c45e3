"""Made names.json, at commit 180b74d (0.2.0): what users of the plugin can name.

    git checkout 180b74d && python names.py FOLDER    (where make.py has put its files)

Tests compare what this finds at their commit with what it found there.
"""

import argparse
import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY

if __name__ == "__main__":
    sys.path.insert(0, ".")
import sbnmt_plugin
from sbnmt_plugin.search.registry import SEARCHES

ROOT = Path(sbnmt_plugin.__file__).resolve().parent.parent
INTERFACE = {
    "sbnmt_plugin.model": "SBTransformerModel",
    "sbnmt_plugin.hub": "SBHubInterface",
    "sbnmt_plugin.tools.translator": "Translator",
}


def ours(registry: dict[str, Any]) -> dict[str, Any]:
    """What the plugin has registered."""
    return {
        name: registered
        for name, registered in sorted(registry.items())
        if registered.__module__.startswith("sbnmt_plugin")
    }


def options_of(registered: Any) -> dict[str, Any]:
    """The options of a task, model or criterion: flag -> choices."""
    parser = argparse.ArgumentParser(add_help=False)
    registered.add_args(parser)
    return {
        flag: sorted(map(str, action.choices)) if action.choices else None
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        for flag in action.option_strings
    }


def settings_of(architecture: str) -> dict[str, Any]:
    """What an architecture sets where a command says nothing."""
    args = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[architecture](args)
    return {name: str(value) for name, value in sorted(vars(args).items())}


def registered() -> dict[str, Any]:
    """Every name that is registered with fairseq or the search."""
    kinds = {
        "task": TASK_REGISTRY,
        "model": MODEL_REGISTRY,
        "criterion": CRITERION_REGISTRY,
    }
    found = {kind: ours(registry) for kind, registry in kinds.items()}
    return {
        **{kind: sorted(names) for kind, names in found.items()},
        "search": sorted(SEARCHES),
        "architecture": {name: settings_of(name) for name in ours(ARCH_MODEL_REGISTRY)},
        "options": {
            f"{kind} {name}": options_of(each)
            for kind, names in found.items()
            for name, each in names.items()
        },
    }


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Module and name of what a script takes from the plugin."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        module = getattr(node, "module", None) or ""
        if isinstance(node, ast.ImportFrom) and module.startswith("sbnmt_plugin"):
            yield from ((module, alias.name) for alias in node.names)


def python() -> list[dict[str, Any]]:
    """Names that scripts import: module, name, and the files of ours that do so."""
    users: dict[tuple[str, str], set[str]] = {x: set() for x in INTERFACE.items()}
    for path in sorted((ROOT / "examples").rglob("*.py")):
        for pair in imports(path):
            users.setdefault(pair, set()).add(path.relative_to(ROOT).as_posix())
    return [
        {"module": module, "name": name, "used by": sorted(files)}
        for (module, name), files in sorted(users.items())
    ]


def weights(path: Path) -> dict[str, list[int]]:
    """The shapes of a checkpoint's weights."""
    state = torch.load(path, map_location="cpu", weights_only=False)["model"]
    return {name: list(value.shape) for name, value in state.items()}


def main(folder: Path) -> None:
    """Write names.json."""
    paths = sorted(folder.glob("*.pt"))
    found = {
        **registered(),
        "python": python(),
        "weights": {path.stem: weights(path) for path in paths},
    }
    (folder / "names.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
