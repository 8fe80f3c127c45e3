"""Multi30k's raw files, prepared for its recipe."""

import in_process
import pytest
from commands import ROOT
from steps import put

from sbnmt_plugin.tools import text as texts

SIZES = {"train": 2, "valid": 3, "test2016": 4, "test2017": 1, "coco2017": 5,
         "test2018": 6}  # fmt: skip


def prepared_multi30k(tmp_path, *sets, without=None, options=()):
    """From raw files of these test sets, a line of which says whose it is."""
    raw = tmp_path / "raw"
    for name in ("train", "valid", *sets):
        for language in ("en", "de"):
            lines = [f"{name} {language.upper()} {n}." for n in range(SIZES[name])]
            put(raw / f"{name}.{language}", *lines)
    put(raw / "test2017.fr", "Deux chiens.")  # as in the repository
    if without:
        (raw / without).unlink()
    script = ROOT / "examples" / "multi30k" / "prepare.py"
    words = ["--data", raw, "--output", tmp_path / "text", *options]
    in_process.run_script(script, *words)
    return tmp_path / "text"


def test_case_may_be_ignored(tmp_path):
    text = prepared_multi30k(tmp_path, "test2016", options=["--lowercase"])
    for split in "test", "test.ref", "train":
        assert (text / f"{split}.de").read_text().islower()


@pytest.mark.parametrize(
    "sets", [["test2016"], ["test2016", "coco2017", "test2018"], [*SIZES][2:]]
)
def test_further_test_sets_of_multi30k_follow_the_first(sets, tmp_path, capsys):
    text = prepared_multi30k(tmp_path, *sets)
    listed = [line.split("\t") for line in texts.read_lines(text / "test.sets")]
    assert listed == [[name, str(SIZES[name])] for name in sets]
    wanted = [f"{name} {n}" for name in sets for n in range(SIZES[name])]
    for language in ("en", "de"):
        raw = texts.read_lines(text / f"test.ref.{language}")
        assert raw == [
            line.replace(" ", f" {language.upper()} ") + "." for line in wanted
        ]
        tokens = texts.read_lines(text / f"test.{language}")
        assert [line.replace(" .", ".") for line in tokens] == raw
    assert not (text / "valid.sets").exists()
    assert f"{sets[-1]} ({SIZES[sets[-1]]} sentences)" in capsys.readouterr().err


@pytest.mark.parametrize(("missing", "there"), [("de", "en"), ("en", "de")])
def test_half_a_further_test_set_is_an_error(missing, there, tmp_path):
    said = rf"coco2017\.{missing} must be there as .*coco2017\.{there} is: add it"
    with pytest.raises(FileNotFoundError, match=said):
        prepared_multi30k(
            tmp_path, "test2016", "coco2017", without=f"coco2017.{missing}"
        )
    assert not (tmp_path / "text").exists()
