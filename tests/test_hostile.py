"""Hostile and damaged checkpoints: refused at every door, before any code runs."""

import argparse
import io
import os
import pickle
import shutil
import sys
import zipfile
from pathlib import Path
from unittest import mock

import pytest
import torch
import yaml
from commands import ROOT, SB, load, run_generate, run_interactive, run_train
from exporting import model_folder
from steps import call

from sbnmt_plugin import checkpoints
from sbnmt_plugin.families.enat.search import load_teacher
from sbnmt_plugin.model import SBTransformerModel
from sbnmt_plugin.tools.commands import average
from sbnmt_plugin.tools.models.description import parsed
from sbnmt_plugin.tools.models.folder import load as load_folder
from sbnmt_plugin.tools.translator import Translator
from sbnmt_plugin.training.checksums import sha256_of

CANARY = Path(os.environ.get("TMPDIR", "/tmp")) / f"sbnmt-canary-{os.getpid()}"


class Calls:
    """Runs a command when it is unpickled."""

    def __init__(self, function, *words):
        self.what = function, words

    def __reduce__(self):
        return self.what


def archive(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as packed:
        for name, content in members.items():
            packed.writestr(name, content)


def pickled(value):
    return pickle.dumps(value, protocol=2)


def with_code(path, state):
    torch.save({**state, "more": Calls(os.system, f"touch {CANARY}")}, path)


def without_zip(path, state):
    path.write_bytes(pickled({"model": {}, "x": Calls(os.system, f"touch {CANARY}")}))


def two_in_one(path, state):
    """A pickle at the front, a zip file at the end."""
    file = io.BytesIO()
    torch.save(state, file)
    code = pickled(Calls(os.system, f"touch {CANARY}"))
    path.write_bytes(code + file.getvalue())


def bomb(path, state):
    """A few hundred kilobytes that unpack to 200 megabytes."""
    content = b"\0" * 200_000_000
    archive(path, {"a/data.pkl": content, "a/version": "3\n"}, zipfile.ZIP_DEFLATED)


def declared(path, state):
    """A zip file that says that a member is larger than the file."""
    torch.save(state, path)
    content = bytearray(path.read_bytes())
    place = content.rindex(b"PK\x01\x02")
    content[place + 20 : place + 28] = (2**31 - 1).to_bytes(4, "little") * 2
    path.write_bytes(content)


def changed(path, state):
    """One byte of a parameter."""
    torch.save(state, path)
    content = bytearray(path.read_bytes())
    weight = state["model"]["encoder.embed_tokens.weight"]
    place = content.index(weight.numpy().tobytes()[:64])
    content[place + 2] ^= 1
    path.write_bytes(content)


def expanded(path, state):
    """A terabyte of parameters in four bytes."""
    state["model"]["encoder.embed_tokens.weight"] = torch.zeros(1).expand(2**19, 2**19)
    torch.save(state, path)


def sparse(path, state):
    value = torch.sparse_coo_tensor(torch.zeros(2, 1), torch.ones(1), (2**20, 2**20))
    state["model"]["encoder.embed_tokens.weight"] = value
    torch.save(state, path)


def wide(path, state):
    """Settings of a model that no memory holds."""
    state["cfg"]["model"].encoder_ffn_embed_dim = 2**40
    torch.save(state, path)


def far(path, state):
    state["cfg"]["model"].max_source_positions = 2**40
    torch.save(state, path)


def evaluated(path, state):
    """A text as a number of layers, which fairseq's fconv runs."""
    state["cfg"]["model"].encoder_layers = f"open({str(CANARY)!r}, 'w')"
    torch.save(state, path)


def attended(path, state):
    """Likewise, as fairseq's lstm does."""
    state["cfg"]["model"].decoder_attention = f"open({str(CANARY)!r}, 'w')"
    torch.save(state, path)


def renamed(path, state):
    """Another architecture than the one that the command line has named."""
    settings = state["cfg"]["model"]
    settings.arch, settings._name = "transformer", "fconv_self_att"
    settings.pretrained = f"open({str(CANARY)!r}, 'w')"
    torch.save(state, path)


def looked_up(path, state):
    state["cfg"]["task"]["data"] = "${oc.env:HOME}"
    torch.save(state, path)


def hidden(path, state):
    """Likewise, where the settings' own words for themselves leave it out."""
    settings = vars(state["cfg"]["model"]) | {"data": "${oc.env:HOME}"}
    state["args"] = argparse.Namespace(**settings, _get_kwargs=list)
    state["cfg"] = None
    torch.save(state, path)


def no_tensors(path, state):
    state["model"] = {"encoder.embed_tokens.weight": "text"}
    torch.save(state, path)


def cut(path, state):
    """The beginning of a file, as a full disk leaves it."""
    torch.save(state, path)
    path.write_bytes(path.read_bytes()[:5000])


REFUSED = [
    *(with_code, without_zip, two_in_one, bomb, declared, changed, expanded, sparse),
    *(wide, far, evaluated, attended, looked_up, hidden, no_tensors, cut),
]


@pytest.fixture
def state(trained):
    """A checkpoint's content, which a test may change."""
    return load(trained)


@pytest.fixture
def hostile(request, state, tmp_path):
    """The checkpoint of a case."""
    path = tmp_path / "model.pt"
    request.param(path, state)
    yield path
    escaped = CANARY.exists()
    CANARY.unlink(missing_ok=True)
    assert not escaped, "code has run"


def finetunes(data, path):
    words = [*SB, "--finetune-from-model", path, "--max-epoch", 1]
    run_train(data, path.parent / "new", *words)


def continues(data, path):
    words = [*SB, "--continue-once", path, "--max-epoch", 1]
    run_train(data, path.parent / "new", *words)


def leads(data, path):
    """--nat-teacher; that the whole one is of another direction is said last."""
    cfg = argparse.Namespace(data=str(data), source_lang="en", target_lang="de")
    try:
        load_teacher(str(path), argparse.Namespace(cfg=cfg), None)
    except ValueError as error:
        if "must be a model of --sb-direction l2r, but is one of both" not in str(
            error
        ):
            raise


DOORS = {
    "teacher": leads,
    "generate": run_generate,
    "interactive": lambda data, path: run_interactive(data, path, "w1\n"),
    "resume": lambda data, path: run_train(
        data, path.parent, *SB, "--restore-file", path, "--max-epoch", 1
    ),
    "finetune": finetunes,
    "continue": continues,
    "average": lambda data, path: call(
        average, "--output", path.parent / "mean.pt", path
    ),
    "python": lambda data, path: SBTransformerModel.from_pretrained(
        str(path.parent), path.name, str(data), source_lang="en", target_lang="de"
    ),
    "translate": lambda data, path: Translator([str(data), "--path", str(path)]),
    "report": lambda data, path: checkpoints.read_checkpoint(str(path), "(--x)"),
}


# all doors look by the same function; the whole product was run once, see
# docs/operations.md
PAIRS = [(case, "report") for case in REFUSED]
PAIRS += [(case, door) for case in (with_code, looked_up, cut) for door in DOORS]


def name_of(x):
    """The same in every process, which an address is not."""
    return getattr(x, "__name__", str(x))


@pytest.mark.parametrize("hostile", [renamed], indirect=True)
@pytest.mark.parametrize("door", ["generate", "python"])
def test_the_architecture_that_is_built_is_judged(data, hostile, door):
    with pytest.raises(ValueError, match="arch fconv_self_att is not supported by sb_"):
        DOORS[door](data, hostile)


@pytest.mark.parametrize(
    ("hostile", "door"), dict.fromkeys(PAIRS), indirect=["hostile"], ids=name_of
)
def test_a_hostile_checkpoint_is_refused_at_every_door(data, hostile, door):
    with (
        mock.patch("sys.argv", ["test"]),
        pytest.raises(ValueError, match=r"model\.pt .*use another one"),
    ):
        DOORS[door](data, hostile)
    assert not (hostile.parent / "mean.pt").exists()


def test_what_is_refused_would_run_where_nobody_looks(state, tmp_path):
    """The twin: the cases do what they say."""
    with_code(tmp_path / "model.pt", state)
    torch.load(tmp_path / "model.pt", weights_only=False)
    assert CANARY.exists()
    CANARY.unlink()


def test_the_whole_checkpoint_is_let_in_at_every_door(data, state, tmp_path):
    for name, door in DOORS.items():
        folder = tmp_path / name
        folder.mkdir()
        torch.save(state, folder / "model.pt")
        with mock.patch("sys.argv", ["test"]):
            door(data, folder / "model.pt")


def extra(state):
    state["model"]["encoder.more.weight"] = torch.zeros(3)


def reshaped(state):
    weight = state["model"]["encoder.embed_tokens.weight"]
    state["model"]["encoder.embed_tokens.weight"] = weight[:, :-1].clone()


@pytest.mark.parametrize("change", [extra, reshaped])
def test_parameters_of_another_model_are_an_error(data, state, tmp_path, change):
    change(state)
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(Exception, match=r"(?i)encoder\.(more|embed_tokens)\.weight"):
        run_generate(data, tmp_path / "model.pt")


def test_a_checkpoint_names_no_code_and_no_data(data, state, tmp_path):
    """What it says of --user-dir and data is not what is read."""
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "__init__.py").write_text(f"open({str(CANARY)!r}, 'w')\n")
    for group in ("common", "task", "model"):
        for name in ("user_dir", "data"):
            if hasattr(state["cfg"][group], name) or name in state["cfg"][group]:
                place = state["cfg"][group]
                evil = str(tmp_path / "evil")
                if isinstance(place, dict):
                    place[name] = evil
                else:
                    setattr(place, name, evil)
    torch.save(state, tmp_path / "model.pt")
    DOORS["generate"](data, tmp_path / "model.pt")
    DOORS["python"](data, tmp_path / "model.pt")
    assert not CANARY.exists()


