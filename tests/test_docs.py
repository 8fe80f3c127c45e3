"""What the README and the pages promise: names, options, commands, files."""

import argparse
import functools
import re

import code_map
import options_page
import pytest
import readme_tables
import yaml
from commands import RETIRED, ROOT
from fairseq import options
from fairseq.data.encoders.moses_tokenizer import MosesTokenizerConfig
from fairseq.data.encoders.subword_nmt_bpe import SubwordNMTBPEConfig
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.optim.adam import FairseqAdamConfig
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import (
    InverseSquareRootLRScheduleConfig,
)
from fairseq.optim.lr_scheduler.polynomial_decay_schedule import (
    PolynomialDecayLRScheduleConfig,
)
from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import (
    ReduceLROnPlateauLRScheduleConfig,
)
from pages import code_of, rows_of, section_of, text_of
from shell import called

from sbnmt_plugin.config import task_config
from sbnmt_plugin.families.ba.model import RNNSearchModel
from sbnmt_plugin.families.sb.model import SBTransformerModel
from sbnmt_plugin.families.two_way.model import TwoWayModel
from sbnmt_plugin.tools.command_names import GROUPS, STEPS
from sbnmt_plugin.tools.command_names import RETIRED as RETIRED_STEPS
from sbnmt_plugin.tools.recipes.systems.retired import RETIRED_ROWS
from sbnmt_plugin.training.criterion import SBCriterionConfig

PACKAGE = ROOT / "sbnmt_plugin"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("examples/*/*.md")),
]
GENERATED = {"RESULTS.md", "code-map.md"}  # whole pages, whose length nobody chooses
WRITTEN = [page for page in PAGES if page.name not in GENERATED]


def name_of(page):
    """Name a page as the budgets do."""
    return str(page.relative_to(ROOT))


# options


def our_options():
    """Flag, field: all options of ours, as fairseq's parser is made from them."""
    models = [config for config, _ in options_page.MODELS.values() if config]
    for config in (*models, task_config()):
        for field in options_page.options_of(config):
            yield options_page.flag_of(field), field


def assert_can_be_printed(texts):
    """fairseq's --help prints them on any terminal: one of Latin-1 has no λ."""
    lost = [text for text in texts if text.encode("latin-1", "ignore") != text.encode()]
    assert not lost, f"not on every terminal: {lost}"


def test_the_help_of_options_can_be_printed_on_every_terminal():
    assert_can_be_printed([x.metadata["help"] for _, x in our_options()])
    with pytest.raises(AssertionError, match="not on every terminal"):
        assert_can_be_printed(["weight", "λ, its weight"])


def test_the_page_of_options_is_that_of_the_parsers():
    page = text_of("docs/options.md")
    assert page == options_page.page(), "write it anew: python tests/options_page.py"
    shown = re.findall(r"^\* `(--[\w-]+)", page, re.M)
    known = dict(our_options())
    assert len(known) > 25
    assert {x for x in shown if x in known} == set(known)
    assert len(shown) == len(set(shown))


def unknown_flags_of_ours(page):
    """Return the flags of ours that a page names and that do not exist.

    Pages of results and the changelog may name those that are gone.
    """
    known = set(dict(our_options()))
    path = page.relative_to(ROOT)
    if path.parts[0] == "examples" or path.name == "CHANGELOG.md":
        known |= set(RETIRED)
    flag = r"--(?:sb|ba|two-way|enat|nat)-[a-z0-9-]*[a-z0-9]"
    return set(re.findall(flag, page.read_text(encoding="utf-8"))) - known


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_flag_of_ours_that_a_page_names_exists(page):
    assert not unknown_flags_of_ours(page)


