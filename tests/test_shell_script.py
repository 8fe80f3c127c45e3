"""run.sh: readable, committed as printed, and the very commands of the driver."""

import os
import re
import shlex
import subprocess
import sys

import bash_stubs
import in_process
import pytest
from commands import ROOT, captured
from steps import call, put

from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.recipes import runner, shell_script
from sbnmt_plugin.tools.recipes.data_steps import Run
from sbnmt_plugin.tools.recipes.rows import Row
from sbnmt_plugin.tools.recipes.shell_script import WORK
from sbnmt_plugin.tools.recipes.step import Step, words_of

COMMITTED = sorted(ROOT.glob("examples/*/run*.sh"))
RECIPES = sorted(path.parent.name for path in ROOT.glob("examples/*/recipe.yaml"))
ANY = ["bitext", "--source", "en", "--target", "de"]
SETTINGS = [
    *([name] for name in RECIPES if name != "bitext"),
    *([name, "--small"] for name in ("multi30k", "techdocs_zh_en")),
    ANY,
]
SHELLCHECK = os.path.join(os.path.dirname(sys.executable), "shellcheck")


def printed(capsys, recipe, *words):
    capsys.readouterr()
    call(run_recipe, recipe, "--print", *words)
    return capsys.readouterr().out


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_each_committed_script_is_what_its_recipe_prints(path, capsys):
    command = f"sbnmt recipe examples/{path.parent.name} --print"
    text = path.read_text(encoding="utf-8")
    assert text == printed(capsys, path.parent), f"{command} > {path}"
    assert os.access(path, os.X_OK)
    assert f"`{command}`" in " ".join(text.split()).replace("# ", "")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """The scripts that all recipes print, by the words of the command."""
    folder = tmp_path_factory.mktemp("scripts") / "examples"
    found = {}
    for recipe, *words in SETTINGS:
        with captured() as output:
            call(run_recipe, ROOT / "examples" / recipe, "--print", *words)
        name = "".join([recipe, *words])
        found[name] = put(folder / recipe / f"{name}.sh", output.text.rstrip("\n"))
    return found


def test_the_scripts_pass_shellcheck(scripts, tmp_path, capsys):
    odd = in_process.write_recipe(tmp_path / "a 'recipe'", environment={"X": '$"`\\'})
    path = put(tmp_path / "odd.sh", printed(capsys, odd).rstrip("\n"))
    found = subprocess.run(
        [SHELLCHECK, *scripts.values(), path], capture_output=True, text=True
    )
    assert not found.stdout
    assert found.returncode == 0


def test_lines_are_as_long_as_lines_may_be(scripts):
    for path in scripts.values():
        for line in path.read_text(encoding="utf-8").splitlines():
            fits = len(line) <= shell_script.WIDTH
            assert fits or line.startswith("export "), f"{path}: {line}"


@pytest.mark.parametrize("value", ["1", "", "a b", "a}b{c}", 'a:b\\:$c`d"'])
def test_a_variable_is_what_the_recipe_says_and_the_users_own_wins(value):
    text = shell_script.exported("OF_RECIPE", value) + '\nprintf %s "$OF_RECIPE"'
    for own, expected in (None, value), ("mine", "mine"):
        environment = {} if own is None else {"OF_RECIPE": own}
        command = ["bash", "-c", text]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (expected, "")


@pytest.mark.parametrize("setting", SETTINGS, ids=" ".join)
def test_bash_runs_each_script_to_its_table_or_its_model(setting, scripts, tmp_path):
    work, data = tmp_path / "some work", tmp_path / "raw data"
    data.mkdir()
    name, *small = setting
    path = scripts["".join(setting)]
    found = bash_stubs.noted(path, tmp_path / "stubs", work, data)
    assert not [word for words in found for word in words if "$" in word]
    recipe = f"examples/{name}"
    assert found[0][:3] == ["sbnmt", "prepare", recipe]
    assert (str(data) in found[0]) == ("WORK DATA" in header(path))
    table = ["sbnmt", "table", "--recipe", recipe, *small, "--work", str(work)]
    if setting is ANY:  # one row becomes the model; scores are printed on the way
        assert found[-1][:2] == ["sbnmt", "bundle"]
        assert found[-1][-2:] == ["--output", f"{work}/model"]
    else:
        assert found[-1] == table
    outputs = [words[-1] for words in found if words[1] == "evaluate"]
    rows = [os.path.basename(path).removesuffix(".json") for path in outputs]
    said = re.search(r"Its rows: ([^.]*)\.", header(path))[1]
    assert sorted(said.split(", ")) == sorted(rows)


