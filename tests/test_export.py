"""``sbnmt export``: a folder that appears whole, or a line that says why not."""

import re

import pytest
from exporting import model_folder, run_export, some_lines, without_interaction

from sbnmt_plugin.tools.commands import export
from sbnmt_plugin.tools.models import conversion
from sbnmt_plugin.tools.models.description import read_description
from sbnmt_plugin.tools.models.folder import load

pytest.importorskip("ctranslate2")


@pytest.fixture(scope="module")
def free(trained, data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("free")
    checkpoint = without_interaction(trained, folder / "free.pt")
    return model_folder(
        checkpoint, data, folder / "model", "--sb-rescore", 1, "--beam", 6
    )


@pytest.fixture(scope="module")
def interacting(trained, data, tmp_path_factory):
    return model_folder(trained, data, tmp_path_factory.mktemp("both") / "model")


@pytest.fixture
def texts(tmp_path):
    sources = some_lines(12)
    for name, lines in ("en", sources), ("de", map(str.upper, sources)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    return tmp_path / "en", tmp_path / "de"


def test_the_folder_keeps_what_the_model_folder_says(free, tmp_path):
    run_export(free, tmp_path / "made")
    before, after = read_description(free), read_description(tmp_path / "made")
    assert after.engine == "ctranslate2"
    for name in ("source", "target", "directions", "search", "scores"):
        assert getattr(after, name) == getattr(before, name)
    assert after.provenance.items() >= before.provenance.items()
    assert after.provenance["export"]["quantization"] == "float32"
    assert "model.bin" in after.files and "model.pt" not in after.files


@pytest.mark.parametrize("kind", export.TYPES)
def test_weights_of_every_type_are_written_and_translate(free, tmp_path, kind):
    run_export(free, tmp_path / kind, "--quantization", kind)
    lines = some_lines(8)
    assert len(load(tmp_path / kind).translate(lines)) == len(lines)


def test_interaction_is_left_out_only_where_that_is_asked_for_and_measured(
    interacting, texts, tmp_path
):
    output = tmp_path / "made"
    for words, wanted in (
        ([], "--without-interaction and --validation SOURCE"),
        (["--without-interaction"], "--validation SOURCE"),
        (["--validation", *texts], "--without-interaction"),
    ):
        with pytest.raises(ValueError, match=f"that read each other, .* add {wanted}"):
            run_export(interacting, output, *words)
        assert not output.exists()
    words = ["--without-interaction", "--validation", *texts]
    printed = run_export(interacting, output, *words)
    cost = read_description(output).scores["export"]
    found = re.match(r"BLEU (\S+), exported (\S+)\n", printed)
    assert [x["score"] for x in cost.values()] == list(map(float, found.groups()))
    assert all("version:" in x["signature"] for x in cost.values())
    assert cost["torch"]["score"] > 20


def test_a_model_without_interaction_says_so(free, tmp_path, capsys):
    run_export(free, tmp_path / "made", "--without-interaction")
    assert "has no interaction to leave out" in capsys.readouterr().err
    assert (tmp_path / "made").is_dir()


def test_what_is_there_or_exported_already_is_refused(free, tmp_path):
    with pytest.raises(FileExistsError, match="--output"):
        run_export(free, tmp_path)
    run_export(free, tmp_path / "made")
    with pytest.raises(ValueError, match="is exported"):
        run_export(tmp_path / "made", tmp_path / "again")


def test_a_model_that_is_not_converted_exactly_leaves_no_folder(
    free, tmp_path, monkeypatch
):
    monkeypatch.setattr(conversion, "TOLERANCE", -1.0)
    with pytest.raises(ValueError, match="must score texts as the model does"):
        run_export(free, tmp_path / "made")
    assert not list(tmp_path.iterdir())


def test_a_line_that_cannot_be_translated_is_named_first(
    free, texts, tmp_path, monkeypatch
):
    monkeypatch.setattr(conversion, "convert", None)
    lines = texts[0].read_text().split("\n")
    texts[0].write_text("\n".join([lines[0], "w1 " * 2000, *lines[2:]]))
    message = f"--validation {texts[0]}: line 2 cannot be translated: 2001 tokens"
    with pytest.raises(ValueError, match=f"{message}.*: leave it out"):
        run_export(free, tmp_path / "made", "--validation", *texts)


def test_texts_that_are_not_parallel_are_refused_first(free, texts, tmp_path):
    texts[0].write_text("w1\n")
    with pytest.raises(ValueError, match="must have as many lines"):
        run_export(free, tmp_path / "made", "--validation", *texts)
