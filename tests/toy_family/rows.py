"""The toy family's row in the tables of recipes."""

from pathlib import Path

from sbnmt_plugin.tools.recipes.systems import BOTH, System, register_rows
from sbnmt_plugin.tools.recipes.systems.abd import NO_SB_OPTIONS

FOLDER = Path(__file__).parent
GRU = System("Toy", "one", BOTH, "toy_", NO_SB_OPTIONS, user_dir=FOLDER)
register_rows("toy-family", {"toy-gru": GRU})