def header(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("toy", ["."], "File exists"),
        ("wmt14_en_de", ["."], "give WORK and DATA, as said above"),
        ("wmt14_en_de", ["work", "raw"], "/raw must be the folder DATA"),
    ],
)
def test_a_script_needs_a_new_folder_and_its_data(tmp_path, name, words, said):
    path = ROOT / "examples" / name / "run.sh"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        bash_stubs.noted(path, tmp_path / "stubs", *(tmp_path / x for x in words))
    assert said in caught.value.stderr
    assert not (tmp_path / "work").exists()


def test_a_script_of_a_clone_runs_in_its_place_alone(tmp_path):
    """Elsewhere it would read, and write, the folders of another place."""
    text = (ROOT / "examples" / "toy" / "run.sh").read_text(encoding="utf-8")
    path = put(tmp_path / "a" / "b" / "mine.sh", text.rstrip("\n"))
    with pytest.raises(subprocess.CalledProcessError) as caught:
        bash_stubs.noted(path, tmp_path / "stubs")
    assert caught.value.stderr == "save this script in examples/toy, where it runs\n"
    assert not (tmp_path / "work").exists()


ROWS = ["teacher-l2r", "rnmt", "rerank", "transformer-pl", "sb", "sb-finetuned", "sb@2"]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What the driver runs of a small recipe, and the script that is printed of it.

    Nothing is run: of a step's output the driver asks only whether it is there.

    Returns:
        Command lines, with the work folder's name cut off; the script's path.
    """
    root = tmp_path_factory.mktemp("both")
    folder = in_process.write_recipe(root / "recipe", rows=ROWS, average=2)
    ran = []

    def note(self, step):
        ran.append([str(word) for word in step.words])
        step.makes.parent.mkdir(parents=True, exist_ok=True)
        step.makes.touch()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner.Runner, "run", note)
        patch.setattr(run_recipe, "write_table", lambda *_: {"rows": []})
        patch.setattr(run_recipe, "render_table", lambda _: "")
        call(run_recipe, folder, "--work", root / "work")
    with captured() as output:
        call(run_recipe, folder, "--print")
    (root / "run.sh").write_text(output.text, encoding="utf-8")
    return without(ran, root / "work"), root / "run.sh"


def without(commands, work):
    return [[word.replace(str(work), "WORK") for word in words] for words in commands]


def assert_same(ran, path, folder):
    """The script's commands are the driver's, in its order, and then the table."""
    work = folder / "work"
    *found, table = without(bash_stubs.noted(path, folder / "stubs", work), work)
    assert table[:2] == ["sbnmt", "table"]
    for number, (one, other) in enumerate(zip(ran, found)):
        ours, theirs = (bash_stubs.options(words) for words in (one, other))
        assert ours == theirs, f"command {number} differs: {one[:2]}"
    assert len(ran) == len(found), "there are more commands, or fewer"


def test_a_script_runs_what_the_driver_does_command_by_command(both, tmp_path):
    ran, path = both
    assert {" ".join(words[:2]).split(" /")[0] for words in ran} >= {
        *("sbnmt prepare", "sbnmt binarise", "sbnmt average", "sbnmt evaluate"),
        *("sbnmt pseudo", "sbnmt triples", "sbnmt rerank", "sbnmt probe-reading"),
        *("fairseq-train WORK/data", "fairseq-generate WORK/data"),
    }
    assert_same(ran, path, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("--sb-lambda 1.0", "--sb-lambda 0.9", "differs: .'fairseq-train"),
        ("\n# The table\n", "\nsbnmt probe-reading\n# The table\n", "more commands"),
        (
            r'("\$\{search\[@\]\}")([^#]*?)--beam 10',
            r"--beam 10 \1\2",
            "differs: .'sbnmt', 'rerank'",
        ),
    ],
)
def test_the_comparison_can_fail(both, tmp_path, old, new, message):
    ran, path = both
    changed, count = re.subn(old, new, path.read_text(encoding="utf-8"), count=1)
    assert count == 1
    with pytest.raises(AssertionError, match=message):
        assert_same(ran, put(tmp_path / "run.sh", changed), tmp_path)


def step(*words):
    return Step("name", "Do it", words_of(*words), WORK / "made")


def test_shared_options_are_written_once():
    steps = [
        step("fairseq-train", WORK / "data", "--seed", 1, "--arch", "a", "--lr", 2),
        step("fairseq-train", WORK / "data", "--seed", 1, "--arch", "b.c", "--x"),
        step("fairseq-train", WORK / "data", "--seed", 1, "--arch", "b.c", "--x"),
    ]
    found = shell_script.arrays(steps)
    assert not found.get(steps[0])  # no other is of its architecture
    array = found[steps[1]]
    assert (array.name, array.units) == (
        "b_c",
        (("--seed", "1"), ("--arch", "b.c"), ("--x",)),
    )
    shown = [shell_script.show_step(x, found.get(x), clone=False) for x in steps]
    assert shown[0] == ['fairseq-train "$work/data" --seed 1 --arch a --lr 2']
    assert shown[1] == shown[2] == ['fairseq-train "$work/data" "${b_c[@]}"']


def test_of_an_option_that_comes_twice_the_last_stays_the_last():
    """As --beam of rerank, which overrides that of `decode`."""
    twice = step("sbnmt", "rerank", "--beam", 4, "--x", 1, "--beam", 10)
    late = step("sbnmt", "pseudo", "--beam", 10, "--x", 1)
    first = step("sbnmt", "pseudo", "--beam", 4, "--x", 1)
    array = shell_script.arrays([twice, first])[twice]
    assert array.units == (("--beam", "4"), ("--x", "1"))
    (line,) = shell_script.show_step(twice, array, clone=False)
    assert line == 'sbnmt rerank "${search[@]}" --beam 10'
    array = shell_script.arrays([twice, late])[late]
    assert array.units == (("--x", "1"),)  # the first --beam of rerank is not 10


def test_words_reach_bash_as_they_are(tmp_path, capsys):
    words = ["it's", 'a "b" $c `d` \\e', "", "*", "{'x': 1}"]
    steps = [step("sbnmt", *words, WORK / 'f $x "y"')]
    run = Run({"data": "", "environment": {}}, WORK, tmp_path)
    asked = ["--adam-betas", "(0.9, 0.98)"]
    text = shell_script.render(steps, run, [Row("sb")], asked)
    assert f"recipe {tmp_path} {shlex.join(asked)} --print" in text.replace("\n# ", " ")
    path = put(tmp_path / "x.sh", text.rstrip("\n"))
    (found,) = bash_stubs.noted(path, tmp_path / "stubs", tmp_path / "my work")
    assert found == ["sbnmt", *words, str(tmp_path / "my work" / 'f $x "y"')]


def test_rows_and_setting_are_said_in_the_script(capsys):
    text = printed(capsys, "multi30k", "--small", "--rows", "sb", "sb@2")
    assert "# Its rows: sb, sb@2." in text
    said = "`sbnmt recipe examples/multi30k --small --rows sb sb@2 --print`"
    assert said in text.replace("\n# ", " ")
    assert "work=${1:-work/multi30k-small}" in text
    assert "teacher-l2r.json" not in text  # they are trained, and not a row
