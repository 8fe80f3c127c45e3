"""The code map of docs/code-map.md, from the first line of every module's docstring.

python tests/code_map.py        writes it anew
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "code-map.md"
INTRODUCTION = """\
# Code map

The first line of every module. Imports go one way (`tests/test_house.py`): no module
imports one of a later room, and no library imports a command. `python
tests/code_map.py` writes this page.
"""


def purpose(path):
    """The first sentence of a module, a folder's from its ``__init__``."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = text.split("\n\n")[0].replace("\n", " ")
    return re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", first).replace("``", "`").rstrip(".:")


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


def page(package):
    """The whole page."""
    return "\n".join([INTRODUCTION, *lines_of(package, 0)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(ROOT / "sbnmt_plugin"), encoding="utf-8")
