"""What the README and the pages promise: names, options, commands, files."""

import dataclasses
import importlib
import re
import shutil
import subprocess

import pytest
import yaml
from commands import NO_WORKERS, ROOT, lines, write_texts
from shell import run_script

from sbnmt_plugin.config import SBTranslationConfig
from sbnmt_plugin.network.model import SBTransformerConfig
from sbnmt_plugin.steps import STEPS

PACKAGE = ROOT / "sbnmt_plugin"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("examples/*/README.md")),
]
LONGEST_README = 250


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def rows_of(text):
    """Cells of the first table of a text, without its head."""
    (table, *_) = re.findall(r"(?:^\|.*\n)+", text, re.M)
    rows = [row.strip().strip("|") for row in table.splitlines()[2:]]
    # as in {a|b}: a stroke without blanks separates no cells
    return [[cell.strip() for cell in row.split(" | ")] for row in rows]


def section_of(heading):
    return text_of("README.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]


def code_of(text):
    """Fenced and indented code of a Markdown text."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    indented = re.findall(r"(?:(?<=\n\n)|\A)((?:    .*\n)+)", text)
    return [*fenced, *indented]


# equations


def resolved(name):
    """What a dotted name below the package stands for.

    Raises:
        AttributeError, ModuleNotFoundError: nothing.
    """
    parts = name.split(".")
    path = PACKAGE
    while parts and (
        (path / parts[0]).is_dir() or (path / parts[0]).with_suffix(".py").is_file()
    ):
        path /= parts.pop(0)
    module = ".".join(["sbnmt_plugin", *path.relative_to(PACKAGE).parts])
    found = importlib.import_module(module)
    for part in parts:
        found = getattr(found, part)
    return found


def test_every_equation_has_a_function_and_a_test():
    rows = rows_of(text_of("docs/equations.md"))
    assert len(rows) >= 10
    tests = "".join(p.read_text(encoding="utf-8") for p in ROOT.glob("tests/test_*.py"))
    for _, functions, names in rows:
        for name in re.findall(r"`([\w.]+)`", functions):
            assert resolved(name), name
        for name in re.findall(r"`(\w+)`", names):
            assert f"def {name}(" in tests, name


@pytest.mark.parametrize("name", ["network.attention.nothing", "network.nothing.x"])
def test_the_check_of_equations_can_fail(name):
    with pytest.raises(AttributeError):
        resolved(name)


# options


def our_options():
    """Flag, field: all options of ours, as fairseq's parser is made from them."""
    for config in (SBTransformerConfig, SBTranslationConfig):
        for option in dataclasses.fields(config):
            if option.name.startswith("sb_") and "help" in option.metadata:
                yield "--" + option.name.replace("_", "-"), option


def test_the_table_of_options_is_what_the_parsers_know():
    shown = {}
    for name, default, _ in rows_of(text_of("docs/options.md")):
        flag, _, values = name.strip("`").partition(" ")
        shown[flag] = values, default
    known = dict(our_options())
    assert len(known) >= 10
    assert list(shown) == sorted(shown, key=list(shown).index)
    assert set(shown) == set(known)
    for flag, option in known.items():
        values, default = shown[flag]
        if values.startswith("{"):
            choices = [str(member) for member in option.type]
            assert sorted(values.strip("{}").split(",")) == sorted(choices), flag
        if option.default is False:
            assert default == "off", flag
        elif option.default is not None:
            assert default == str(option.default), flag


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_flag_of_ours_that_a_page_names_exists(page):
    known = dict(our_options())
    text = page.read_text(encoding="utf-8")
    for flag in re.findall(r"--sb-[a-z0-9-]*[a-z0-9]", text):
        assert flag in known, flag


# steps


def unknown_steps(text):
    """Steps of `sbnmt` that a text names and that do not exist."""
    spans = [*code_of(text), *re.findall(r"`([^`]+)`", text)]
    named = re.findall(r"(?:^|[\s;&|(])sbnmt +([a-z][\w-]*)", "\n".join(spans), re.M)
    return sorted(set(named) - set(STEPS))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_step_that_a_page_names_exists(page):
    assert not unknown_steps(page.read_text(encoding="utf-8"))


def test_the_check_of_steps_can_fail():
    text = "`sbnmt score` and\n\n    x && sbnmt tokenize a b\n\n`CUDA=1 sbnmt trains`"
    assert unknown_steps(text) == ["tokenize", "trains"]


def test_the_readme_lists_all_steps_in_order_of_use():
    rows = [(name.strip("`"), text) for name, text in rows_of(section_of("Steps"))]
    assert rows == [(name, text) for name, (_, text) in STEPS.items()]


# code map


def tree_of(text):
    """Paths that an indented tree shows: a folder's line ends its name with a slash."""
    folders, paths = [], []
    for line in text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        words = line.split()
        if words and words[0].endswith("/"):
            folders[depth:] = [words[0].rstrip("/")]
            continue
        for word in words:
            if not re.fullmatch(r"\w+\.(py|sh)", word):
                break
            paths.append("/".join([*folders[:depth], word]))
    return paths


def test_the_code_map_shows_every_module_and_script_in_its_folder():
    (tree,) = code_of(text_of("docs/code-map.md"))
    shown = tree_of(tree)
    there = [
        path.relative_to(ROOT).as_posix()
        for folder in ("sbnmt_plugin", "scripts")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".sh")
        and (path.name != "__init__.py" or path.parent == PACKAGE)
    ]
    assert len(shown) == len(set(shown))
    assert sorted(shown) == sorted(there)


