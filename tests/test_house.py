"""The house rules: who may import whom, what is printed, what a script is.

A module may import those of its own room and of the rings before it, no others: rooms
of one ring do not know each other.  No two modules import each other, by whatever way
round.  So what a module needs can be read, and tested, before it.
"""

import ast
import json
import re
import sys

import pytest
import slow
from commands import ROOT
from steps import ran

from sbnmt_plugin import __version__
from sbnmt_plugin.tools.command_names import RETIRED, STEPS

PACKAGE = ROOT / "sbnmt_plugin"
RINGS = (
    ("symbols",),
    # torch, or nothing
    (*("in_use", "layout", "lines", "numerics", "quiet", "task_options"),),
    ("fairseq_options",),
    ("given_options",),
    ("checkpoints",),
    ("checkpoint_checks",),
    ("hub",),
    ("network",),
    ("search", "training"),
    (
        "families",
        *(f"families.{name}" for name in ("abd", "ba", "enat", "sb", "two_way")),
    ),
    ("model",),  # its Python interface, by an old name
    ("config",),
    ("option_checks", "task_data"),
    ("task",),
    ("register",),
    ("__init__",),  # what --user-dir imports
    ("tools",),  # libraries of the commands
    ("tools.models",),  # trained models as folders
    ("tools.recipes",),
    ("tools.results",),
    ("tools.report",),
    ("tools.benchmark",),
    ("tools.commands",),  # what `sbnmt STEP` runs
    ("__main__",),  # finds it by its name
)
# import torch, the standard library and each other alone: no fairseq, so they can be
# read, tested and used without it
TORCH_ONLY = {
    "layout",
    "lines",
    "numerics",
    "symbols",
    "task_options",
    *(
        f"network.{name}"
        for name in (
            *("__init__", "dot_product", "fusion", "grid", "kv_cache"),
            *("next_tokens", "protocol"),
        )
    ),
    *(
        f"search.{name}"
        for name in (
            *("__init__", "beam", "lengths", "logits_processing", "options"),
            *("penalties", "pool", "registry", "top_k"),
        )
    ),
    *("families.ba.attention", "families.sb.initialisation"),
    "families.two_way.lstm_2d",
    "training.phrase_table",
}
LONGEST_MODULE = 300  # lines
# test files of what several modules do together; all others bear a module's name
CROSS_CUTTING = {
    "across_families": "what holds of every model family",
    "device": "a device that is not the CPU, pretended",
    "docs": "README.md and the pages of docs/",
    "findings": "the numbers of docs/findings.md",
    "hostile": "checkpoints and data folders made to do harm",
    "house": "this file",
    "mishaps": "what happens to a training: NaN, no memory, unknown words",
    "one_direction": "families that write one direction, by fairseq's commands",
    "own_files": "no command writes over what it reads",
    "readme": "the commands of README.md",
    "wheel": "what pip installs",
    "witnesses": "what version 0.2.0 has made goes on",
}
PROGRAMS = ("tools.commands.", "__main__", "tools.recipes.runner")  # print
OWN = "sbnmt_plugin"


# what a package imports