def test_the_check_of_flags_can_fail(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    gone = RETIRED[0]
    for name in "docs/options.md", "CHANGELOG.md":
        page = tmp_path / name
        page.parent.mkdir(exist_ok=True)
        page.write_text(f"`--sb-reader`, `--sb-readers`, `{gone}`")
        guide = {gone} if name == "docs/options.md" else set()
        assert unknown_flags_of_ours(page) == {"--sb-readers"} | guide
    assert not set(RETIRED) & set(dict(our_options()))


# steps


def unknown_steps(text):
    """Steps of `sbnmt` that a text names and that do not exist."""
    spans = [*code_of(text), *re.findall(r"`([^`]+)`", text)]
    named = re.findall(r"(?:^|[\s;&|(])sbnmt +([a-z][\w-]*)", "\n".join(spans), re.M)
    return sorted(set(named) - set(STEPS))


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_step_that_a_page_names_exists(page):
    told = RETIRED_STEPS if page.name == "CHANGELOG.md" else ()
    assert not set(unknown_steps(page.read_text(encoding="utf-8"))) - set(told)


COMMAND = re.compile(r"(?:^|\s)(sbnmt [\w-]+(?: \w+)?|fairseq-\w+)\s")
FAIRSEQ = (
    options.get_training_parser,
    options.get_generation_parser,
    options.get_interactive_generation_parser,
    options.get_preprocessing_parser,
)
# what fairseq adds where --optimizer, --tokenizer and so on choose it
CHOSEN = (
    *(FairseqAdamConfig, InverseSquareRootLRScheduleConfig),
    *(PolynomialDecayLRScheduleConfig, ReduceLROnPlateauLRScheduleConfig),
    *(SBCriterionConfig, MosesTokenizerConfig, SubwordNMTBPEConfig),
)


@functools.cache
def flags_of(command):
    """All flags that a command knows: a step's from its help, and fairseq's."""
    parsers = [get() for get in FAIRSEQ]
    for model in SBTransformerModel, RNNSearchModel, TwoWayModel:
        parsers.append(argparse.ArgumentParser(allow_abbrev=False))
        model.add_args(parsers[-1])
    for config in CHOSEN:
        gen_parser_from_dataclass(parsers[-1], config())
    known = {flag for parser in parsers for flag in parser._option_string_actions}
    known |= dict(our_options()).keys()
    if command[0] == "sbnmt":
        status, text = called(command[0], [*command[1:], "--help"], typed="")
        assert status == 0, command
        own = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text))
        # other options go to fairseq where the step says so
        return own | known if "fairseq" in text or "translate" in text else own
    return known


def unknown_flags(text):
    """(command, flag) of a text's code that the command does not know.

    Code between backquotes counts where it begins with `sbnmt`.
    """
    found = []
    for block in [*code_of(text), *re.findall(r"`(sbnmt [a-z][^`\n]+)`", text)]:
        block = f"{block} "  # a command may have no words
        # a quoted word is no option, and a line that ends so goes on
        block = re.sub(r"'[^']*'|\"[^\"]*\"|\\\n", " ", block)
        for part in re.split(r"\s[|;&]+\s|\s#\s|\n", block):
            match = COMMAND.search(part)
            if not match:
                continue
            words = match[1].split()
            if words[0] == "sbnmt" and words[1] in RETIRED_STEPS:
                continue  # the changelog says what to use instead
            if words[0] == "sbnmt" and words[1] not in ("bpe", "prepare"):
                words = words[:2]
            flags = re.findall(r"(?<=\s)(--?[a-z][\w-]*)", part[match.end() - 1 :])
            known = flags_of(tuple(words))
            found += [(" ".join(words), flag) for flag in flags if flag not in known]
    return found


# results pages show commands as they were at the commits that they name
@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_option_that_a_page_gives_a_command_exists(page):
    assert not unknown_flags(page.read_text(encoding="utf-8"))