def test_a_tree_is_read_as_folders_and_files():
    tree = "a/\n  x.py   one y.py\n  b/   room\n    u.py v.py\n  w.sh\nc/\n  x.py"
    wanted = ["a/x.py", "a/b/u.py", "a/b/v.py", "a/w.sh", "c/x.py"]
    assert tree_of(tree) == wanted


# files, links, commands


def anchors(path):
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file_and_heading_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"(?:scripts|examples|tests|docs)/[\w/.-]+\.\w+", text):
        if "/NAME/" not in name:  # a recipe of the reader's
            assert (ROOT / name).exists(), name
    for path, anchor in re.findall(r"\]\((?!http)([^)#]*)(?:#([^)]*))?\)", text):
        target = (page.parent / path) if path else page
        assert target.exists(), path
        if anchor:
            assert anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_test_and_constant_that_a_page_names_exists(page):
    """As `search/beam.py`, of the package; `test_so`; `SYSTEMS`."""
    tests, package = (
        "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
        for folder in (ROOT / "tests", PACKAGE)
    )
    for name in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")):
        if re.fullmatch(r"[\w/]+/\w+\.py", name) and "NAME" not in name:
            assert (ROOT / name).exists() or (PACKAGE / name).exists(), name
        if re.fullmatch(r"test_\w+", name):
            assert f"def {name}(" in tests, name
        if re.fullmatch(r"[A-Z]{3,}_?[A-Z]*", name) and page.name == "CONTRIBUTING.md":
            assert re.search(rf"^{name}\b", package + tests, re.M), name


def test_the_readmes_two_commands_are_what_ci_runs():
    section = section_of("Two commands")
    commands = re.findall(r"^    (scripts/\w+\.sh)", section, re.M)
    assert commands[:2] == ["scripts/quickstart.sh", "scripts/test.sh"]
    ci = text_of(".ci/run")
    for command in commands[:2]:
        assert re.search(rf"^{command}", ci, re.M)
        assert (ROOT / command).stat().st_mode & 0o100


def test_the_readme_is_short_and_its_commands_are_whole():
    readme = text_of("README.md")
    assert len(readme.splitlines()) <= LONGEST_README
    blocks = code_of(readme)
    assert len(blocks) >= 5
    for block in blocks:
        assert "…" not in block, block
        assert "..." not in block, block


def test_the_readmes_speed_is_that_of_the_benchmarks_page():
    page = text_of("examples/benchmark/README.md").split("\n## ")[1]
    measured = {(row[0], row[1]): row for row in rows_of(page) if len(row) > 8}
    rows = rows_of(section_of("Speed"))
    assert len(rows) >= 4
    for name, *values in rows:
        system, numbers = name.replace(" (`--sb-bf16`)", "").split(", ")
        assert set(values) <= set(measured[system, numbers]), name


def test_the_readmes_toy_is_that_of_its_page():
    page = text_of("examples/toy/README.md").split("toy output -->")[1]
    scores = re.findall(r"\b\d\d\.\d\d\b", section_of("Two commands"))
    assert len(scores) == 3
    for score in scores:
        assert f" {score} |" in page, score


def test_code_is_found_in_a_page():
    text = "a\n\n    indented …\n    two\n\nb\n\n```bash\nfenced\n```\n| `…` |\n"
    assert code_of(text) == ["fenced\n", "    indented …\n    two\n"]