def modules(package):
    """Dotted names below the package, ``__init__`` for the package's own."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        found[".".join(path.relative_to(package).with_suffix("").parts)] = path
    return found


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path, known):
    """(our modules, top names of others) that a file imports, also in functions."""
    ours, others = set(), set()
    for node in ast.walk(tree_of(path)):
        names = []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            top, *rest = name.split(".")
            if top == OWN:
                ours.add(module_of(rest, known))
            else:
                others.add(top)
    return ours, others


def module_of(parts, known):
    """The module that holds what a dotted name below the package names."""
    for size in range(len(parts), -1, -1):
        for end in ([], ["__init__"]):
            name = ".".join([*parts[:size], *end])
            if name in known:
                return name
    raise AssertionError(f"there is no {OWN}.{'.'.join(parts)}")


def graph(package):
    known = modules(package)
    return {name: imports(path, known)[0] - {name} for name, path in known.items()}


def room_of(module):
    """(ring, room) of a module; a folder's ``__init__`` is in the folder's room."""
    found = [
        (len(room), ring, room)
        for ring, rooms in enumerate(RINGS)
        for room in rooms
        if module == room or module.startswith(f"{room}.")
    ]
    assert found, f"{module} has no ring"
    _, ring, room = max(found)
    return ring, room


# checks, each of a package in a folder


def assert_rings(package):
    for module, needed in graph(package).items():
        ring, room = room_of(module)
        for other in needed:
            its_ring, its_room = room_of(other)
            fine = its_ring < ring or its_room == room
            assert fine, f"{module} must not import {other}"


def assert_no_cycles(package):
    left = graph(package)
    while left:
        free = [name for name, needed in left.items() if not needed & set(left)]
        assert free, f"a cycle in, or above, {sorted(left)}"
        left = {name: needed for name, needed in left.items() if name not in free}


def assert_torch_only(package):
    known = modules(package)
    for name in TORCH_ONLY & set(known):
        ours, others = imports(known[name], known)
        others -= {"torch", *sys.stdlib_module_names}
        assert not others, f"{name} must not import {sorted(others)}"
        extra = ours - TORCH_ONLY
        assert not extra, f"{name} must not import {sorted(extra)}, which need more"


def assert_quiet(package):
    """Standard output belongs to hypotheses and results: only programs print there;
    below them a library may write to standard error, and the plugin logs."""
    for name, path in modules(package).items():
        if name.startswith(PROGRAMS):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
                to = [k.value for k in node.keywords if k.arg == "file"]
                allowed = name.startswith("tools.") and to
                assert allowed and ast.unparse(to[0]) == "sys.stderr", f"{name} prints"


def assert_results_are_kept_first(package):
    """What a step has computed is in its file before it is printed, which may fail."""
    for name, path in modules(package).items():
        for function in ast.walk(tree_of(path)):
            calls = [x for x in ast.walk(function) if isinstance(x, ast.Call)]
            if not isinstance(function, ast.FunctionDef) or "commands" not in name:
                continue
            prints = [x.lineno for x in calls if ast.unparse(x.func) == "print"]
            files = "write_json", "write_lines"
            wrote = [x.lineno for x in calls if ast.unparse(x.func) in files]
            late = prints and wrote and max(wrote) > min(prints)
            assert not late, f"{name}.{function.name} prints before it writes"


def assert_names_are_given_in_one_place(package):
    """Only ``tools.unfinished`` renames: it syncs, so that a power failure is safe."""
    for name, path in modules(package).items():
        for node in ast.walk(tree_of(path)):
            if name == "tools.unfinished" or not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            whose, _, word = called.rpartition(".")
            names = word in ("rename", "renames", "move") or called == "os.replace"
            names |= word == "replace" and len(node.args) == 1  # a text's has two
            names &= bool(whose)
            assert not names, f"{name}: {called} renames without syncing"


def assert_short(package):
    """No module is longer than a reader keeps in mind."""
    found = modules(package).items()
    lines = {x: len(path.read_text("utf-8").splitlines()) for x, path in found}
    long = [f"{x} has {n} lines" for x, n in lines.items() if n > LONGEST_MODULE]
    assert not long, long


def assert_docstrings_speak(package):
    """A docstring begins with a verb or a noun, and is no clause of a sentence.

    Its lines end where they end in the file, for commands print them as help.
    """
    fragments = []
    for name, path in modules(package).items():
        for node in ast.walk(tree_of(path)):
            kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
            if isinstance(node, kinds):
                text = ast.get_docstring(node) or ""
                found = re.match(r"(What|Of) .*", text) or re.search(".{89}", text)
                if found:
                    fragments.append(f"{name}: {found[0]}")
    assert not fragments, "\n".join(fragments)


# families: only their folders, and the lines that register them, know them by name

KNOW_FAMILIES = ("families.", "register", "model")
TOOLS_OF_ALL = (
    *("tools.probes", "tools.reranking", "tools.word_alignment", "tools.translator"),
    "tools.report.",
)


def base_modules(package):
    """Modules that serve all families: not the tools that compare systems."""
    for name, path in modules(package).items():
        special = name.startswith(("tools.", *KNOW_FAMILIES))
        if name.startswith(TOOLS_OF_ALL) or not special:
            yield name, path


def family_names(package):
    """(names that nothing else has, names of searches) of all families.

    The first are folders, but for ``sb``, the prefix of the whole plugin; classes of
    more than one word; what is registered; options of the task.
    """
    names, searches = set(), set()
    for path in sorted(package.glob("families/*/*.py")):
        names |= {path.parent.name} - {"sb"}
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.ClassDef):
                continue
            names |= {node.name} if re.search("[A-Z].*[A-Z]", node.name) else set()
            for decorator in node.decorator_list:
                said = ast.unparse(decorator)
                if said == "register_options":
                    fields = [x for x in node.body if isinstance(x, ast.AnnAssign)]
                    names |= {field.target.id for field in fields}
                elif said.startswith("register_search"):
                    searches.add(decorator.args[0].value)
                elif said.startswith("register_"):
                    names.add(decorator.args[0].value)
    return names, searches


def words_said(tree):
    """Identifiers and texts of a module, without what its docstrings say."""
    quiet = [x.value for x in ast.walk(tree) if isinstance(x, ast.Expr)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in quiet:
            yield str(node.value)
        for field in ("id", "attr", "arg", "name", "module"):
            if isinstance(value := getattr(node, field, None), str):
                yield value


def assert_no_family_by_name(package):
    known = modules(package)
    names, searches = family_names(package)
    either = "|".join(name.replace("_", "[_-]") for name in sorted(names))
    named = re.compile(rf"(?<![A-Za-z])({either})(?![A-Za-z])", re.I)
    for name, path in base_modules(package):
        ours, _ = imports(path, known)
        theirs = {x for x in ours if x.startswith("families.")}
        assert not theirs, f"{name} must not import {theirs}"
        for said in words_said(tree_of(path)):
            fine = said not in searches and not named.search(said)
            assert fine, f"{name} knows a family by its name: {said}"


CHECKS = {
    "rings": assert_rings,
    "cycles": assert_no_cycles,
    "torch": assert_torch_only,
    "print": assert_quiet,
    "results": assert_results_are_kept_first,
    "renaming": assert_names_are_given_in_one_place,
    "lines": assert_short,
    "fragments": assert_docstrings_speak,
    "families": assert_no_family_by_name,
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_package_keeps_the_rules(check):
    check(PACKAGE)


def test_every_ring_and_every_list_names_what_exists():
    known = set(modules(PACKAGE))
    rooms = {room for ring in RINGS for room in ring}
    assert {room_of(name)[1] for name in known} == rooms
    assert known >= TORCH_ONLY


DOC = '"""A module."""\n'
# a check, what it says, and below it the files of a package in which it says so
BROKEN = r"""
rings: network.x must not import task
  network/x.py: from sbnmt_plugin.task import x
  task.py:
