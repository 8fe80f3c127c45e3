"""The package as pip installs it: a wheel of the sdist, in an environment of its own.

The clone's scripts run beside it, and its own command where there is no clone.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import in_process
import pytest
from commands import ROOT, lines, run_generate
from steps import pseudo_command, put

import sbnmt_plugin
from sbnmt_plugin.tools import machine
from sbnmt_plugin.tools.command_names import STEPS
from sbnmt_plugin.tools.text import read_lines

# what a checkout has; no tests, no git
SOURCES = ("sbnmt_plugin", "examples", "setup.py", "pyproject.toml", "README.md")
BUILD = "from setuptools.build_meta import build_sdist; build_sdist('dist')"


def run(*command, folder, status=0):
    """A process that knows of no checkout, in a folder that is none."""
    own = {"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**inherited, **own},
    )
    assert done.returncode == status, done.stdout[-2000:] + done.stderr[-3000:]
    return done


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """As ``python -m build`` makes it: of the sdist alone."""
    folder = tmp_path_factory.mktemp("build")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    run(sys.executable, "-c", BUILD, folder=folder)
    (sdist,) = (folder / "dist").iterdir()
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    run(*pip, "--no-build-isolation", sdist, folder=folder)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="session")
def environment(wheel, tmp_path_factory):
    """Its folder of commands.  Torch and fairseq are those of the tests."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    run(*pip, "--no-deps", "--no-index", wheel, folder=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    others = [p for p in sys.path if Path(p).name in ("site-packages", "dist-packages")]
    # paths of a .pth file have their .pth files not read: no editable installation
    put(site / "dependencies.pth", *others)
    return folder / "bin"


def test_the_wheel_holds_what_the_steps_read(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {str(path.relative_to(ROOT)) for path in ROOT.glob("sbnmt_plugin/**/*.py")}
    for suffix in ("css", "html", "js", "mplstyle"):
        found = ROOT.glob(f"sbnmt_plugin/tools/report/*.{suffix}")
        wanted |= {str(path.relative_to(ROOT)) for path in found}
    for recipe in ROOT.glob("examples/*/recipe.yaml"):
        for name in ("recipe.yaml", "prepare.py"):
            wanted.add(f"sbnmt_plugin/examples/{recipe.parent.name}/{name}")
    assert len(wanted) > 100
    assert wanted <= names
    assert not [n for n in names if re.search(r"^(tests|scripts|examples)/|\.png$", n)]
    assert sbnmt_plugin.__version__ == wheel.name.split("-")[1]


def test_the_command_says_what_there_is(environment, tmp_path):
    said = run(environment / "sbnmt", "--help", folder=tmp_path).stdout
    assert re.findall(r"^  ([a-z][\w-]*)  ", said, re.M) == list(STEPS)
    (plugin,) = re.findall(r"--user-dir (\S+)", said)
    assert Path(plugin).parent.name == "site-packages"
    assert environment.parent in Path(plugin).parents
    python = environment / "python"
    module = run(python, "-m", "sbnmt_plugin", "--help", folder=tmp_path)
    assert module.stdout == said


def test_the_installed_package_works_as_user_dir(environment, data, trained, tmp_path):
    """fairseq's own command, as it imports any --user-dir."""
    python = environment / "python"
    (folder,) = environment.parent.glob("lib/python*/site-packages/sbnmt_plugin")
    words = [data, "--user-dir", folder, "--task", "sb_translation", "--cpu"]
    words += ["--beam", 4, "--path", trained]
    module = [python, "-m", "fairseq_cli.generate"]
    said = run(*module, *words, folder=tmp_path).stdout
    assert lines(said, "H") == lines(run_generate(data, trained), "H")


def test_a_clone_runs_beside_the_installed_package(
    environment, data, teacher, tmp_path
):
    """The clone's package is used then, by each process: two are not one --user-dir."""
    source = put(tmp_path / "in.en", *["w1 w2", "w3"])
    module = [environment / "python", "-m", "sbnmt_plugin", "pseudo"]
    for name, command in (
        ("clone", ["env", f"PYTHONPATH={ROOT}", *module]),
        ("installed", [environment / "sbnmt", "pseudo"]),
    ):
        words = pseudo_command(data, teacher, source, tmp_path / name)
        run(*command, *words, folder=tmp_path)
    assert len(read_lines(tmp_path / "clone")) == 2
    assert read_lines(tmp_path / "clone") == read_lines(tmp_path / "installed")


def test_recipes_run_in_a_clone_and_outside_any(environment, tmp_path, monkeypatch):
    """Begun by the clone, continued by the command: a work folder is both's.

    The toy recipe by its name, with all its data: its text alone.
    """
    folder = in_process.write_recipe(tmp_path / "small")
    words = [folder, "--work", tmp_path / "work", "--rows"]
    in_process.make(*words, "teacher-l2r")
    sbnmt = environment / "sbnmt"
    said = run(sbnmt, "recipe", *words, "teacher-both", folder=tmp_path).stdout
    assert "| Transformer, L2R " in said
    (plugin,) = set(re.findall(r"--user-dir (\S+)", said))
    assert (tmp_path / plugin / "task.py").is_file()  # what is shown can be typed
    rows = json.loads((tmp_path / "work" / "table.json").read_text())["rows"]
    assert [row["name"] for row in rows] == ["teacher-l2r", "teacher-both"]
    assert rows[0]["commits"] == [machine.commit()]
    assert rows[1]["commits"] == [f"v{sbnmt_plugin.__version__}"]
    run(sbnmt, "prepare", "toy", "--output", tmp_path / "text", folder=tmp_path)
    assert len(read_lines(tmp_path / "text" / "train.src")) == 6000
