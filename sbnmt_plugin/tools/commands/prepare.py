"""Turn a recipe's raw text into tokenised text: run its prepare.py.

    sbnmt prepare toy --output text
    sbnmt prepare multi30k --data RAW --output text [options of its prepare.py]

A recipe is a name, or a folder that holds recipe.yaml and prepare.py.
"""

from __future__ import annotations

import runpy
import sys

from sbnmt_plugin.tools import command
from sbnmt_plugin.tools.recipes.recipe_file import find_recipe


def main() -> None:
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        usage = "sbnmt prepare RECIPE [options of its prepare.py]"
        print(command.parser(__doc__, usage=usage).format_help())
        return
    script = find_recipe(words[0]) / "prepare.py"
    sys.argv = [f"{sys.argv[0]} {words[0]}", *words[1:]]
    runpy.run_path(str(script), run_name="__main__")
