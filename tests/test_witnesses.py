"""What 0.2.0 has made is of use: checkpoints, work folders, and what users name.

data/0.2.0 holds checkpoints of all families, and of options that later versions may do
without, with what each translates; names of options, architectures, weights and Python;
two finished work folders.  data/checkpoint-0.1.0 holds one of that version.  The
programs that have made them lie beside them at commit 74a48b6.
"""

import argparse
import copy
import importlib
import json
import shutil

import in_process
import pytest
import torch
from commands import PLUGIN, RETIRED, ROOT, lines, load, run_interactive
from fairseq import options
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from fairseq_cli import train as fairseq_train
from steps import call

from sbnmt_plugin.model import SBTransformerModel
from sbnmt_plugin.search.registry import SEARCHES
from sbnmt_plugin.tools.commands import recipe as run_recipe
from sbnmt_plugin.tools.commands import table as show_table
from sbnmt_plugin.tools.recipes import runner
from sbnmt_plugin.tools.recipes.rows import Row

HERE = ROOT / "tests" / "data" / "0.2.0"
DATA = HERE / "data"
TEXT = (HERE / "input.en").read_text()
EXPECTED = json.loads((HERE / "expected.json").read_text())
NAMES = json.loads((HERE / "names.json").read_text())
OLD = ROOT / "tests" / "data" / "checkpoint-0.1.0"
# its translations are of the same text
EXPECTED["decoded"]["0.1.0"] = json.loads((OLD / "expected.json").read_text())

CHECKPOINTS = list(EXPECTED["trained"])
FORTH = ["--source-lang", "en", "--target-lang", "de"]
SEARCHED = ["--sb-stop", "bound"]  # as all searches of 0.2.0 were
INTERFACE = {
    "sbnmt_plugin.model": "SBTransformerModel",
    "sbnmt_plugin.hub": "SBHubInterface",
    "sbnmt_plugin.tools.translator": "Translator",
}


def files(words):
    """The words of a command, of which @NAME is a file here."""
    return [str(HERE / x[1:]) if x.startswith("@") else x for x in words]


def place_of(name):
    """A checkpoint's folder, its name, and its data folder."""
    return (OLD, "model.pt", OLD) if name == "0.1.0" else (HERE, f"{name}.pt", DATA)


def assert_decodes_as_before(name, path=None, *more):
    case = EXPECTED["decoded"][name]
    folder, file, data = place_of(case.get("checkpoint", name))
    words = [*FORTH, *files(case["options"]), *SEARCHED, *more]
    output = run_interactive(data, path or folder / file, TEXT, *words)
    found = {str(index): rows for index, rows in lines(output, "H").items()}
    assert found.keys() == case["hypotheses"].keys()
    for index, before in case["hypotheses"].items():
        if not TEXT.splitlines()[int(index)].strip():  # which had words made up
            assert {text for _, text in found[index]} == {""}
            continue
        assert [text for _, text in found[index]] == [text for _, text in before]
        scores, known = ([float(s) for s, _ in rows] for rows in (found[index], before))
        assert scores == pytest.approx(known, abs=2e-4)


@pytest.mark.parametrize("name", EXPECTED["decoded"])
def test_a_checkpoint_translates_as_it_did(name):
    assert len(EXPECTED["decoded"][name]["hypotheses"]) == len(TEXT.splitlines())
    assert_decodes_as_before(name)


@pytest.mark.parametrize(
    ("name", "group", "options"),
    [
        ("sb-reader", "model", {"sb_reader": True, "sb_freeze_writer": True}),
        ("sb-reader-free", "model", {"sb_reader": True, "sb_freeze_writer": False}),
        ("sb-dropped", "model", {"sb_partner_dropout": 0.5}),
        ("sb-same", "task", {"sb_same_text": 0.5}),
        ("sb-own", "task", {"sb_partner": "own", "sb_partner_noise": 0.5}),
    ],
)
def test_a_witness_of_a_retired_option_has_it(name, group, options):
    settings = load(HERE / f"{name}.pt")["cfg"][group]
    settings = settings if isinstance(settings, dict) else vars(settings)
    assert {key: settings[key] for key in options} == options


FAMILIES = ["sb", "abd", "ba", "two-way", "enat-phrase", "enat-map", "teacher-r2l"]


@pytest.mark.parametrize("name", FAMILIES)
def test_the_check_of_translations_can_fail(name, tmp_path):
    state = load(HERE / f"{name}.pt")
    for key, value in state["model"].items():
        if key.endswith(("embed_tokens.weight", "output_projection.weight")):
            state["model"][key] = -value
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(AssertionError):
        assert_decodes_as_before(name, tmp_path / "model.pt", "--max-len-b", 20)


