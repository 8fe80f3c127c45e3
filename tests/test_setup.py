"""scripts/setup.sh: which interpreter makes the environment, and when it is used again.

Interpreters, pip and uv are stubs on a PATH that holds nothing else of the kind.  They
note their words, and the environments that they create hold stubs again.
"""

import shutil
import subprocess

import pytest
from commands import ROOT

FILES = "setup.py", "constraints.txt", "requirements.lock", "scripts/setup.sh"
TOOLS = "bash", "sh", "cat", "cksum", "dirname", "sed", "grep", "mkdir", "cp", "chmod"
# a Python of one version, which can create an environment with itself and its pip
PYTHON = """#!/bin/sh
echo "${0##*/} $*" >>NOTES
create() {
  mkdir -p "$1/bin"
  cp 'FOLDER/MADE' "$1/bin/python"
  cp 'FOLDER/MADE' "$1/bin/pip"
}
case "$*" in
  *version_info*) echo VERSION ;;
  --version) echo Python VERSION.7 ;;
  *"import torch") exit 1 ;;
  "-m venv "*) create "$3" ;;
  "venv --python "*) create "$5" ;;
esac
"""
COMMANDS = (
    "sudo apt-get install pipx && pipx run uv venv --python 3.12 --seed .venv",
    "conda create -n sbnmt python=3.12 && conda activate sbnmt && scripts/setup.sh",
    "curl -LsSf https://astral.sh/uv/install.sh | sh && ",
)


class Machine:
    """A clone and a PATH.  ``notes``: the command lines that the last run started."""

    def __init__(self, folder):
        self.clone = folder / "clone"
        for name in FILES:
            (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.clone / name)
        self.path = folder / "path"
        self.path.mkdir()
        for name in TOOLS:
            (self.path / name).symlink_to(shutil.which(name))
        self.notes = []
        self.noted = folder / "notes"
        self.stamp = self.clone / ".venv" / ".installed"

    def add(self, name, version, makes=None, folder=None):
        """Install an interpreter, or a uv which creates environments with one."""
        stub = PYTHON.replace("MADE", makes or name).replace("FOLDER", str(self.path))
        stub = stub.replace("NOTES", str(self.noted)).replace("VERSION", version)
        path = (folder or self.path) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(stub)
        path.chmod(0o755)

    def broken(self, name):
        """Install a name which starts nothing, as pyenv does for other versions."""
        (self.path / name).write_text("#!/bin/sh\nexit 127\n")
        (self.path / name).chmod(0o755)

    def run(self, **variables):
        self.noted.write_text("")
        done = subprocess.run(
            ["scripts/setup.sh"],
            cwd=self.clone,
            env={"PATH": str(self.path), **variables},
            capture_output=True,
            text=True,
        )
        lines = self.noted.read_text().splitlines()
        asked = "version_info", " --version"
        self.notes = [x for x in lines if not any(map(x.__contains__, asked))]
        return done

    def created(self):
        """Return the commands of the last run that created an environment."""
        return [x for x in self.notes if " venv " in x or x.startswith("uv ")]

    def sums(self, *names):
        """Return checksum and size of some files, as scripts/setup.sh has them."""
        words = f"cat {' '.join(names)} | cksum"
        done = subprocess.run(
            words, shell=True, cwd=self.clone, capture_output=True, text=True
        )
        return done.stdout.strip()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ({"python3": "3.11"}, "python3"),
        ({"python3": "3.10", "python3.12": "3.12", "uv": "3.12"}, "python3.12"),
        ({"python3": "3.13", "python3.12": "3.12", "python3.11": "3.11"}, "python3.12"),
        ({"python3": "3.14", "python3.11": "3.11", "uv": "3.12"}, "python3.11"),
        ({"python3": "3.13", "python3.12": None, "python3.11": "3.11"}, "python3.11"),
        ({"python3.12": "3.12"}, "python3.12"),
        ({"python3": "3.13", "uv": "3.12"}, "uv"),
        ({"uv": "3.12"}, "uv"),
    ],
    ids=str,
)
def test_the_environment_is_made_with_the_first_python_that_fits(
    machine, there, chosen
):
    for name, version in there.items():
        if version is None:
            machine.broken(name)
        else:
            machine.add(name, version)
    done = machine.run()
    assert done.returncode == 0, done.stderr
    words = "venv --python 3.12 --seed .venv" if chosen == "uv" else "-m venv .venv"
    assert machine.created() == [f"{chosen} {words}"]
    assert f"Creating .venv with Python {there[chosen]}" in done.stdout
    assert "Installing PyTorch 2." in done.stdout
    installs = [x for x in machine.notes if " -m pip " in x]
    assert len(installs) == 2
    assert all(x.startswith("python -m pip ") for x in installs)  # the environment's
    assert installs[1].endswith(
        " -e .[test,report,phrases,benchmark,align,cluster,sentencepiece]"
    )
    # once there it is used again, whatever else is on PATH
    assert ".venv is complete" in machine.run().stdout
    assert machine.notes == []