rings: layout must not import hub
  layout.py: def f():\n    import sbnmt_plugin.hub
  hub.py:
rings: search.x must not import training.__init__
  search/x.py: from sbnmt_plugin import training
  training/__init__.py:
rings: tools.x must not import tools.commands.bpe
  tools/x.py: from sbnmt_plugin.tools.commands import bpe
  tools/commands/bpe.py:
rings: misc has no ring
  misc.py:
cycles: a cycle in, or above, \['search.x', 'search.y', 'search.z'\]
  search/x.py: from sbnmt_plugin.search import y
  search/y.py: from sbnmt_plugin.search.z import f
  search/z.py: def f():\n    from sbnmt_plugin.search import x
torch: numerics must not import
  numerics.py: def f():\n    from fairseq.utils import x
torch: search.beam must not import .*scorer.*, which need more
  search/beam.py: from sbnmt_plugin.search.scorer import x
  search/scorer.py:
print: task prints
  task.py: import sys\nprint('x', file=sys.stderr)
print: tools.text prints
  tools/text.py: print('x')
results: tools.commands.x.f prints before it writes
  tools/commands/x.py: def f():\n    print(1)\n    write_json('a', 1)
renaming: tools.x: os.replace renames
  tools/x.py: import os\nos.replace('a', 'b')
