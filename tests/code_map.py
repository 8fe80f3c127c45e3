"""The page docs/code-map.md: every module, and every equation of the papers.

python tests/code_map.py        writes it anew
"""

import ast
import functools
import importlib
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sbnmt_plugin"
PAGE = ROOT / "docs" / "code-map.md"
EQUATIONS = ROOT / "tests" / "equations.yaml"
INTRODUCTION = """\
# Code map

`python tests/code_map.py` writes this page.
[Internals](internals.md) explains how the folders depend on each other.

## Modules

The list has every module of `sbnmt_plugin/` with the first sentence of its docstring.
"""
TABLES = """\
## Equations, functions, tests

The tables say which function computes a formula of a paper, and which test holds it.
`tests/equations.yaml` is their source.
"""


def purpose(path):
    """The first sentence of a module, a folder's from its ``__init__``."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = text.split("\n\n")[0].replace("\n", " ")
    text = re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", first).replace("``", "`")
    return text.rstrip(".:") + "."


def lines_of(folder, depth):
    """A line a module below a folder, folders after the modules beside them."""
    for path in sorted(folder.glob("*.py")):
        if path.name != "__init__.py":
            yield f"{'  ' * depth}* `{path.name}` {purpose(path)}"
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        if (inner / "__init__.py").exists():
            about = purpose(inner / "__init__.py")
            yield f"{'  ' * depth}* **{inner.name}/** {about}"
            yield from lines_of(inner, depth + 1)


def modules(package):
    """The part of the page that lists the modules."""
    return "\n".join([INTRODUCTION, *lines_of(package, 0)]) + "\n"


def function_link(name):
    """Link a dotted name below the package to the file of its module.

    Raises:
        AttributeError, ModuleNotFoundError: nothing has this name.
    """
    parts = name.split(".")
    path = PACKAGE
    while parts and (
        (path / parts[0]).is_dir() or (path / parts[0]).with_suffix(".py").is_file()
    ):
        path /= parts.pop(0)
    module = ".".join([PACKAGE.name, *path.relative_to(PACKAGE).parts])
    found = importlib.import_module(module)
    for part in parts:
        found = getattr(found, part)
    file = path.with_suffix(".py").relative_to(ROOT)
    return f"[`{'.'.join(parts) or path.name}`](../{file})"


@functools.cache
def names_of_tests(file):
    """Names of the tests of a file in tests/."""
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def link_to_test(node):
    """Link a test, as in ``test_x.py::test_y``, to its file.

    Raises:
        LookupError: the file has no such test.
    """
    file, _, name = node.partition("::")
    if name not in names_of_tests(file):
        raise LookupError(f"tests/{file} has no test {name}")
    return f"[`{name}`](../tests/{file})"


def equations(systems):
    """The part of the page that has a table for each system.

    Args:
        systems: its rows, by the system's name: see equations.yaml.
    """
    lines = [TABLES]
    for system, rows in systems.items():
        lines += [f"### {system}", "", "| formula | function | test |"]
        lines += ["| --- | --- | --- |"]
        for row in rows:
            what = row["what"].replace("|", "\\|")
            functions = ", ".join(map(function_link, row["functions"]))
            tests = ", ".join(map(link_to_test, row["tests"]))
            lines.append(f"| {what} | {functions} | {tests} |")
        lines.append("")
    return "\n".join(lines)


def page():
    """The whole page."""
    systems = yaml.safe_load(EQUATIONS.read_text(encoding="utf-8"))
    return f"{modules(PACKAGE)}\n{equations(systems)}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
