"""Recipe files: the keys and values that are refused."""

import in_process
import pytest
from steps import call, put

from sbnmt_plugin.tools.commands import recipe as run_recipe


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"typo": 1}, "unknown keys typo: known are source"),
        (
            {"bpe": {"kind": "word"}},
            "bpe.kind must be one of joint, separate, sentencepiece, none, but is",
        ),
        (
            {"bpe": {"kind": "sentencepiece", "merges": 9}, "detokenise": "de"},
            "bpe.kind must be joint, separate or none with detokenise, links or",
        ),
        ({"systems": {"sbb": {}}}, "systems has unknown rows sbb"),
        ({"score": {"case": 1}}, "score has unknown keys case"),
        ({"pseudo_engine": "torch"}, "pseudo_engine must be of .* but is 'torch'"),
        ({"average": "ten"}, "average must be"),
        ({"average": True}, "average must be a whole number, but is True"),
        ({"average": -1}, "average must be ≥ 0, but is -1"),
        (
            {"average": 0, "systems": {"sb": {"--disable-validation": None}}},
            " must have average ≥ 1 with --disable-validation, by which sb has no best",
        ),
        ({"sizes": None}, ": sizes must be keys and values, but is None"),
        ({"sizes": "abc"}, ": sizes must be keys and values, but is 'abc'"),
        ({"jobs": 0}, "jobs must be ≥ 1, but is 0"),
        ({"rescore": "1"}, "rescore must be a whole number or a number, but is '1'"),
        ({"decode": "--beam 4"}, "decode must be a list, but is '--beam 4'"),
        ({"systems": {"sb": ["--lr"]}}, "systems.sb must be keys and values"),
        ({"stages": {"sb": [{}, {"continue": 1}]}}, "continue must be true or false"),
        ({"environment": {"A": None}}, "environment.A must be .* but is None"),
        ({"score": {"references": 0}}, "score.references must be ≥ 1, but is 0"),
        ({"score": {"lowercase": "no"}}, "score.lowercase must be true or false"),
        ({"bpe": {"kind": "joint", "merges": 0}}, "bpe.merges must be a whole number"),
        ({"bpe": {"kind": "joint"}}, "bpe.merges must be a whole number"),
        (
            {"score": {"phonemes": True, "lowercase": True}},
            "score.lowercase must be false with score.phonemes",
        ),
        ({"rows": [3]}, "each of rows must be a text, but is 3"),
        ({"rescore": 0}, "rescore must be > 0"),
        ({"stages": {"sb": []}}, "must be a list of options"),
        ({"stages": {"sb": {"data": "gold"}}}, "must be a list of options"),
        ({"stages": {"sb": [{"data": "silver"}]}}, "data must be one of gold, pl"),
        ({"stages": {"sb": [{"continue": True}]}}, "first .* has nothing to continue"),
        (
            {"stages": {"sb": [{}, {"continue": True}]}, "average": 0},
            "needs average ≥ 1",
        ),
        ({"stages": {"sbb": [{"data": "gold"}]}}, "stages has unknown rows sbb"),
        ({"detokenise": "ger"}, ": detokenise: the language must be .* 'ger'"),
        ({"teacher_train": {"--save-dir": "x"}}, ": teacher_train must not set --save"),
        (
            {"systems": {"sb": {"--no-save": None}}},
            r": systems\.sb must not set --n",
        ),
        (
            {"stages": {"sb": [{"--task": "x"}]}},
            r": stages\.sb must not set --task",
        ),
        ({"rows": ["sbb"]}, ": rows must name teacher-l2r.*'sbb'$"),
        ({"rows": ["sb-same"]}, ": rows sb-same: .* use sb-staged$"),
        (
            {"systems": {"sb": {"--sb-same-text": 0.5}}},
            " gives step train/sb .*: unrecognized arguments: --sb-same-text 0.5",
        ),
    ],
    ids=str,
)
def test_recipes_are_checked(tmp_path, changes, message):
    folder = in_process.write_recipe(tmp_path / "recipe", **changes)
    with pytest.raises(ValueError, match=rf"recipe\.yaml.*{message}"):
        call(run_recipe, folder, "--work", tmp_path / "work")


def test_a_recipe_must_be_whole(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"is no recipe: give a folder with recipe.yaml .* toy"
    ):
        call(run_recipe, tmp_path, "--work", tmp_path / "work")
    put(tmp_path / "recipe.yaml", "source: de")
    with pytest.raises(ValueError, match="must have the key target, but has not"):
        call(run_recipe, tmp_path, "--work", tmp_path / "work")
    put(tmp_path / "recipe.yaml", "pseudo: [2024-13-45]")
    with pytest.raises(ValueError, match=r"\.yaml must be YAML, but is not: month"):
        call(run_recipe, tmp_path, "--work", tmp_path / "work")
    put(tmp_path / "recipe.yaml", "")
    with pytest.raises(ValueError, match="must hold keys and values"):
        call(run_recipe, tmp_path, "--work", tmp_path / "work")
    folder = in_process.write_recipe(tmp_path / "toy")
    with pytest.raises(ValueError, match="has no small setting"):
        call(run_recipe, folder, "--work", tmp_path / "work", "--small")


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfbpe: {}\n", b"source: \xff\n"])
def test_a_recipe_that_is_no_plain_text_is_named_with_its_line(tmp_path, content):
    folder = in_process.write_recipe(tmp_path / "recipe")
    (folder / "recipe.yaml").write_bytes(content)
    with pytest.raises(ValueError, match=r"recipe.yaml, line 1, must"):
        call(run_recipe, folder, "--work", tmp_path / "work")
