"""Recipe drivers: one whose commands are noted, one that trains one row."""

from unittest import mock

import in_process
from commands import load

from sbnmt_plugin.tools.recipes import driver, runner
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe


class Noted(runner.Runner):
    """A runner that notes the steps of a real folder and runs none.

    Attributes:
        begun: (name, GPUs) of every step that was asked for.
    """

    def __init__(self, work):
        super().__init__(work, {})
        self.begun = []

    def run(self, step):
        self.begun.append((step.name, step.gpus))


def recipe_in(folder, work, **changes):
    """Make a driver of the toy recipe, whose commands are noted, not run."""
    settings = load_recipe(in_process.write_recipe(folder, **changes), False)
    return driver.Recipe(Noted(work), folder, settings)


def train(folder, work):
    """Train the row sb-staged, or continue its training; return its model's state."""
    bench, settings = runner.Runner(work, {}), load_recipe(folder, False)
    with mock.patch.object(runner.Runner, "run", in_process.run):
        path = driver.Recipe(bench, folder, settings).model("sb-staged")
    return load(path)["model"]