def test_github_runs_the_readmes_second_command():
    workflow = yaml.safe_load(text_of(".github/workflows/ci.yml"))
    (job,) = workflow["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [
        "scripts/test.sh"
    ]


@pytest.fixture
def tests_of_nothing(tmp_path):
    """scripts/test.sh where every tool is a stub, and its result with a PATH."""
    clone = tmp_path / "clone"
    for name in ("setup.py", "constraints.txt", "scripts/setup.sh", "scripts/test.sh"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    tools = clone / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name in ("ruff", "shellcheck", "mypy", "python"):
        status = '"${3:-0}"' if name == "python" else "0"  # python -m pytest STATUS
        (tools / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tools / name).chmod(0o755)
    stamp = "cat setup.py constraints.txt | cksum"
    done = subprocess.run(stamp, shell=True, cwd=clone, capture_output=True, text=True)
    (clone / ".venv" / ".installed").write_text(done.stdout.strip())
    path = tmp_path / "path"
    path.mkdir()
    for name in ("bash", "cat", "cksum", "dirname"):
        (path / name).symlink_to(shutil.which(name))

    def run(*words, browser):
        for name in ("chromium", "chromedriver"):
            if browser:
                (path / name).symlink_to(shutil.which("true"))
            else:
                (path / name).unlink(missing_ok=True)
        return subprocess.run(
            [clone / "scripts" / "test.sh", *words],
            env={"PATH": str(path)},
            capture_output=True,
            text=True,
        )

    return run


def test_the_tests_end_with_what_they_lacked(tests_of_nothing):
    """Without chromium the last line says so, and how to install it."""
    done = tests_of_nothing(browser=False)
    assert done.returncode == 0, done.stderr
    last = done.stdout.splitlines()[-1]
    assert "the report's page were skipped" in last
    assert last.endswith("sudo apt-get install chromium chromium-driver")
    done = tests_of_nothing(browser=True)
    assert done.stdout.splitlines()[-1] == "== pytest"


def test_the_note_does_not_hide_that_tests_failed(tests_of_nothing):
    assert tests_of_nothing("3", browser=False).returncode == 3
    assert tests_of_nothing("3", browser=True).returncode == 3


# the blocks of the README, run


def smaller(name, words):
    """Options that make a command of the README quick."""
    if name == "fairseq-train":
        sizes = ["--encoder-layers", "1", "--decoder-layers", "1", "--num-workers", "0"]
        for part in ("encoder", "decoder"):
            sizes += [f"--{part}-embed-dim", "16", f"--{part}-ffn-embed-dim", "16"]
        return [*words, *sizes, "--cpu", "--max-update", "4", "--warmup-updates", "2"]
    if name in ("fairseq-generate", "fairseq-interactive"):
        return [*words, "--cpu", *NO_WORKERS]
    if words[0] == "translate":
        return [*words, "--cpu"]
    return words


def test_the_readmes_blocks_run_from_raw_text_to_bleu_and_on(tmp_path, monkeypatch):
    """All commands as they stand, with a few options after them."""
    raw = write_texts(
        tmp_path / "raw", {"train": 60, "valid": 5, "test": 9}, opposite=False
    )
    (train,) = code_of(section_of("Train: from raw text to BLEU"))
    interactive, python = code_of(section_of("Translate"))
    names = re.search(r"^RAW=raw +# (.*), a sentence a line$", train, re.M)[1].split()
    assert all((raw / name).exists() for name in names)
    assert len(names) == 6

    source = (raw / "test.en").read_text()
    status, output = run_script(train + interactive, tmp_path, smaller, typed=source)
    assert status == 0, output
    assert re.search(r"^BLEU = \d+\.\d\d   nrefs:1", output, re.M)
    assert re.search(r"^tokenised BLEU = ", output, re.M)
    assert len(lines(output, "D")) == 9
    # what the test set was translated to, sentence by sentence
    tokens = (tmp_path / "work/en-de/test.tok").read_text().splitlines()
    typed = [lines(output, "H")[i][0][-1].replace("@@ ", "") for i in range(9)]
    assert typed == tokens

    monkeypatch.chdir(tmp_path)
    names = {}
    exec(python, names)
    assert names["model"].task.target_dictionary.index("<l2r>") > 3
    assert names["model"].tokenizer.cfg["target_lang"] == "de"


def test_a_block_that_fails_is_noticed(tmp_path):
    block = "sbnmt score --hypothesis none --reference none\nsbnmt --help\n"
    status, output = run_script(block, tmp_path, lambda name, words: words)
    assert status == 2
    assert "none" in output
    assert "usage" not in output