@pytest.mark.parametrize("name", [*CHECKPOINTS, "0.1.0"])
def test_a_checkpoint_has_the_python_interface(name):
    folder, file, data = place_of(name)
    architecture = load(folder / file)["cfg"]["model"].arch
    model = ARCH_MODEL_REGISTRY[architecture]
    if not model.__module__.startswith("sbnmt_plugin"):
        model = SBTransformerModel  # a teacher
    table = {"enat_table": str(HERE / "table")} if name == "enat-phrase" else {}
    hub = model.from_pretrained(
        *(str(folder), file, str(data)),
        source_lang="en",
        target_lang="de",
        num_workers=0,
        **table,
    )
    weights = hub.models[0].state_dict()
    shapes = {key: list(value.shape) for key, value in weights.items()}
    assert shapes == NAMES["weights"].get(name, shapes)
    texts = [line for line in TEXT.splitlines() if line]
    answers = EXPECTED["decoded"][name]["hypotheses"]
    known = [answers[str(i)][0][1] for i, line in enumerate(TEXT.splitlines()) if line]
    assert hub.translate(texts, beam=4, lenpen=0.6) == known


def words_of(name):
    """The words of a witness's training that are options still."""
    words = files(EXPECTED["trained"][name])
    for flag in set(RETIRED) & set(words):
        place = words.index(flag)
        valued = words[place + 1 : place + 2] and not words[place + 1].startswith("--")
        del words[place : place + 1 + bool(valued)]
    return words


def train(folder, words):
    """The checkpoint of fairseq-train, which one in the folder lets go on."""
    command = [str(DATA), "--save-dir", str(folder), *PLUGIN, *words]
    args = options.parse_args_and_arch(options.get_training_parser(), command)
    fairseq_train.main(convert_namespace_to_omegaconf(args))
    return load(folder / "checkpoint_last.pt")


def go_on(name, folder):
    """The L2 norms of all weights after one more update."""
    folder.mkdir()
    shutil.copy(HERE / f"{name}.pt", folder / "checkpoint_last.pt")
    updates = EXPECTED["resumed"][name]["updates"] + 1
    words = [*words_of(name), "--max-epoch", "0", "--max-update", str(updates)]
    last = train(folder, words)
    assert last["optimizer_history"][-1]["num_updates"] == updates
    return {key: float(value.double().norm()) for key, value in last["model"].items()}


def known_norms(name):
    """As they were; about so where an option that is gone has changed the batches."""
    tolerance = 0.03 if name == "sb-same" else 1e-3
    return pytest.approx(EXPECTED["resumed"][name]["norms"], abs=tolerance)


@pytest.mark.parametrize("name", EXPECTED["resumed"])
def test_a_training_goes_on(name, tmp_path):
    assert go_on(name, tmp_path / "last") == known_norms(name)


@pytest.mark.parametrize("name", sorted({*EXPECTED["resumed"]} - {"sb-same"}))
def test_an_optimiser_that_has_forgotten_would_be_noticed(name, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.optim.Optimizer, "load_state_dict", lambda *_: None)
    monkeypatch.setattr(
        "fairseq.optim.FairseqOptimizer.load_state_dict", lambda *_, **__: None
    )
    assert go_on(name, tmp_path / "last") != known_norms(name)


def started(name, folder, *more):
    """The weights after an update that changes nothing."""
    words = words_of(name)
    words += ["--lr", "0", "--max-update", "1", "--disable-validation", *more]
    return train(folder, words)["model"]


def assert_starts_from(name, folder, *more):
    weights = load(HERE / f"{name}.pt")["model"]
    found = started(name, folder, *more)
    assert found.keys() == weights.keys()
    assert all(found[key].equal(value) for key, value in weights.items())


@pytest.mark.parametrize("name", [name for name in CHECKPOINTS if name[:2] == "sb"])
def test_a_training_starts_from_it(name, tmp_path):
    path = HERE / f"{name}.pt"
    assert_starts_from(name, tmp_path / "save", "--finetune-from-model", str(path))


def test_a_start_from_nothing_would_be_noticed(tmp_path):
    with pytest.raises(AssertionError):
        assert_starts_from("sb", tmp_path / "save")


def test_a_training_starts_from_a_teacher(tmp_path):
    path = HERE / "teacher-l2r.pt"
    words = ["--decoder-layers", "1", "--finetune-from-model", str(path)]
    found = started("sb", tmp_path / "save", *words)
    for key, value in load(path)["model"].items():
        if key.startswith("encoder.layers."):
            assert found[key].equal(value)


def ours(registry):
    """What the plugin has registered."""
    return {
        name: registered
        for name, registered in registry.items()
        if registered.__module__.startswith("sbnmt_plugin")
    }


def options_of(registered):
    """The options of a task, model or criterion: flag -> choices."""
    parser = argparse.ArgumentParser(add_help=False)
    registered.add_args(parser)
    return {
        flag: sorted(map(str, action.choices)) if action.choices else None
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        for flag in action.option_strings
    }


def settings_of(architecture):
    """What an architecture sets where a command says nothing."""
    args = argparse.Namespace()
    ARCH_CONFIG_REGISTRY[architecture](args)
    return {name: str(value) for name, value in vars(args).items()}


