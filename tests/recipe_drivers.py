"""Steps of the toy recipe: noted by a runner that runs none, or one row trained."""

from unittest import mock

import in_process

from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.recipe_file import load_recipe
from sbnmt_plugin.tools.recipes.row_steps import RowSteps
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.runner import Runner


class Noted(Runner):
    """A runner that notes the steps of a real folder and runs none.

    Attributes:
        begun: every step that was asked for.
    """

    def __init__(self, work):
        super().__init__(work, {})
        self.begun = []

    def run(self, step):
        self.begun.append(step)

    @property
    def names(self):
        return [step.name for step in self.begun]


def steps_in(folder, work, **changes):
    """Write the toy recipe, with changes; return the steps of its rows."""
    settings = load_recipe(in_process.write_recipe(folder, **changes), False)
    return RowSteps(Run(settings, work, folder))


def noted(steps, *targets, made=()):
    """Return a runner that has noted what some steps need.

    Args:
        made: steps that are taken as done.
    """
    runner = Noted(steps.work)
    runner.made.update(made)
    for target in targets:
        runner.make(target)
    return runner


def train(folder, work):
    """Train the row sb-staged, or continue its training; return its model's path."""
    steps = RowSteps(Run(load_recipe(folder, False), work, folder))
    with mock.patch.object(Runner, "run", in_process.run):
        model = steps.model(Row("sb-staged"))
        Runner(work, {}).make(model)
    return model.makes