def test_what_torch_is_for_is_said(machine):
    machine.add("python3", "3.12")
    machine.add("nvidia-smi", "")
    done = machine.run()
    assert "for GPUs" in done.stdout
    assert not [x for x in machine.notes if "+cpu" in x]
    (machine.path / "nvidia-smi").unlink()
    machine.stamp.unlink()
    assert "for CPUs" in machine.run().stdout
    assert [x for x in machine.notes if "+cpu" in x]


@pytest.mark.parametrize(
    "there", [{}, {"python3": "3.13"}, {"python3.12": None}, {"uv": None}], ids=str
)
def test_without_any_the_commands_that_help_are_told(machine, there):
    for name, version in there.items():
        if version:
            machine.add(name, version)
        else:
            machine.broken(name)
    done = machine.run()
    assert done.returncode == 1
    assert machine.notes == []
    assert "python3.12 python3.11 is one of Python 3.12 3.11" in done.stderr
    for command in COMMANDS:
        assert command in done.stderr


def test_a_python_that_is_named_is_the_only_one_asked(machine):
    machine.add("python3", "3.12")
    machine.add("python3.13", "3.13")
    machine.add("mine", "3.11")
    done = machine.run(PYTHON="python3.13")
    assert done.returncode == 1
    assert "PYTHON must be one of Python 3.12 3.11, " in done.stderr
    assert "but python3.13 is Python 3.13.7." in done.stderr
    assert "PYTHON=none was not found." in machine.run(PYTHON="none").stderr
    assert machine.run(PYTHON="mine").returncode == 0
    assert machine.created() == ["mine -m venv .venv"]


def test_an_environment_that_was_cut_short_is_completed(machine):
    machine.add("python3", "3.12")
    bin = machine.clone / ".venv" / "bin"
    machine.add("python", "3.12", folder=bin)  # without pip: Debian's has no ensurepip
    assert machine.run().returncode == 0
    assert machine.created() == ["python3 -m venv .venv"]
    machine.stamp.unlink()  # installed in part
    assert machine.run().returncode == 0
    assert machine.created() == []
    assert [x for x in machine.notes if "install -c constraints.txt" in x]


def test_an_environment_of_another_python_is_not_used(machine):
    machine.add("python3", "3.12")
    bin = machine.clone / ".venv" / "bin"
    for name in ("python", "pip"):
        machine.add(name, "3.13", folder=bin)
    done = machine.run()
    assert done.returncode == 1
    assert "but has Python 3.13.7.  Remove it and run" in done.stderr
    assert machine.notes == []


def test_locked_files_are_those_of_one_python(machine):
    machine.add("python3", "3.12")
    machine.add("python3.11", "3.11")
    done = machine.run(LOCKED="1")
    assert done.returncode == 0, done.stderr
    assert machine.created() == ["python3.11 -m venv .venv"]
    installs = [x for x in machine.notes if " -m pip " in x]
    assert installs and not [x for x in installs if "constraints.txt" in x]


def test_locked_versions_are_not_those_that_happen_to_be_there(machine):
    plain = machine.sums("setup.py", "constraints.txt")
    machine.stamp.parent.mkdir()
    machine.stamp.write_text(plain)
    assert ".venv is complete" in machine.run(PYTHON="none").stdout
    assert "none was not found" in machine.run(PYTHON="none", LOCKED="1").stderr
    machine.stamp.write_text(f"{plain}, locked {machine.sums('requirements.lock')}")
    for locked in "", "1":
        assert ".venv is complete" in machine.run(PYTHON="none", LOCKED=locked).stdout
    with open(machine.clone / "requirements.lock", "a", encoding="utf-8") as file:
        file.write("# newer\n")
    assert "none was not found" in machine.run(PYTHON="none", LOCKED="1").stderr