def test_a_trained_model_reads_no_file_of_embeddings(data, state, tmp_path):
    state["cfg"]["model"].encoder_embed_path = str(tmp_path / "none")
    torch.save(state, tmp_path / "model.pt")
    assert "H-0" in run_generate(data, tmp_path / "model.pt")


@pytest.mark.parametrize("group", ["bpe", "tokenizer"])
def test_a_checkpoint_chooses_no_file_of_subwords(data, state, tmp_path, group):
    state["cfg"][group] = {"_name": "subword_nmt", "bpe_codes": "/etc/passwd"}
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(ValueError, match="must not choose what is read"):
        DOORS["python"](data, tmp_path / "model.pt")


def test_a_checkpoint_of_another_task_is_refused_in_python(data, state, tmp_path):
    state["cfg"]["task"] = {"_name": "speech_to_text", "data": "/etc"}
    torch.save(state, tmp_path / "model.pt")
    with pytest.raises(ValueError, match="must have been trained by task sb_trans"):
        DOORS["python"](data, tmp_path / "model.pt")


# model folders


WITNESSES = ROOT / "tests" / "data" / "0.2.0"


@pytest.fixture(scope="module")
def bundled(tmp_path_factory):
    output = tmp_path_factory.mktemp("bundled") / "model"
    return model_folder(WITNESSES / "sb.pt", WITNESSES / "data", output)


