"""The house rules: who may import whom, and what is printed."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
from commands import ROOT

PACKAGE = ROOT / "sbnmt_plugin"
ARROWS = {
    "directions": set(),
    "fusion": set(),
    "choice": set(),
    "beam": {"choice"},
    "checkpoints": {"directions"},
    "rows": {"directions"},
    "attention": {"directions", "rows"},
    "decoder": {"attention", "choice", "directions", "fusion", "rows"},
    "onedirectional": {"attention", "decoder"},
    "hub": {"beam"},
    "model": {"checkpoints", "decoder", "directions", "fusion", "hub"},
    "dataset": {"directions"},
    "files": set(),
    "criterion": {"choice", "directions"},
    "ensemble": {"choice", "directions", "onedirectional"},
    "precision": set(),
    "records": {"directions"},
    "state": {"beam", "directions"},
    "restrictions": {"choice", "directions", "state"},
    "generator": {"beam", "choice", "directions", "ensemble", "restrictions", "state"},
    "options": {"beam", "directions", "state"},
    "config": {"beam", "directions", "options"},
    "trace": {"beam", "choice", "directions", "records"},
    "validation": set(),
    "task": {
        "beam",
        "checkpoints",
        "config",
        "dataset",
        "directions",
        "files",
        "generator",
        "options",
        "precision",
        "records",
        "state",
        "trace",
        "validation",
    },
    "__init__": {"checkpoints", "criterion", "model", "task"},
}
STANDARD = {"torch", "dataclasses", "math", "typing", "collections", "__future__"}
TORCH_ONLY = ("directions", "fusion", "choice", "beam", "rows")


def imports(path):
    """(our modules, other packages) that a file imports anywhere."""
    ours, others = set(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "sbnmt_plugin":
                names = [f"sbnmt_plugin.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            top, *rest = name.split(".")
            if top == "sbnmt_plugin":
                ours.update(rest[:1])
            else:
                others.add(top)
    return ours, others


def assert_arrows(folder):
    for path in sorted(folder.glob("*.py")):
        ours, others = imports(path)
        extra = ours - ARROWS[path.stem]
        assert not extra, f"{path.stem} must not import {sorted(extra)}"
        if path.stem in TORCH_ONLY:
            assert others <= STANDARD, path.stem


def test_modules_import_only_what_they_may():
    assert_arrows(PACKAGE)
    assert {path.stem for path in PACKAGE.glob("*.py")} == set(ARROWS)


def test_the_arrow_check_can_fail(tmp_path):
    (tmp_path / "model.py").write_text("from sbnmt_plugin.task import x\n")
    with pytest.raises(AssertionError, match="model must not import"):
        assert_arrows(tmp_path)


def test_the_package_never_prints_and_is_documented():
    for path in PACKAGE.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), path
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                assert getattr(node.func, "id", "") != "print", path
            public = isinstance(node, (ast.ClassDef,)) and node.name[0] != "_"
            if public and node.name != "Meta":
                assert ast.get_docstring(node), f"{path}: {node.name}"


def test_every_script_says_what_it_does():
    import sys

    for path in sorted((ROOT / "scripts").glob("*.py")):
        if path.name in ("texts.py", "published.py"):  # others import them
            continue
        assert path.stat().st_mode & 0o100, f"chmod +x {path}"
        done = subprocess.run(
            [sys.executable, path, "--help"], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("usage: " + path.name)


def test_the_constraints_pin_what_setup_asks_for():
    setup = (ROOT / "setup.py").read_text()
    pinned = Path(ROOT / "constraints.txt").read_text().lower()
    for name in re.findall(r'^        "([\w-]+)[=<>]', setup, re.M):
        assert re.search(rf"^{name.lower()}==", pinned, re.M), name