renaming: tools.x: log.with_suffix.* renames
  tools/x.py: 'a.b'.replace('a', 'b')\nlog.with_suffix('').replace(log)
renaming: tools.x: shutil.move renames
  tools/unfinished.py: a.rename(b)
  tools/x.py: shutil.move(a, b)
families: task must not import .*enat
  families/enat/model.py: class ENATModel:\n    pass
  task.py: from sbnmt_plugin.families.enat import model
families: hub knows a family by its name: nat_t
  families/enat/options.py: @register_options\nclass A:\n  nat_t: str = 1
  hub.py: FILES = ['nat_t']
families: option_checks knows a family by its name: add --enat-table
  families/enat/model.py: class ENATModel:\n    pass
  option_checks.py: raise ValueError('add --enat-table')
families: tools.translator knows a family by its name: ENATModel
  families/enat/model.py: class ENATModel:\n    pass
  tools/translator.py: fine = type(model).__name__ != 'ENATModel'
families: tools.word_alignment knows a family by its name: parallel
  families/enat/search.py: @register_search('parallel')\nclass A:\n  b=1
  tools/word_alignment.py: at_once = model.searched_by == 'parallel'
fragments: hub: What a hub is
  hub.py: class A:\n    def f(self):\n        'What a hub is.'
fragments: hub: Of the hub
  hub.py: def f():\n    'Of the hub.'
"""
JOINED = "fragments: hub: x x", {"hub.py": f'"""A hub.\n\n{45 * "x "}\\\n    y z"""\n'}
LONG = "lines: hub has 302 lines", {"hub.py": DOC + "x = 1\n" * 300 + "\n"}


def broken():
    """Yield the head of each package, and its files with their texts."""
    for package in re.split(r"\n(?! )", BROKEN.strip()):
        head, *lines = package.split("\n  ")
        texts = dict(re.split(": ?", line, maxsplit=1) for line in lines)
        yield head, {x: DOC + y.replace(r"\n", "\n") + "\n" for x, y in texts.items()}
    yield from (JOINED, LONG)


@pytest.mark.parametrize("head, files", broken())
def test_every_check_can_fail(head, files, tmp_path):
    check, message = head.split(": ", 1)
    for file, text in files.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with pytest.raises(AssertionError, match=message):
        CHECKS[check](tmp_path)


def test_every_check_is_seen_to_fail():
    assert {head.split(": ")[0] for head, _ in broken()} == set(CHECKS)


# test files


def assert_tests_are_a_map(root):
    """A test file bears the name of a module, folder or script, or of a property in
    :data:`CROSS_CUTTING`.  One that was split says after it, behind ``_``, which part.
    """
    folders = "sbnmt_plugin", "examples", "scripts", "tests/campaign"
    known = set(CROSS_CUTTING)
    for folder in folders:
        for path in (root / folder).rglob("*"):
            if path.is_dir() or path.suffix in (".py", ".sh"):
                known.add(path.stem.strip("_"))
    lost = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        parts = path.stem.split("_")[1:]
        heads = {"_".join(parts[:size]) for size in range(1, len(parts) + 1)}
        if not heads & known:
            lost.append(path.name)
    assert not lost, f"named after no module: {lost}"


def test_the_tests_are_a_map():
    assert_tests_are_a_map(ROOT)
    files = [path.stem for path in ROOT.glob("tests/test_*.py")]
    for name in CROSS_CUTTING:
        there = any(f"{file}_".startswith(f"test_{name}_") for file in files)
        assert there, f"CROSS_CUTTING names {name}, which no file tests"


def test_the_check_of_test_names_can_fail(tmp_path):
    for name in (
        *("sbnmt_plugin/two_way/model.py", "scripts/setup.sh", "examples/toy/check.py"),
        *("tests/test_two_way.py", "tests/test_two_way_model.py", "tests/test_toy.py"),
        *("tests/test_setup.py", "tests/test_docs.py", "tests/helpers.py"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert_tests_are_a_map(tmp_path)
    (tmp_path / "tests" / "test_two.py").write_text("")
    with pytest.raises(AssertionError, match=r"no module: \['test_two.py'\]"):
        assert_tests_are_a_map(tmp_path)


def test_every_slow_test_exists(
    names=slow.TESTS | slow.FIXTURES, folder=ROOT / "tests"
):
    """Every name is that of a function in a folder of tests."""
    files = sorted(folder.rglob("*.py"))
    found = {
        node.name
        for path in files
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef)
    }
    assert not names - found, f"tests/slow.py names what is gone: {names - found}"


def test_the_check_of_slow_tests_can_fail(tmp_path):
    (tmp_path / "test_x.py").write_text("def test_x():\n    pass\n")
    test_every_slow_test_exists({"test_x"}, tmp_path)
    with pytest.raises(AssertionError, match=r"what is gone: {'test_y'}"):
        test_every_slow_test_exists({"test_x", "test_y"}, tmp_path)


# names in docstrings


ROLE = re.compile(r":(?:mod|class|func|meth|data|attr):`([\w.]+)`")


def names_in(tree):
    """Names that a module defines, its classes' and their instances' among them."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            yield node.attr