def linked(folder, told):
    """A dictionary that is another file of the reader's."""
    path = folder / "dict.en.txt"
    moved = shutil.move(path, folder.parent / "elsewhere")
    path.symlink_to(moved)


def linked_description(folder, told):
    path = folder / "model.yaml"
    moved = shutil.move(path, folder.parent / "elsewhere.yaml")
    path.symlink_to(moved)
    return path.read_text()


def outside(name):
    """A file of another folder, with its true checksum."""

    def change(folder, told):
        other = folder.parent / "dict.en.txt"
        shutil.copy(folder / "dict.en.txt", other)
        told["files"][name.format(folder.parent)] = sha256_of(other)

    return change


def other_language(folder, told):
    """A language by which a dictionary outside would be read."""
    told["source"]["language"] = "x/../../en"


def user_module(folder):
    """A module that tells of its import, and the language by which fairseq has it."""
    (folder / "hostile_user").mkdir()
    code = f"open({str(CANARY)!r}, 'w')\n"
    (folder / "hostile_user" / "__init__.py").write_text(code)
    return "--user-dir=hostile_user"


def called(folder, told, language):
    """A language of the source, with its dictionary."""
    old, new = "dict.en.txt", f"dict.{language}.txt"
    shutil.move(folder / old, folder / new)
    told["files"][new] = told["files"].pop(old)
    told["source"]["language"] = language


def flag(folder, told):
    """A language that is a flag of fairseq's, which imports code."""
    called(folder, told, user_module(folder.parent))