SCRIPTS = [ROOT / "scripts" / "quickstart.sh", ROOT / "examples" / "toy" / "report.sh"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_every_option_that_a_script_gives_a_step_exists(script):
    """No test runs the quickstart whole."""
    text = script.read_text(encoding="utf-8")
    text = re.sub(r'"\$(bin/)?sbnmt"', "sbnmt", text)
    code = "\n\n" + "".join(f"    {line}\n" for line in text.splitlines() if line)
    assert not unknown_flags(code)
    other = code.replace(" --output ", " --outputs ")
    assert {flag for _, flag in unknown_flags(other)} == {"--outputs"}


def test_the_check_of_options_can_fail():
    text = "\n\n    sbnmt score --hypotheses x \\\n      --json y\n"
    text += (
        "    CUDA=0 fairseq-generate d --user-dir p --bean 4 | sbnmt bpe learn -m 4\n"
    )
    assert unknown_flags(text) == [
        ("sbnmt score", "--hypotheses"),
        ("fairseq-generate", "--bean"),
        ("sbnmt bpe learn", "-m"),
    ]


def test_the_check_of_steps_can_fail():
    text = "`sbnmt score` and\n\n    x && sbnmt tokenize a b\n\n`CUDA=1 sbnmt trains`"
    assert unknown_steps(text) == ["tokenize", "trains"]


@pytest.mark.parametrize("group", GROUPS)
def test_the_page_of_commands_lists_all_steps_in_order_of_use(group):
    """Each with an example, which is a command that names it."""
    page = text_of("docs/commands.md")
    rows = rows_of(page.split(f"\n## {group}\n")[1].split("\n## ")[0])
    shown = {name.strip("`"): text for name, text, _ in rows}
    assert [*shown.items()] == [*GROUPS[group].items()]
    for name, (_, _, example) in zip(shown, rows):
        assert re.search(rf"\b(sbnmt|sbnmt_plugin) {name} ", example), name


# code map


def test_the_code_map_is_that_of_the_package():
    assert code_map.PAGE.read_text(encoding="utf-8") == code_map.page(), (
        "write it anew: python tests/code_map.py"
    )


EQUATION = {
    "what": "p(y|x)",
    "functions": ["network.grid.causal"],
    "tests": ["test_docs.py::test_the_code_map_is_that_of_the_package"],
}


def test_every_system_has_equations_with_a_function_and_a_test():
    systems = yaml.safe_load(code_map.EQUATIONS.read_text(encoding="utf-8"))
    assert len(systems) == 5
    for rows in systems.values():
        assert len(rows) >= 8
        assert all(row["functions"] and row["tests"] for row in rows)
    row = code_map.equations({"X": [EQUATION]}).splitlines()[-1]
    assert row.startswith(r"| p(y\|x) | [`causal`](../sbnmt_plugin/network/grid.py) |")


@pytest.mark.parametrize(
    "wrong, error",
    [
        ({"functions": ["network.attention.nothing"]}, AttributeError),
        ({"functions": ["network.nothing.x"]}, AttributeError),
        ({"tests": ["test_docs.py::test_nothing"]}, LookupError),
    ],
)
def test_the_check_of_equations_can_fail(wrong, error):
    with pytest.raises(error):
        code_map.equations({"X": [EQUATION | wrong]})


# rows that are gone


def names_of_rows_that_are_gone(page):
    """Return the retired rows that a page's commands name."""
    words = set(re.findall(r"[\w-]+", "\n".join(code_of(page))))
    return words & set(RETIRED_ROWS)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_command_of_a_page_names_a_row_that_is_gone(page):
    assert not names_of_rows_that_are_gone(page.read_text(encoding="utf-8"))


def test_the_check_of_rows_that_are_gone_can_fail():
    assert not names_of_rows_that_are_gone("    sbnmt recipe toy --rows sb-lambda0\n")
    gone = names_of_rows_that_are_gone("    sbnmt recipe toy --rows sb-own@2\n")
    assert gone == {"sb-own"}


# files, links, commands


def anchors(path):
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file_and_heading_that_a_page_names_exists(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"\b(?:scripts|examples|tests|docs)/[\w/.-]+\.\w+", text):
        # a recipe of the reader's; a script of 0.2.0 by which a result was made
        if "/NAME/" not in name and not re.fullmatch(r"scripts/\w+\.py", name):
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


def test_the_two_scripts_are_what_ci_runs():
    """The README's first command, and that of CONTRIBUTING."""
    commands = re.findall(r"^    (scripts/\w+\.sh)", section_of("Try it"), re.M)
    commands += re.findall(r"`(scripts/\w+\.sh)` \|", text_of("CONTRIBUTING.md"))
    assert commands == ["scripts/quickstart.sh", "scripts/test.sh"]
    ci = text_of(".ci/run")
    for command in commands:
        assert re.search(rf"^{command}", ci, re.M)
        assert (ROOT / command).stat().st_mode & 0o100


def test_github_runs_the_readmes_second_command():
    workflow = yaml.safe_load(text_of(".github/workflows/ci.yml"))
    (job,) = workflow["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [
        "scripts/test.sh"
    ]


# how long pages are, and what their prose leaves to results pages

# words of a page at most, its code included but for the README's
WORDS = {"README.md": 1000, "CONTRIBUTING.md": 800, "CHANGELOG.md": 700}
DOCS_WORDS = {  # of a page in docs/
    **{"guide": 1400, "concepts": 700, "findings": 900, "interaction": 900},
    **{"commands": 1300, "options": 900, "systems": 1600, "operations": 900},
    **{"troubleshooting": 600, "internals": 1000},
}
EXAMPLE_WORDS = 400
README_LINES, README_WIDTH = 150, 110
ALL_WORDS = 20_000


def without_code(text):
    """A Markdown text without fenced and indented code."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return re.sub(r"(?:(?<=\n\n)|\A)(?: {4}.*\n)+", "", text)


def prose_of(text):
    """A Markdown text without code, tables, comments and addresses of links.

    What is generated between two marks is left out, too.
    """
    text = re.sub(r"<!-- (\w+) -->.*?<!-- end \1 -->", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->|`[^`]*`|\]\([^)]*\)", "", without_code(text))
    return re.sub(r"^ *\|.*$", "", text, flags=re.M)


def words_of(name, text):
    return len((without_code(text) if name == "README.md" else text).split())


def words_allowed(name):
    """Words that a page may have; a page that nobody has planned may have none."""
    if name.startswith("examples/"):
        return EXAMPLE_WORDS
    docs = name.removeprefix("docs/").removesuffix(".md")
    return WORDS.get(name, DOCS_WORDS.get(docs, 0))


@pytest.mark.parametrize("page", WRITTEN, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_page_is_short(page):
    name = name_of(page)
    words = words_of(name, page.read_text(encoding="utf-8"))
    assert words <= words_allowed(name), f"{name} has {words} words"


def test_all_pages_are_short():
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in WRITTEN}
    assert sum(words.values()) < ALL_WORDS


def lines_too_long(text):
    """Lines outside code and tables that are wider than the README's may be."""
    lines = without_code(text).splitlines()
    return [x for x in lines if len(x) > README_WIDTH and not x.startswith("|")]


def test_the_readme_is_short_and_narrow():
    text = text_of(name_of(ROOT / "README.md"))
    assert len(text.splitlines()) <= README_LINES
    assert not lines_too_long(text)


def cut_short(text):
    """Return the blocks of code that leave out what their reader has to know."""
    return [block for block in code_of(text) if "…" in block or "..." in block]


def test_the_readmes_commands_are_whole():
    readme = text_of("README.md")
    assert len(code_of(readme)) >= 5 and not cut_short(readme)
    assert cut_short(readme.replace("sbnmt ", "sbnmt … "))


def measured_in(text):
    """Commit hashes, p-values and seeds in a page's prose: results pages have them."""
    found = re.findall(
        r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b|\bp\s[=<≤]|\b[Ss]eeds?\b",
        prose_of(text),
    )
    return sorted(found)


@pytest.mark.parametrize(
    "page",
    [page for page in WRITTEN if page.parent.name in (ROOT.name, "docs")],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_prose_leaves_measurements_to_results_pages(page):
    name = name_of(page)
    if name not in ("CONTRIBUTING.md", "CHANGELOG.md"):
        assert not measured_in(page.read_text(encoding="utf-8"))


def test_the_checks_of_prose_can_fail():
    table = "| p = 0.1 | seed | 1a2b3c4 |\n"
    code = "\n    seed 1a2b3c4\n\n```\np = 1\n```\n`seed` [x](#seed) <!-- seed -->\n"
    generated = "<!-- x -->\nseed 1\n<!-- end x -->\n"
    assert not measured_in(f"{table}{code}{generated}defaced, 2019, 12345678\n")
    assert measured_in("commit 1a2b3c4, three seeds, p = 0.1\n") == [
        *("1a2b3c4", "p =", "seeds"),
    ]
    assert words_of("README.md", f"a b\n{code}") == words_of("README.md", "a b") + 5
    assert words_of("CHANGELOG.md", "a\n\n    b c\n") == 3
    assert lines_too_long(f"{'x' * 111}\n| {'y' * 111}\n\n    {'z' * 111}\n") == [
        "x" * 111
    ]
    assert [words_allowed(f"docs/{name}.md") for name in ("guide", "more")] == [1400, 0]
    assert words_allowed("examples/toy/README.md") == EXAMPLE_WORDS


@pytest.mark.parametrize("name", readme_tables.TABLES)
def test_the_readmes_tables_are_those_of_the_committed_results(name):
    """Written anew by ``python tests/readme_tables.py``."""
    text = text_of(name_of(ROOT / "README.md"))
    assert readme_tables.marked(name).findall(text) == [readme_tables.block(name)]


def test_rows_that_the_readme_compares_have_as_many_updates():
    """A reader starts from a trained model and has 1,000 more."""
    found = {}
    for name in readme_tables.SYSTEMS:
        for row in readme_tables.rows_of_system("multi30k/converged-small", name):
            if "updates" in row:  # two models that rerank each other have none
                found.setdefault("reader" in name, set()).add(row["updates"])
    assert found == {False: {5748}, True: {1000}}


# files that are gone

NAMED = re.compile(
    r"(?<![\w./-])((?:examples|docs|scripts)/[\w/-]+\.(?:json|md|svg|png|py|sh|yaml))\b"
)
PARTS = re.compile(r'"(examples|docs|scripts)"((?: / "[\w.-]+")+)')


def dead_names(root):
    """(file, name) where code, a script or a test names a file that is not there."""
    found = []
    for folder in "sbnmt_plugin", "scripts", "tests", ".ci", "examples":
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".py", ".sh", ".yaml", "") or not path.is_file():
                continue
            if "data" in path.parts:  # what earlier versions have written
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            names = set(NAMED.findall(text))
            if folder == "tests":  # commands in logs and folders of version 0.2.0
                names -= {x for x in names if re.fullmatch(r"scripts/\w+\.py", x)}
            for first, more in PARTS.findall(text):
                name = "/".join([first, *re.findall(r'"([\w.-]+)"', more)])
                names |= {name} & set(NAMED.findall(name))
            found += [
                (str(path.relative_to(root)), name)
                for name in sorted(names)
                if not (root / name).exists()
            ]
    return found


def test_no_code_names_a_file_that_is_gone():
    assert not dead_names(ROOT)


def test_the_check_of_names_can_fail(tmp_path):
    gone = "/".join(["examples", "toy", "none.json"])
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "x.py").write_text(f'"""See {gone[:-5]}"""\nROOT / "examples" / "toy"\n')
    assert not dead_names(tmp_path)
    (folder / "x.py").write_text(f'"""See {gone}."""\n')
    (folder / "y.py").write_text('"examples" / "toy" / "' + 'none.json"\n')
    assert dead_names(tmp_path) == [("tests/x.py", gone), ("tests/y.py", gone)]