def test_docstrings_refer_to_what_exists(package=PACKAGE):
    """What a docstring refers to exists: ``:func:`pool.finished``` in the module of
    this name; without one in the same module, or those from which it imports."""
    known = modules(package)
    names = {name: {*names_in(tree_of(path))} for name, path in known.items()}
    for module, path in known.items():
        here = set().union(*(names[x] for x in {module, *imports(path, known)[0]}))
        for reference in ROLE.findall(path.read_text(encoding="utf-8")):
            parts = reference.split(".")
            there = here.issuperset(parts)
            for size in range(1, len(parts) + 1):  # so many name a module
                end = "." + ".".join(parts[:size])
                for other in known:
                    named = f".{other}".removesuffix(".__init__").endswith(end)
                    there |= named and names[other].issuperset(parts[size:])
            assert there, f"{module} refers to {reference}, which does not exist"


@pytest.mark.parametrize(
    "reference",
    [":mod:`directions`", ":func:`beam.finished`", ":meth:`A.c`", ":meth:`pool.A.c`"],
)
def test_the_check_of_references_can_fail(reference, tmp_path):
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "beam.py").write_text("x = 1\n")
    pool = "class A:\n    def b(self):\n        self.d = 1\n\ndef f():\n    '''{}'''\n"
    (tmp_path / "search" / "pool.py").write_text(
        pool.format(":meth:`A.b`, :attr:`d`, :mod:`search.beam`, :data:`beam.x`")
    )
    test_docstrings_refer_to_what_exists(tmp_path)
    (tmp_path / "search" / "pool.py").write_text(pool.format(reference))
    with pytest.raises(AssertionError, match="which does not exist"):
        test_docstrings_refer_to_what_exists(tmp_path)


# steps


def test_every_step_is_a_command_and_every_command_a_step():
    commands = {path.stem for path in PACKAGE.glob("tools/commands/*.py")}
    steps = {step.replace("-", "_") for step in STEPS}
    assert commands - {"__init__"} == steps
    for step in steps:
        tree = tree_of(PACKAGE / "tools" / "commands" / f"{step}.py")
        assert "main" in names_in(tree), step