def interpolated(folder, told):
    """A language in which fairseq would put the reader's environment."""
    called(folder, told, "${oc.env:HOME}")


def unlisted(folder, told):
    del told["files"]["dict.en.txt"]


def broken_number(folder, told):
    """A number by which the reader of YAML itself fails, in a way of its own."""
    return "engine: !!int ''\n"


def without_sums(folder, told):
    del told["files"]["model.pt"]


def swapped(folder, told):
    """A byte of a weight is another."""
    content = bytearray((folder / "model.pt").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "model.pt").write_bytes(content)


def code_in_the_checkpoint(folder, told):
    with_code(folder / "model.pt", load(folder / "model.pt"))
    told["files"]["model.pt"] = sha256_of(folder / "model.pt")


def code_in_the_description(folder, told):
    return f"engine: !!python/object/apply:os.system ['touch {CANARY}']\n"


def norwegian(folder, told):
    """What YAML takes a bare no for."""
    told["source"]["language"] = False


def aliases(folder, told):
    """A few lines that stand for a million of values."""
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, 7):
        rows.append(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]")
    return "\n".join(rows)


def deep(folder, told):
    return "[" * 10**5


def large(folder, told):
    return "engine: fairseq\n" + "#" * 2**20


def another_key(folder, told):
    told["user_dir"] = "evil"


def no_name(folder, told):
    told["files"][1] = "x"


def another_type(folder, told):
    told["search"]["beam"] = "4 --user-dir evil"


def no_number(folder, told):
    told["search"]["lenpen"] = float("nan")


FOLDERS = {
    linked: "files must name files in the folder itself",
    linked_description: "a file of its own",
    outside("../dict.en.txt"): "files must name files in the folder itself",
    outside("{}/dict.en.txt"): "files must name files in the folder itself",
    other_language: r"source.language must be a text of the form .*x/../../en",
    flag: "source.language must be a text of the form .*--user-dir=hostile_user",
    norwegian: "source.language must be a text of the form .*False",
    interpolated: "source.language must be a text of the form .*oc.env:HOME",
    unlisted: "files must have dict.en.txt",
    broken_number: r"must be YAML of plain values \(",
    without_sums: "files must have model.pt",
    swapped: "the checksum of model.pt is another",
    code_in_the_checkpoint: "cannot be read safely",
    code_in_the_description: "must be YAML of plain values",
    aliases: "must have no aliases",
    deep: "at most 20 levels",
    large: "of at most",
    another_key: "the key user_dir is unknown",
    no_name: "files must name files in the folder itself",
    another_type: "search.beam",
    no_number: "search.lenpen",
}


def test_many_keys_are_no_levels(tmp_path):
    many = {f"key{i}": [] for i in range(30)}
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump(many))
    assert parsed(path) == many


@pytest.mark.parametrize(("change", "message"), FOLDERS.items(), ids=name_of)
def test_a_hostile_folder_is_refused(bundled, tmp_path, change, message, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "model"
    shutil.copytree(bundled, folder)
    load_folder(folder, device="cpu")  # as it is, it is let in
    told = yaml.safe_load((folder / "model.yaml").read_text())
    text = change(folder, told)
    if not (folder / "model.yaml").is_symlink():
        (folder / "model.yaml").write_text(text or yaml.safe_dump(told))
    with pytest.raises(ValueError, match=message):
        load_folder(folder, device="cpu")
    assert not CANARY.exists()


def test_a_language_of_two_words_would_import_code(bundled, tmp_path, monkeypatch):
    """The twin of the flag, and of the one word that a language is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    language = user_module(tmp_path)
    words = [str(bundled), "--path", str(bundled / "model.pt")]
    with pytest.raises(FileNotFoundError, match=r"dict\.--user-dir=hostile_user"):
        Translator([*words, f"--source-lang={language}", "--target-lang=de"])
    assert not CANARY.exists()
    with pytest.raises(SystemExit):
        Translator([*words, "--source-lang", language, "--target-lang", "de"])
    assert CANARY.exists()
    CANARY.unlink()
    del sys.modules["hostile_user"]


def test_the_code_of_a_description_would_run_where_nobody_looks():
    """The twin: the case does what it says."""
    yaml.unsafe_load(code_in_the_description(None, None))
    assert CANARY.exists()
    CANARY.unlink()
