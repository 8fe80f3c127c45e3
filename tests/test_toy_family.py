"""A sixth family in a folder outside of the package, through fairseq's commands.

Each command is a process of its own, or a fork of the tests': what the folder registers
must not be there in other tests.
"""

import multiprocessing
import runpy
import sys
from concurrent.futures import ProcessPoolExecutor
from unittest import mock

import pytest
import shell
import steps
from commands import NO_WORKERS, ROOT, captured, lines, run_generate

from sbnmt_plugin.tools.commands import recipe
from sbnmt_plugin.tools.recipes import systems

FAMILY = ROOT / "tests" / "toy_family"
TASK = ["--user-dir", FAMILY, "--task", "sb_translation", *NO_WORKERS, "--cpu"]


def call(name, *words):
    """Run a command in a fork of this process; its output.  Errors pass through."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        asked = pool.submit(shell.called, name, [*map(str, words)], "")
    status, output = asked.result()
    assert status == 0, output
    return output


@pytest.fixture(scope="module")
def model(data, tmp_path_factory):
    """A model of the family that has learned something, trained as a user does it."""
    folder = tmp_path_factory.mktemp("toy")
    words = ["--arch", "toy", "--criterion", "sb_label_smoothed_cross_entropy"]
    words += ["--optimizer", "adam", "--lr", 0.02, "--max-tokens", 500]
    words += ["--max-epoch", 3, "--no-epoch-checkpoints", "--save-dir", folder]
    module = [sys.executable, "-m", "fairseq_cli.train"]
    done = steps.ran([*module, data, *TASK, *words], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder / "checkpoint_last.pt"


def decoded(data, model, *words):
    found = call("fairseq-generate", data, *TASK, "--path", model, *words)
    return lines(found, "H")


def test_it_is_trained_and_searched_with_its_option(data, model):
    """Its model, its search and its search's option: no line of the package knows."""
    words = ["--beam", 4, "--max-len-b", 6]
    free, limited = (
        decoded(data, model, *words, *more) for more in ([], ["--toy-limit", 2])
    )
    assert len(free) == len(limited) > 0
    longest = [
        max(len(rows[0][1].split()) for rows in found.values())
        for found in (free, limited)
    ]
    assert longest[1] <= 2 < longest[0]


def test_its_option_is_refused_where_it_does_not_count(data, model, trained):
    words = ["--toy-limit", 2]
    with pytest.raises(ValueError, match="--toy-limit is for a toy: leave it out"):
        decoded(data, trained, *words)
    train = ["--arch", "toy", "--criterion", "sb_label_smoothed_cross_entropy"]
    train += ["--optimizer", "adam", "--max-tokens", 500]
    with pytest.raises(ValueError, match="--toy-limit is for decoding, not for"):
        call("fairseq-train", data, *TASK, *train, *words, "--max-epoch", 1)


def test_without_its_folder_nobody_knows_it(data, model):
    with pytest.raises(SystemExit):
        run_generate(data, model, "--toy-limit", 2)


def test_its_row_is_a_row_of_a_recipe():
    with mock.patch.dict(systems.SYSTEMS), mock.patch.dict(systems.GROUPS):
        runpy.run_path(str(FAMILY / "rows.py"))
        with captured() as output:
            steps.call(recipe, "toy", "--rows", "toy-gru", "--print")
    script = output.text
    assert script.count("--user-dir tests/toy_family") == 2  # trained and decoded
    assert "--arch toy_transformer_tiny" in script and "--sb-fusion" not in script
    assert "toy-gru" not in systems.SYSTEMS