# runs command lines of `sbnmt` one after the other in one process
RUNNER = """
import contextlib, io, json, sys
sys.argv = ["sbnmt"]
from sbnmt_plugin.__main__ import main
found = []
for words in json.loads(sys.stdin.read()):
    sys.argv = ["sbnmt", *words]
    output, status = io.StringIO(), 0
    with contextlib.redirect_stdout(output):
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    found.append((status, output.getvalue(), "torch" in sys.modules))
print(json.dumps(found))
"""


def run_steps(lines):
    """(status, standard output, whether torch has been imported by now) of each."""
    typed = json.dumps([list(map(str, words)) for words in lines])
    done = ran([sys.executable, "-c", RUNNER], input=typed, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def assert_light(lines):
    for words, (status, output, torch) in zip(lines, run_steps(lines)):
        assert status == 0, (words, output)
        assert not torch, f"sbnmt {words[0]} imports torch"


def test_steps_that_handle_texts_need_no_torch(tmp_path):
    text = tmp_path / "text"
    text.write_text("ein Haus\nein Haus am See\n" * 4, encoding="utf-8")
    codes = tmp_path / "codes"
    assert_light(
        [
            ("--help",),
            ("--version",),
            ("tokenise", "--language", "de", text, tmp_path / "tokens"),
            ("bpe", "learn", "--merges", 4, "--codes", codes, text),
            ("bpe", "apply", "--codes", codes, text, tmp_path / "bpe"),
            ("score", "--reference", text, "--hypothesis", text),
            ("prepare", "toy", "--output", tmp_path / "toy"),
            *((step, "--help") for step in ("recipe", "triples", "report", "train")),
            *((step, "--help") for step in ("phrase-table", "lookup", "compare")),
            *((step, "--help") for step in ("table", "translate")),
            *((step, "--help") for step in ("sweep-beam", "trace-page", "benchmark")),
            ("evaluate", "--help"),
        ]
    )


def test_the_check_of_light_steps_can_fail():
    with pytest.raises(AssertionError, match="sbnmt average imports torch"):
        assert_light([("average", "--help")])


@pytest.mark.parametrize(
    "step, said",
    [
        ("trian", "one of recipe, translate, export"),
        ("trian", "but is 'trian' (did you mean train?); see sbnmt --help"),
        ("tokenize", "(did you mean tokenise?)"),
        ("junk", "but is 'junk'; see sbnmt --help"),
        ("campaign", "sbnmt campaign is gone: it is `python -m campaign`, run in"),
    ],
)
def test_an_unknown_step_is_named_with_those_that_exist(step, said):
    done = ran([sys.executable, "-m", OWN, step], cwd=ROOT)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_command_tells_its_version():
    done = ran([sys.executable, "-m", OWN, "--version"], cwd=ROOT)
    assert done.stdout == f"{__version__}\n"


def test_no_name_of_a_step_is_retired():
    assert not set(STEPS) & set(RETIRED)


# tests


def test_no_test_file_is_imported(folder=ROOT / "tests"):
    """Check that helpers are imported from modules that hold no tests."""
    for path in sorted(folder.rglob("*.py")):
        _, others = imports(path, modules(PACKAGE))
        found = [name for name in others if name.startswith("test_")]
        assert not found, f"{path.name} imports a test file: {found}"


def test_the_check_of_test_files_can_fail(tmp_path):
    (tmp_path / "test_codes.py").write_text("from bpe import test_codes\n")
    test_no_test_file_is_imported(tmp_path)
    (tmp_path / "codes.py").write_text("def f():\n    from test_bpe import x\n")
    with pytest.raises(AssertionError, match=r"codes\.py imports a test file"):
        test_no_test_file_is_imported(tmp_path)


def test_the_constraints_pin_what_setup_asks_for():
    setup = (ROOT / "setup.py").read_text()
    pinned = (ROOT / "constraints.txt").read_text().lower()
    for name in re.findall(r'^        "([\w-]+)[=<>]', setup, re.M):
        assert re.search(rf"^{name.lower()}==", pinned, re.M), name