def names():
    """Every name that is registered with fairseq or the search."""
    kinds = {"task": TASK_REGISTRY, "model": MODEL_REGISTRY}
    kinds["criterion"] = CRITERION_REGISTRY
    found = {kind: ours(registry) for kind, registry in kinds.items()}
    return {
        **{kind: [*registered] for kind, registered in found.items()},
        "search": [*SEARCHES],
        "architecture": {name: settings_of(name) for name in ours(ARCH_MODEL_REGISTRY)},
        "options": {
            f"{kind} {name}": options_of(each)
            for kind, registered in found.items()
            for name, each in registered.items()
        },
    }


def missing(found):
    """Names of 0.2.0 that are registered no more, or stand for something else."""
    for kind in "task", "model", "criterion", "search", "architecture":
        yield from set(NAMES[kind]) - set(found[kind])
    for architecture, settings in NAMES["architecture"].items():
        now = found["architecture"].get(architecture, settings)
        for name, value in settings.items():
            if now.get(name) != value:
                yield "--" + name.replace("_", "-")
    for owner, flags in NAMES["options"].items():
        now = found["options"].get(owner, flags)
        for flag, choices in flags.items():
            if flag not in now or set(choices or ()) - set(now[flag] or ()):
                yield flag


# of fairseq's loss, which ours does not act on: argparse does not know them
LEFT_OUT = "--report-accuracy", "--ignore-prefix-size"


def test_what_was_registered_still_is():
    assert set(missing(names())) == {*RETIRED, *LEFT_OUT}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (("search", "parallel"), "parallel"),
        (("architecture", "ba_nmt"), "ba_nmt"),
        (("architecture", "two_way_tiny", "two_way_units"), "--two-way-units"),
        (("options", "task sb_translation", "--sb-answer"), "--sb-answer"),
        (("options", "model rnnsearch", "--ba-history-size"), "--ba-history-size"),
    ],
)
def test_a_name_that_is_gone_would_be_noticed(path, name):
    found = copy.deepcopy(names())
    *way, last = path
    place = found
    for step in way:
        place = place[step]
    place.remove(last) if isinstance(place, list) else place.pop(last)
    assert name in set(missing(found)) - set(RETIRED)


def imported(module, name):
    """Whether ``from module import name`` finds something."""
    try:
        found = importlib.import_module(module)
        return hasattr(found, name) or bool(importlib.import_module(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


def test_what_scripts_import_is_there():
    """The interface, and what recipes import to prepare a user's texts."""
    pairs = [
        (entry["module"], entry["name"])
        for entry in NAMES["python"]
        if any(path.endswith("prepare.py") for path in entry["used by"])
    ]
    for module, name in [*INTERFACE.items(), *pairs]:
        assert imported(module, name), f"{module}.{name}"


def test_an_import_that_fails_would_be_noticed():
    assert not imported("sbnmt_plugin.tools.command", "run_away")
    assert not imported("sbnmt_plugin.tools.no_command", "run")


@pytest.fixture(params=["work", "work-rows"])
def old(request):
    return HERE / request.param


@pytest.fixture
def work(old, tmp_path):
    return in_process.unpacked(old, tmp_path / "work")


@pytest.fixture
def begun(monkeypatch):
    """The steps that the driver takes; none is run."""
    found = []
    monkeypatch.setattr(runner.Runner, "run", lambda self, step: found.append(step))
    return found


def rows(path):
    return json.loads(path.read_text())["rows"]


def test_a_finished_work_folder_is_done_and_only_printed(old, work, begun, capsys):
    """Rows that are no longer trained are shown, too."""
    known = {row["name"]: row for row in rows(old / "table.json")}
    asked = [name for name in known if not Row.parse(name).system.remedy]
    call(run_recipe, old, "--work", work, "--rows", *asked)
    assert begun == []
    made = {row["name"]: row for row in rows(work / "table.json")}
    assert made.keys() == known.keys()
    for name, row in made.items():  # whose costs are fewer now
        assert {key: known[name][key] for key in row} == row
        assert {"title", "tokenised BLEU", "updates"} & known[name].keys() <= row.keys()
    capsys.readouterr()
    call(show_table, "--recipe", old, "--work", work)
    printed = capsys.readouterr().out
    assert all(row["title"] in printed for row in known.values())


@pytest.mark.parametrize("old", [HERE / "work"], ids=["work"])
@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("results/sb-shift.json", "evaluate/sb-shift"),
        ("results/sb-shift+rescored.json", "evaluate/sb-shift+rescored"),
        ("results/interaction/sb-shift.json", "interaction/sb-shift"),
    ],
)
def test_a_file_that_is_missing_would_have_been_seen(work, old, begun, name, step):
    (work / name).unlink()
    call(run_recipe, old, "--work", work)
    assert step in [taken.name for taken in begun]


@pytest.mark.parametrize("old", [HERE / "work-rows"], ids=["work-rows"])
def test_another_start_of_a_reader_would_have_been_seen(work, old, begun):
    """A row's book says from what it has started."""
    path = work / "sb-reader-two" / "options.json"
    book = json.loads(path.read_text())
    book["starts from"]["--lr"] = 0.5
    path.write_text(json.dumps(book))
    with pytest.raises(ValueError, match=r"begun with other options .*starts from"):
        call(run_recipe, old, "--work", work, "--rows", "sb-reader-two")
